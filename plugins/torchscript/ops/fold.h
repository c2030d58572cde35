// Lanes of vectors combined to one number, always in the same order. For the files that are compiled once per instruction set:
// all of it is a file's own.
#pragma once

namespace ltc::torchscript {
namespace {

using FourLanes = float __attribute__((vector_size(16)));
using EightLanes = float __attribute__((vector_size(32)));
using SixteenLanes = float __attribute__((vector_size(64)));

struct Sum {
  template <typename T>
  inline T operator()(const T& a, const T& b) const {
    return a + b;
  }
};

struct Larger {
  template <typename T>
  inline T operator()(const T& a, const T& b) const {
    return a > b ? a : b;
  }
};

template <typename Combine = Sum>
inline float fold(const FourLanes& x, Combine combine = {}) {
  const auto two = combine(__builtin_shufflevector(x, x, 0, 1), __builtin_shufflevector(x, x, 2, 3));
  return combine(two[0], two[1]);
}

template <typename Combine = Sum>
inline float fold(const EightLanes& x, Combine combine = {}) {
  return fold(combine(__builtin_shufflevector(x, x, 0, 1, 2, 3), __builtin_shufflevector(x, x, 4, 5, 6, 7)), combine);
}

template <typename Combine = Sum>
inline float fold(const SixteenLanes& x, Combine combine = {}) {
  return fold(
      combine(__builtin_shufflevector(x, x, 0, 1, 2, 3, 4, 5, 6, 7), __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15)),
      combine);
}

// Of one of ATen's vectors.
template <typename Vector, typename Combine = Sum>
inline float fold_vector(const Vector& x, Combine combine = {}) {
  float __attribute__((vector_size(sizeof(Vector)))) lanes;
  __builtin_memcpy(&lanes, &x, sizeof lanes);
  return fold(lanes, combine);
}

}  // namespace
}  // namespace ltc::torchscript
