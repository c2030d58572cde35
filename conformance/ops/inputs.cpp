#include "conformance/ops/inputs.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "conformance/ops/cases.h"

namespace ltc::conformance {
namespace {

std::vector<double> special_floats(DType dtype) {
  const bool wide = dtype == DType::kF64;
  const double largest = wide ? std::numeric_limits<double>::max() : std::numeric_limits<float>::max();
  const double smallest = wide ? std::numeric_limits<double>::min() : std::numeric_limits<float>::min();
  // The last four lie halfway between two numbers of 8 and of 11 bits.
  return {0.0, -0.0, 1,   -1,  NAN,  INFINITY, -INFINITY,  largest,    -largest,    smallest,   -smallest,
          0.5, -0.5, 1.5, 2.5, -2.5, 1e-3,     1 + 0x1p-8, 1 + 0x3p-8, 1 + 0x1p-11, 1 + 0x3p-11};
}

double real_value(Fill fill, int64_t i, DType dtype, std::mt19937& random) {
  const double unit = std::uniform_real_distribution<double>(-1, 1)(random);
  const auto n = static_cast<size_t>(i);
  switch (fill) {
    case Fill::kAny: {
      const auto special = special_floats(dtype);
      return n < special.size() ? special[n] : unit * 100;
    }
    case Fill::kFinite: {
      constexpr double kFirst[] = {0.0, -0.0, 1, -1, 0.5, -20, 20, 1e-4};
      return n < std::size(kFirst) ? kFirst[n] : unit * 10;
    }
    case Fill::kPositive: return n == 0 ? 1 : n == 1 ? 2 : n == 2 ? 0.25 : (unit + 1.001) * 5;
    case Fill::kUnit: return unit;
    case Fill::kSmall: return static_cast<double>((i * 5 + 3) % 9 - 4);
    case Fill::kCount: return static_cast<double>(i % 8);
    case Fill::kNonZero: return i % 2 ? -static_cast<double>(i % 3 + 1) : static_cast<double>(i % 3 + 1);
  }
  return 0;
}

int64_t integer_value(Fill fill, int64_t i, DType dtype, std::mt19937& random) {
  switch (fill) {
    case Fill::kAny: {
      const int width = static_cast<int>(dtype_size_bytes(dtype)) * 8;
      const int64_t largest = static_cast<int64_t>(UINT64_MAX >> (65 - width));
      const int64_t special[] = {0, 1, -1, largest, -largest - 1, 2, largest - 1};
      if (i < std::ssize(special)) return special[i];
      return static_cast<int64_t>(random()) << 32 | random();
    }
    case Fill::kPositive: return i % 5 + 1;
    case Fill::kUnit: return i % 3 - 1;
    default: return static_cast<int64_t>(real_value(fill, i, dtype, random));
  }
}

Array filled(DType dtype, const Sizes& sizes, Fill fill, unsigned seed) {
  Array array(dtype, sizes);
  std::mt19937 random(seed);
  for (int64_t i = 0; i < array.count(); ++i) {
    // Each param begins elsewhere among the special values, so that they meet each other.
    const int64_t at = fill == Fill::kAny ? (i * (2 * static_cast<int64_t>(seed) + 1)) % std::max<int64_t>(array.count(), 1) : i;
    if (is_floating(dtype)) {
      array.set_real(i, real_value(fill, at, dtype, random));
    } else if (dtype == DType::kBool) {
      array.set_integer(i, static_cast<int64_t>(random() & 1));
    } else {
      array.set_integer(i, integer_value(fill, at, dtype, random));
    }
  }
  return array;
}

}  // namespace

Inputs inputs_for(const Graph& graph, std::string_view fills) {
  Inputs inputs;
  unsigned seed = 0;
  for (const Param& param : graph.params) {
    const Type& type = graph.type(param.value);
    if (param.scalar) {
      Scalar value{};
      if (type.dtype == DType::kF64) value.f = 0.0625;
      if (type.dtype == DType::kI64) value.i = 3 + static_cast<int64_t>(inputs.scalars.size()) * 1000;
      inputs.scalars.push_back(value);
      continue;
    }
    const auto fill = static_cast<Fill>(fills[std::min<size_t>(seed, fills.size() - 1)]);
    inputs.arrays.push_back(filled(type.dtype, type.sizes, fill, seed));
    ++seed;
  }
  return inputs;
}

}  // namespace ltc::conformance
