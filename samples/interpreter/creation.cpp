// Ops without tensor operands: constants, sequences, random numbers.
#include "convert.h"
#include "strided.h"

namespace interpreter {
namespace {

void full(const Call& call) {
  size_t input = 0;
  const Array& out = call.out[0];
  uint64_t element = 0;
  store(number_of(call, "fill_value", input), out.dtype(), reinterpret_cast<char*>(&element));
  copy(out.sizes(), element_bytes(out.dtype()), dense(out), {reinterpret_cast<char*>(&element), Sizes(out.sizes().size(), 0)});
}

template <typename T>
void arange(const Call& call) {
  size_t none = 0;
  const Number start = number_of(call, "start", none);
  const Number step = call.integers("step").empty() ? Number{false, 1, 1} : number_of(call, "step", none);
  for (int64_t i = 0; i < call.out[0].count(); ++i) {
    T& to = call.out[0].as<T>()[i];
    if constexpr (std::is_floating_point_v<T>) {
      to = static_cast<T>(start.as_float() + static_cast<double>(i) * step.as_float());
    } else {
      to = static_cast<T>(Wide<T>(start.as_integer()) + Wide<T>(i) * Wide<T>(step.as_integer()));
    }
  }
}
template <typename... T>
Kernels aranges(Types<T...>) {
  return {{dtype_of<T>, arange<T>}...};
}

// Philox4x32-10, as ltc/plugin.h defines it.
std::array<uint32_t, 4> block(uint64_t seed, uint64_t counter) {
  const auto low = [](uint64_t x) { return static_cast<uint32_t>(x); };
  const auto high = [](uint64_t x) { return static_cast<uint32_t>(x >> 32); };
  uint32_t key[] = {low(seed), high(seed)};
  std::array<uint32_t, 4> x = {low(counter), high(counter), 0, 0};
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * x[0], b = uint64_t{0xCD9E8D57} * x[2];
    x = {high(b) ^ x[1] ^ key[0], low(b), high(a) ^ x[3] ^ key[1], low(a)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return x;
}

template <typename T>
void philox(const Call& call) {
  size_t input = 0;
  const auto seed = static_cast<uint64_t>(number_of(call, "seed", input).as_integer());
  const auto offset = static_cast<uint64_t>(number_of(call, "offset", input).as_integer());
  constexpr uint64_t kPerBlock = 16 / sizeof(T);
  std::array<uint32_t, 4> words = {};
  for (uint64_t i = 0; i < static_cast<uint64_t>(call.out[0].count()); ++i) {
    const uint64_t at = i % kPerBlock;
    if (at == 0) words = block(seed, offset + i / kPerBlock);
    uint64_t bits = words[at * sizeof(T) / 4];
    if (sizeof(T) == 8) bits |= uint64_t{words[at * 2 + 1]} << 32;
    T& to = call.out[0].as<T>()[i];
    if constexpr (std::is_same_v<T, float>) {
      to = static_cast<float>(bits >> 8) * 0x1p-24f;
    } else if constexpr (std::is_same_v<T, double>) {
      to = static_cast<double>(bits >> 11) * 0x1p-53;
    } else {
      to = static_cast<T>(bits);
    }
  }
}

}  // namespace

const Table creation_ops{
    {"aten::full", {"s:T", moves(full)}, numbers_are_real},
    {"aten::arange.start_step", {":T", aranges(numbers)}, numbers_are_real},
    {"ltc::philox",
     {"ss:T", {{LTC_I32, philox<int32_t>}, {LTC_I64, philox<int64_t>}, {LTC_F32, philox<float>}, {LTC_F64, philox<double>}}},
     numbers_are_real},
};

}  // namespace interpreter
