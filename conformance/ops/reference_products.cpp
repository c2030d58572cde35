// Products of matrices, convolution and random numbers.
#include <array>
#include <cmath>

#include "conformance/ops/reference_call.h"

namespace ltc::conformance {
namespace {

void bmm(const ReferenceCall& call) {
  const Array &a = call.input(0), &b = call.input(1);
  Array& out = call.output(0);
  const int64_t rows = a.sizes[1], inner = a.sizes[2], columns = b.sizes[2];
  for (int64_t i = 0; i < out.count(); ++i) {
    const int64_t batch = i / (rows * columns), row = i / columns % rows, column = i % columns;
    Real real = 0;
    int64_t integer = 0;
    for (int64_t k = 0; k < inner; ++k) {
      const int64_t ia = (batch * rows + row) * inner + k, ib = (batch * inner + k) * columns + column;
      if (is_floating(a.dtype)) real += Real(a.real(ia)) * b.real(ib);
      if (!is_floating(a.dtype)) integer = add(integer, mul(a.integer(ia), b.integer(ib)));
    }
    if (is_floating(a.dtype)) out.set_real(i, static_cast<double>(real));
    if (!is_floating(a.dtype)) out.set_integer(i, integer);
  }
}

// Each element of the input meets each of the kernel; both kinds of convolution are the same loop with input and output swapped.
void convolution(const ReferenceCall& call) {
  const Array &x = call.input(0), &weight = call.input(1);
  const Array* bias = call.given(2) ? &call.input(2) : nullptr;
  Array& out = call.output(0);
  const bool transposed = call.integer("transposed", 0) != 0;
  const int64_t groups = call.integer("groups", 1);
  const Sizes stride = call.ints("stride"), padding = call.ints("padding"), dilation = call.ints("dilation");
  std::vector<Real> sums(static_cast<size_t>(out.count()), 0);
  const Array &narrow = transposed ? x : out, &wide = transposed ? out : x;
  const Sizes wide_strides = strides_of(wide.sizes), narrow_strides = strides_of(narrow.sizes);
  const int64_t first = weight.sizes[0] / groups, second = weight.sizes[1];  // channels of a group: narrow side, wide side
  for (int64_t batch = 0; batch < x.sizes[0]; ++batch) {
    for (int64_t w = 0; w < weight.count(); ++w) {
      const Sizes tap = position(w, weight.sizes);
      const int64_t group = tap[0] / first;
      const Sizes spatial(narrow.sizes.begin() + 2, narrow.sizes.end());
      for (int64_t s = 0; s < element_count(spatial); ++s) {
        const Sizes at = position(s, spatial);
        int64_t narrow_at = batch * narrow_strides[0] + tap[0] * narrow_strides[1];
        int64_t wide_at = batch * wide_strides[0] + (group * second + tap[1]) * wide_strides[1];
        bool inside = true;
        for (size_t d = 0; d < at.size(); ++d) {
          const int64_t place = at[d] * stride[d] - padding[d] + tap[d + 2] * dilation[d];
          inside = inside && place >= 0 && place < wide.sizes[d + 2];
          narrow_at += at[d] * narrow_strides[d + 2];
          wide_at += place * wide_strides[d + 2];
        }
        if (!inside) continue;
        const int64_t from = transposed ? narrow_at : wide_at, to = transposed ? wide_at : narrow_at;
        sums[static_cast<size_t>(to)] += Real(x.real(from)) * weight.real(w);
      }
    }
  }
  const int64_t channel = strides_of(out.sizes)[1];
  for (int64_t i = 0; i < out.count(); ++i) {
    const Real start = bias ? bias->real(i / channel % out.sizes[1]) : 0;
    out.set_real(i, static_cast<double>(start + sums[static_cast<size_t>(i)]));
  }
}

// ---- random: the definition in ltc/plugin.h

std::array<uint32_t, 4> philox_block(uint64_t seed, uint64_t counter) {
  std::array<uint32_t, 4> c{static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32), 0, 0};
  auto low = static_cast<uint32_t>(seed), high = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round, low += 0x9E3779B9u, high += 0xBB67AE85u) {
    const uint64_t a = uint64_t{0xD2511F53u} * c[0], b = uint64_t{0xCD9E8D57u} * c[2];
    c = {static_cast<uint32_t>(b >> 32) ^ c[1] ^ low, static_cast<uint32_t>(b), static_cast<uint32_t>(a >> 32) ^ c[3] ^ high,
         static_cast<uint32_t>(a)};
  }
  return c;
}

void philox(const ReferenceCall& call) {
  Array& out = call.output(0);
  const auto seed = bits(call.number("seed", 0).i), offset = bits(call.number("offset", 1).i);
  const bool wide = out.dtype == DType::kI64 || out.dtype == DType::kF64;
  for (int64_t i = 0; i < out.count(); ++i) {
    const auto n = static_cast<uint64_t>(i);
    const auto words = philox_block(seed, offset + n / (wide ? 2 : 4));
    const uint32_t word = words[n % 4];
    const uint64_t pair = words[2 * (n % 2)] | uint64_t{words[2 * (n % 2) + 1]} << 32;
    switch (out.dtype) {
      case DType::kI32: out.set_integer(i, static_cast<int32_t>(word)); break;
      case DType::kF32: out.set_real(i, std::ldexp(static_cast<double>(word >> 8), -24)); break;
      case DType::kI64: out.set_integer(i, static_cast<int64_t>(pair)); break;
      default: out.set_real(i, std::ldexp(static_cast<double>(pair >> 11), -53));
    }
  }
}

constexpr Reference kReferences[] = {
    {"aten::bmm", bmm},
    {"aten::convolution", convolution},
    {"ltc::philox", philox},
};

}  // namespace

std::span<const Reference> product_references() { return kReferences; }

}  // namespace ltc::conformance
