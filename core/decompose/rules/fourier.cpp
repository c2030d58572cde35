// Fourier transforms as products with matrices of sines and cosines, one dim at a time.
#include <cmath>
#include <numbers>

#include "core/decompose/rules/families.h"
#include "core/decompose/rules/pairs.h"

namespace ltc::decompose {
namespace {

constexpr int64_t kLongest = 4096;  // beyond, such a matrix is too large

// cos and sin of 2 pi j k / n, for j below `rows` and k below `columns`; in double, rounded once.
struct Waves {
  Val cosine, sine;
};
Waves waves(Builder& b, int64_t n, int64_t rows, int64_t columns) {
  const Val j = reshape(iota(b, rows), {rows, 1}), k = reshape(iota(b, columns), {1, columns});
  const Val angle = cast(remainder(j * k, n), DType::kF64) * (2 * std::numbers::pi / static_cast<double>(n));
  return {cast(cos(angle), DType::kF32), cast(sin(angle), DType::kF32)};
}

Pair transform(Pair x, int64_t dim, bool forward) {
  const int64_t n = x.re.size(dim);
  const Waves w = waves(*x.re.builder, n, n, n);
  const Val sine = forward ? -w.sine : w.sine;
  return {apply_along(x.re, dim, w.cosine) - apply_along(x.im, dim, sine),
          apply_along(x.im, dim, w.cosine) + apply_along(x.re, dim, sine)};
}

// The first half of the spectrum, whose other half it mirrors.
Pair half_spectrum(Val x, int64_t dim, int64_t half) {
  const Waves w = waves(*x.builder, x.size(dim), half, x.size(dim));
  return {apply_along(x, dim, w.cosine), -apply_along(x, dim, w.sine)};
}
Val from_half_spectrum(Pair x, int64_t dim, int64_t n) {
  Builder& b = *x.re.builder;
  const int64_t half = x.re.size(dim);
  const Waves w = waves(b, n, n, half);
  const Val k = reshape(iota(b, half), {1, half}), once = (k == 0) | (k * 2 == n);
  const Val share = where(once, full(b, DType::kF32, {1, half}, int64_t{1}), full(b, DType::kF32, {1, half}, int64_t{2}));
  return apply_along(x.re, dim, w.cosine * share) - apply_along(x.im, dim, w.sine * share);
}

// 1 over 1, the root of n, or n.
double factor(const Call& call, double n) {
  const int64_t mode = call.integer("normalization");
  return mode == 0 ? 1 : mode == 1 ? 1 / std::sqrt(n) : 1 / n;
}
Pair scaled(Pair x, double by) { return by == 1 ? x : Pair{x.re * by, x.im * by}; }

bool too_long(const Val& x, const Ints& dims) {
  for (const int64_t dim : dims) {
    if (x.size(dim) > kLongest) return true;
  }
  return x.count() == 0;
}

Results complex_to_complex(const Call& call) {
  const Val x = call.tensor("self");
  const Ints dims = call.ints("dim");
  if (too_long(x, dims)) return nothing();
  Pair p = parts(x);
  double n = 1;
  for (const int64_t dim : dims) {
    p = transform(p, dim, call.flag("forward"));
    n *= static_cast<double>(x.size(dim));
  }
  return complex(scaled(p, factor(call, n)));
}

Results real_to_complex(const Call& call) {
  const Val x = call.tensor("self");
  const Ints dims = call.ints("dim");
  if (too_long(x, dims) || x.dtype() != DType::kF32) return nothing();
  double n = 1;
  for (const int64_t dim : dims) n *= static_cast<double>(x.size(dim));
  const int64_t last = x.wrap(dims.back()), whole = x.size(last);
  Pair p = half_spectrum(x, last, call.flag("onesided") ? whole / 2 + 1 : whole);
  for (size_t i = 0; i + 1 < dims.size(); ++i) p = transform(p, dims[i], true);
  return complex(scaled(p, factor(call, n)));
}

Results complex_to_real(const Call& call) {
  const Val x = call.tensor("self");
  const Ints dims = call.ints("dim");
  const int64_t size = call.integer("last_dim_size");
  if (too_long(x, dims) || size > kLongest) return nothing();
  double n = static_cast<double>(size);
  Pair p = parts(x);
  for (size_t i = 0; i + 1 < dims.size(); ++i) {
    p = transform(p, dims[i], false);
    n *= static_cast<double>(x.size(dims[i]));
  }
  const int64_t last = x.wrap(dims.back()), half = size / 2 + 1;
  p = {slice(p.re, last, 0, half), slice(p.im, last, 0, half)};
  return from_half_spectrum(p, last, size) * factor(call, n);
}

constexpr Decomposition kRules[] = {
    {"aten::_fft_c2c", complex_to_complex},
    {"aten::_fft_r2c", real_to_complex},
    {"aten::_fft_c2r", complex_to_real},
};

}  // namespace

std::span<const Decomposition> fourier_transforms() { return kRules; }

}  // namespace ltc::decompose
