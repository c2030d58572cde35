// Arithmetic of F16 and BF16, single and in pairs: computed in F64 and rounded once.
#include <algorithm>

#include "cuda/emulator/table.h"
#include "cuda/emulator/values.h"

namespace ltc::emulator {
namespace {

enum class Operation { kAdd, kSubtract, kMultiply, kFma, kLeast, kMost, kNegate, kMagnitude, kExp2, kTanh };

double computed(Operation operation, double a, double b, double c) {
  switch (operation) {
    case Operation::kAdd: return a + b;
    case Operation::kSubtract: return a - b;
    case Operation::kMultiply: return a * b;
    case Operation::kFma: return a * b + c;
    case Operation::kLeast: return least(a, b);
    case Operation::kMost: return most(a, b);
    case Operation::kNegate: return -a;
    case Operation::kMagnitude: return std::fabs(a);
    case Operation::kExp2: return std::exp2(a);
    case Operation::kTanh: return std::tanh(a);
  }
  return a;
}
constexpr int operands_of(Operation operation) {
  return operation == Operation::kFma ? 4 : operation >= Operation::kNegate ? 2 : 3;
}

template <typename Half, Operation kOperation, int kCount>
void compute(Thread& t, const Instruction& in) {
  uint32_t result = 0;
  for (int i = 0; i < kCount; ++i) {
    const auto operand = [&](int k) {
      return k < operands_of(kOperation) ? Half{static_cast<uint16_t>(t.registers[in.slots[k]] >> 16 * i)}.value() : 0;
    };
    result |= uint32_t{Half::from(computed(kOperation, operand(1), operand(2), operand(3))).bits} << 16 * i;
  }
  t.registers[in.slots[0]] = result;
}

template <typename Half, Operation kOperation>
void add_operation(Table& table, const std::string& name, const std::string& type) {
  table.add(name + type, operands_of(kOperation), compute<Half, kOperation, 1>);
  table.add(name + type + "x2", operands_of(kOperation), compute<Half, kOperation, 2>);
}

template <typename Half>
void add_type(Table& table, const std::string& type) {
  for (const char* rounding : {"", ".rn"}) {
    add_operation<Half, Operation::kAdd>(table, std::string("add") + rounding, type);
    add_operation<Half, Operation::kSubtract>(table, std::string("sub") + rounding, type);
    add_operation<Half, Operation::kMultiply>(table, std::string("mul") + rounding, type);
  }
  add_operation<Half, Operation::kFma>(table, "fma.rn", type);
  add_operation<Half, Operation::kLeast>(table, "min", type);
  add_operation<Half, Operation::kMost>(table, "max", type);
  add_operation<Half, Operation::kNegate>(table, "neg", type);
  add_operation<Half, Operation::kMagnitude>(table, "abs", type);
  add_operation<Half, Operation::kExp2>(table, "ex2.approx", type);
  add_operation<Half, Operation::kTanh>(table, "tanh.approx", type);
}

// ---- conversions

template <typename From, typename Half, Rounding kRounding>
void narrow(Thread& t, const Instruction& in) {
  set<Half>(t, in, 0, Half::from(static_cast<double>(number<From>(t, in, 1)), kRounding));
}
template <typename Half, typename To>
void widen(Thread& t, const Instruction& in) {
  set<To>(t, in, 0, static_cast<To>(get<Half>(t, in, 1).value()));
}
// The first operand goes into the upper half.
template <typename Half, Rounding kRounding>
void narrow_pair(Thread& t, const Instruction& in) {
  const uint32_t high = Half::from(get<float>(t, in, 1), kRounding).bits, low = Half::from(get<float>(t, in, 2), kRounding).bits;
  set<uint32_t>(t, in, 0, high << 16 | low);
}

template <typename Half, Rounding kRounding>
void add_narrowing(Table& table, const std::string& rounding, const std::string& type) {
  table.add("cvt" + rounding + type + ".f32", 2, narrow<float, Half, kRounding>);
  table.add("cvt" + rounding + type + ".f64", 2, narrow<double, Half, kRounding>);
  table.add("cvt" + rounding + type + "x2.f32", 3, narrow_pair<Half, kRounding>);
  each_integer([&]<typename T>(const std::string& from) {
    table.add("cvt" + rounding + type + "." + from, 2, narrow<T, Half, kRounding>);
  });
}
template <typename Half>
void add_conversions_of(Table& table, const std::string& type) {
  add_narrowing<Half, Rounding::kNearest>(table, ".rn", type);
  add_narrowing<Half, Rounding::kZero>(table, ".rz", type);
  add_narrowing<Half, Rounding::kDown>(table, ".rm", type);
  add_narrowing<Half, Rounding::kUp>(table, ".rp", type);
  table.add("cvt.f32" + type, 2, widen<Half, float>);
  table.add("cvt.f64" + type, 2, widen<Half, double>);
}

}  // namespace

void add_halves(Table& table) {
  add_type<F16>(table, ".f16");
  add_type<BF16>(table, ".bf16");
  add_conversions_of<F16>(table, ".f16");
  add_conversions_of<BF16>(table, ".bf16");
}

}  // namespace ltc::emulator
