// Ops that compute each element by itself, with broadcasting.
#include <cmath>
#include <type_traits>

#include "strided.h"

namespace interpreter {
namespace {

// Applies f to the operands' elements; each result is converted to R.
template <auto f, typename R, typename... In>
void map(const Call& call) {
  std::vector<View> views{dense(call.out[0])};
  for (const Array& in : call.in) views.push_back(broadcast(in, call.out[0].sizes()));
  const auto loop = []<size_t... i>(std::index_sequence<i...>, char* const* at, const int64_t* strides, int64_t count) {
    for (int64_t k = 0; k < count; ++k) {
      R& to = *reinterpret_cast<R*>(at[0] + k * strides[0]);
      to = static_cast<R>(f(*reinterpret_cast<const In*>(at[i + 1] + k * strides[i + 1])...));
    }
  };
  walk(call.out[0].sizes(), views, [&loop](char* const* at, const int64_t* strides, int64_t count) {
    loop(std::index_sequence_for<In...>(), at, strides, count);
  });
}

template <auto f, typename... T>
Kernels unary(Types<T...>) {
  return {{dtype_of<T>, map<f, T, T>}...};
}
template <auto f, typename... T>
Kernels binary(Types<T...>) {
  return {{dtype_of<T>, map<f, T, T, T>}...};
}
template <auto f, typename... T>
Kernels comparison(Types<T...>) {
  return {{dtype_of<T>, map<f, bool, T, T>}...};
}

// Integers: a divisor of 0 has no answer, and the least one divided by -1 traps.
template <typename T>
T fmod_of(T x, T y) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::fmod(x, y);
  } else {
    return y == 0 || (std::is_signed_v<T> && y == static_cast<T>(-1)) ? T(0) : static_cast<T>(x % y);
  }
}

// The sign of the divisor, as in Python.
template <typename T>
T remainder_of(T x, T y) {
  const T rest = fmod_of(x, y);
  return rest != 0 && (rest < 0) != (y < 0) ? static_cast<T>(rest + y) : rest;
}

template <typename T>
T power(T x, T y) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::pow(x, y);
  } else {
    if (y < 0) return static_cast<T>(x == 1 ? 1 : x == static_cast<T>(-1) ? (y % 2 ? -1 : 1) : 0);
    uint64_t result = 1, factor = static_cast<uint64_t>(x);
    for (auto rest = static_cast<uint64_t>(y); rest > 0; rest /= 2, factor *= factor) {
      if (rest % 2) result *= factor;
    }
    return static_cast<T>(result);
  }
}

template <typename T>
bool is_shift(T y) {
  return y >= 0 && static_cast<uint64_t>(y) < 8 * sizeof(T);
}

void where(const Call& call) {
  constexpr auto pick = [](bool condition, auto x, auto y) { return condition ? x : y; };
  switch (element_bytes(call.out[0].dtype())) {
    case 1: return map<pick, uint8_t, bool, uint8_t, uint8_t>(call);
    case 2: return map<pick, uint16_t, bool, uint16_t, uint16_t>(call);
    case 4: return map<pick, uint32_t, bool, uint32_t, uint32_t>(call);
    default: return map<pick, uint64_t, bool, uint64_t, uint64_t>(call);
  }
}

bool is_plain_sum(const Node& node) { return node.find<double>("alpha") == 1; }

template <typename T>
Wide<T> wide(T x) {
  return static_cast<Wide<T>>(x);
}

// clang-format off
constexpr auto neg = [](auto x) {
  if constexpr (std::is_floating_point_v<decltype(x)>) return -x; else return 0 - wide(x);
};
constexpr auto abs = [](auto x) {
  if constexpr (std::is_floating_point_v<decltype(x)>) return std::fabs(x); else return x < 0 ? 0 - wide(x) : wide(x);
};
constexpr auto invert = [](auto x) {
  if constexpr (std::is_same_v<decltype(x), bool>) return !x; else return ~x;
};

}  // namespace

const Table elementwise_ops{
    {"aten::neg", {"T:T", unary<neg>(numbers)}},
    {"aten::abs", {"T:T", unary<abs>(numbers)}},
    {"aten::sign", {"T:T", unary<[](auto x) { return (x > 0) - (x < 0); }>(numbers)}},
    {"aten::floor", {"T:T", unary<[](auto x) { return std::floor(x); }>(floats)}},
    {"aten::ceil", {"T:T", unary<[](auto x) { return std::ceil(x); }>(floats)}},
    {"aten::trunc", {"T:T", unary<[](auto x) { return std::trunc(x); }>(floats)}},
    {"aten::round", {"T:T", unary<[](auto x) { return std::nearbyint(x); }>(floats)}},
    {"aten::exp", {"T:T", unary<[](auto x) { return std::exp(x); }>(floats)}},
    {"aten::expm1", {"T:T", unary<[](auto x) { return std::expm1(x); }>(floats)}},
    {"aten::log", {"T:T", unary<[](auto x) { return std::log(x); }>(floats)}},
    {"aten::log1p", {"T:T", unary<[](auto x) { return std::log1p(x); }>(floats)}},
    {"aten::sqrt", {"T:T", unary<[](auto x) { return std::sqrt(x); }>(floats)}},
    {"aten::sin", {"T:T", unary<[](auto x) { return std::sin(x); }>(floats)}},
    {"aten::cos", {"T:T", unary<[](auto x) { return std::cos(x); }>(floats)}},
    {"aten::tan", {"T:T", unary<[](auto x) { return std::tan(x); }>(floats)}},
    {"aten::tanh", {"T:T", unary<[](auto x) { return std::tanh(x); }>(floats)}},
    {"aten::atan", {"T:T", unary<[](auto x) { return std::atan(x); }>(floats)}},
    {"aten::erf", {"T:T", unary<[](auto x) { return std::erf(x); }>(floats)}},
    {"aten::lgamma", {"T:T", unary<[](auto x) { return std::lgamma(x); }>(floats)}},
    {"aten::bitwise_not", {"T:T", unary<invert>(integers + booleans)}},
    {"aten::add.Tensor", {"TT:T", binary<[](auto x, auto y) { return wide(x) + wide(y); }>(numbers)}, is_plain_sum},
    {"aten::mul.Tensor", {"TT:T", binary<[](auto x, auto y) { return wide(x) * wide(y); }>(numbers)}},
    {"aten::div.Tensor", {"TT:T", binary<[](auto x, auto y) { return x / y; }>(floats)}},
    {"aten::remainder.Tensor", {"TT:T", binary<[](auto x, auto y) { return remainder_of(x, y); }>(numbers)}},
    {"aten::fmod.Tensor", {"TT:T", binary<[](auto x, auto y) { return fmod_of(x, y); }>(numbers)}},
    {"aten::pow.Tensor_Tensor", {"TT:T", binary<[](auto x, auto y) { return power(x, y); }>(numbers)}},
    {"aten::maximum", {"TT:T", binary<[](auto x, auto y) { return x != x || (x > y) ? x : y; }>(all_computed)}},
    {"aten::minimum", {"TT:T", binary<[](auto x, auto y) { return x != x || x < y ? x : y; }>(all_computed)}},
    {"aten::atan2", {"TT:T", binary<[](auto y, auto x) { return std::atan2(y, x); }>(floats)}},
    {"aten::bitwise_and.Tensor", {"TT:T", binary<[](auto x, auto y) { return x & y; }>(integers + booleans)}},
    {"aten::bitwise_or.Tensor", {"TT:T", binary<[](auto x, auto y) { return x | y; }>(integers + booleans)}},
    {"aten::bitwise_xor.Tensor", {"TT:T", binary<[](auto x, auto y) { return x ^ y; }>(integers + booleans)}},
    {"aten::bitwise_left_shift.Tensor",
     {"TT:T", binary<[](auto x, auto y) { return is_shift(y) ? wide(x) << y : 0; }>(integers)}},
    {"aten::bitwise_right_shift.Tensor",
     {"TT:T", binary<[](auto x, auto y) { return is_shift(y) ? (x >> y) : x < 0 ? -1 : 0; }>(integers)}},
    {"aten::eq.Tensor", {"TT:b", comparison<[](auto x, auto y) { return x == y; }>(all_computed)}},
    {"aten::lt.Tensor", {"TT:b", comparison<[](auto x, auto y) { return x < y; }>(all_computed)}},
    {"aten::le.Tensor", {"TT:b", comparison<[](auto x, auto y) { return x <= y; }>(all_computed)}},
    {"aten::where.self", {"bTT:T", moves(where)}},
};
// clang-format on

}  // namespace interpreter
