// Arithmetic of F32 and F64. This file is compiled so that the processor's mode of rounding holds.
#include <cfenv>
#include <cmath>

#include "cuda/emulator/table.h"
#include "cuda/emulator/values.h"

namespace ltc::emulator {
namespace {

constexpr struct {
  const char* suffix;
  Rounding rounding;
} kRoundings[] = {{".rn", Rounding::kNearest}, {".rz", Rounding::kZero}, {".rm", Rounding::kDown}, {".rp", Rounding::kUp}};

// The processor rounds so while this lives.
class Mode {
 public:
  explicit Mode(Rounding rounding) {
    constexpr int kModes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
    std::fesetround(kModes[static_cast<int>(rounding)]);
  }
  ~Mode() { std::fesetround(FE_TONEAREST); }
  Mode(const Mode&) = delete;
  Mode& operator=(const Mode&) = delete;
};

enum class Operation { kAdd, kSubtract, kMultiply, kDivide, kFma, kSqrt, kReciprocal };

template <typename T, Operation kOperation>
T computed(const volatile T& a, const volatile T& b, const volatile T& c) {
  switch (kOperation) {
    case Operation::kAdd: return a + b;
    case Operation::kSubtract: return a - b;
    case Operation::kMultiply: return a * b;
    case Operation::kDivide: return a / b;
    case Operation::kFma: return std::fma(T{a}, T{b}, T{c});
    case Operation::kSqrt: return std::sqrt(T{a});
    case Operation::kReciprocal: return T{1} / a;
  }
}

constexpr int operands_of(Operation operation) {
  return operation == Operation::kFma ? 4 : operation >= Operation::kSqrt ? 2 : 3;
}

template <typename T, Operation kOperation, Rounding kRounding, bool kFlush, bool kSaturate>
void compute(Thread& t, const Instruction& in) {
  const auto operand = [&](int i) {
    const T x = operands_of(kOperation) > i ? get<T>(t, in, i) : T{0};
    if constexpr (kFlush) return flushed(x);
    return x;
  };
  const T a = operand(1), b = operand(2), c = operand(3);
  volatile T result;
  if constexpr (kRounding == Rounding::kNearest) {
    result = computed<T, kOperation>(a, b, c);
  } else {
    const Mode mode(kRounding);
    result = computed<T, kOperation>(a, b, c);
  }
  T made = result;
  if constexpr (kFlush) made = flushed(made);
  if constexpr (kSaturate) made = made > 0 ? std::min(made, T{1}) : T{0};
  if (std::isnan(made)) made = std::numeric_limits<T>::quiet_NaN();
  set<T>(t, in, 0, made);
}

template <typename T, Operation kOperation, Rounding kRounding>
void add_rounded(Table& table, const std::string& name, const std::string& type) {
  constexpr int kOperands = operands_of(kOperation);
  table.add(name + type, kOperands, compute<T, kOperation, kRounding, false, false>);
  if constexpr (sizeof(T) == 4) {
    table.add(name + ".ftz" + type, kOperands, compute<T, kOperation, kRounding, true, false>);
    if constexpr (kOperation != Operation::kSqrt && kOperation != Operation::kReciprocal && kOperation != Operation::kDivide) {
      table.add(name + ".sat" + type, kOperands, compute<T, kOperation, kRounding, false, true>);
      table.add(name + ".ftz.sat" + type, kOperands, compute<T, kOperation, kRounding, true, true>);
    }
  }
}

// `kBare`: the name without a rounding is there too, and means the nearest.
template <Operation kOperation, bool kBare>
void add_operation(Table& table, const std::string& name) {
  const auto add = [&]<typename T>(T, const std::string& type) {
    if constexpr (kBare) add_rounded<T, kOperation, Rounding::kNearest>(table, name, type);
    add_rounded<T, kOperation, Rounding::kNearest>(table, name + ".rn", type);
    add_rounded<T, kOperation, Rounding::kZero>(table, name + ".rz", type);
    add_rounded<T, kOperation, Rounding::kDown>(table, name + ".rm", type);
    add_rounded<T, kOperation, Rounding::kUp>(table, name + ".rp", type);
  };
  add(float{}, ".f32");
  add(double{}, ".f64");
}

template <typename From, typename To>
void to_float(Thread& t, const Instruction& in, Rounding rounding) {
  const Mode mode(rounding);
  const volatile From from = get<From>(t, in, 1);
  volatile To to = static_cast<To>(from);
  set<To>(t, in, 0, std::isnan(To{to}) ? std::numeric_limits<To>::quiet_NaN() : To{to});
}
template <typename From, typename To, Rounding kRounding>
void convert(Thread& t, const Instruction& in) {
  to_float<From, To>(t, in, kRounding);
}

template <typename From, typename To>
void add_conversions_to(Table& table, const std::string& names) {
  table.add("cvt.rn" + names, 2, convert<From, To, Rounding::kNearest>);
  table.add("cvt.rz" + names, 2, convert<From, To, Rounding::kZero>);
  table.add("cvt.rm" + names, 2, convert<From, To, Rounding::kDown>);
  table.add("cvt.rp" + names, 2, convert<From, To, Rounding::kUp>);
}

}  // namespace

void add_floats(Table& table) {
  add_operation<Operation::kAdd, true>(table, "add");
  add_operation<Operation::kSubtract, true>(table, "sub");
  add_operation<Operation::kMultiply, true>(table, "mul");
  add_operation<Operation::kDivide, false>(table, "div");
  add_operation<Operation::kFma, false>(table, "fma");
  add_operation<Operation::kSqrt, false>(table, "sqrt");
  add_operation<Operation::kReciprocal, false>(table, "rcp");
  each_integer([&]<typename T>(const std::string& type) {
    add_conversions_to<T, float>(table, ".f32." + type);
    add_conversions_to<T, double>(table, ".f64." + type);
  });
  add_conversions_to<uint8_t, float>(table, ".f32.u8");
  add_conversions_to<int8_t, float>(table, ".f32.s8");
  add_conversions_to<uint8_t, double>(table, ".f64.u8");
  add_conversions_to<int8_t, double>(table, ".f64.s8");
  add_conversions_to<double, float>(table, ".f32.f64");
}

}  // namespace ltc::emulator
