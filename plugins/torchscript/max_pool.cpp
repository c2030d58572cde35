#include "max_pool.h"

#include <ATen/EmptyTensor.h>
#include <ATen/native/Pool.h>
#include <ATen/ops/max_pool2d_with_indices.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "threads.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define LTC_FASTEST __attribute__((target_clones("arch=skylake-avx512", "avx2", "default")))
#else
#define LTC_FASTEST
#endif

namespace ltc::torchscript {
namespace {

constexpr int64_t kMostColumns = 1024;  // of a result
constexpr int64_t kParallelGrain = 1 << 15;

// Of one dim.
struct Window {
  int64_t size, stride, padding, dilation, in, out;

  int64_t first_inside(int64_t tap) const {  // result whose tap lies in the image
    const int64_t missing = padding - tap * dilation;
    return missing <= 0 ? 0 : (missing + stride - 1) / stride;
  }
  int64_t end_inside(int64_t tap) const {
    const int64_t last = in - 1 + padding - tap * dilation;
    return last < 0 ? 0 : std::min(out, last / stride + 1);
  }
};

// A NaN wins, as in ATen.
template <int kStride>
inline void update(float* best, int32_t* where, const float* row, int32_t index, int64_t stride, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    const int64_t at = i * (kStride ? kStride : stride);
    const float value = row[at];
    const bool wins = (value > best[i]) | (value != value);
    best[i] = wins ? value : best[i];
    where[i] = wins ? index + static_cast<int32_t>(at) : where[i];
  }
}

// One tap of a row of windows; `index` is where its first one lies.
LTC_FASTEST void tap(float* best, int32_t* where, const float* row, int32_t index, int64_t stride, int64_t begin, int64_t end) {
  switch (stride) {
    case 1: return update<1>(best, where, row, index, stride, begin, end);
    case 2: return update<2>(best, where, row, index, stride, begin, end);
    default: return update<0>(best, where, row, index, stride, begin, end);
  }
}

void pool_row(const float* image, const Window& rows, const Window& columns, int64_t row, float* best, int64_t* indices) {
  const int64_t top = row * rows.stride - rows.padding;
  int64_t first_row = top;
  while (first_row < 0) first_row += rows.dilation;
  int32_t where[kMostColumns];
  for (int64_t i = 0; i < columns.out; ++i) {
    int64_t first_column = i * columns.stride - columns.padding;
    while (first_column < 0) first_column += columns.dilation;
    best[i] = -std::numeric_limits<float>::infinity();
    where[i] = static_cast<int32_t>(first_row * columns.in + first_column);
  }
  for (int64_t y = 0; y < rows.size; ++y) {
    const int64_t from = top + y * rows.dilation;
    if (from < 0 || from >= rows.in) continue;
    for (int64_t x = 0; x < columns.size; ++x) {
      const int64_t offset = from * columns.in + x * columns.dilation - columns.padding;
      tap(best, where, image + offset, static_cast<int32_t>(offset), columns.stride, columns.first_inside(x),
          columns.end_inside(x));
    }
  }
  std::copy_n(where, columns.out, indices);
}

}  // namespace

std::tuple<at::Tensor, at::Tensor> max_pool2d_with_indices(const at::Tensor& self, at::IntArrayRef kernel, at::IntArrayRef stride,
                                                           at::IntArrayRef padding, at::IntArrayRef dilation, bool ceil_mode) {
  const auto theirs = [&] { return at::max_pool2d_with_indices(self, kernel, stride, padding, dilation, ceil_mode); };
  const bool is_image = self.scalar_type() == at::kFloat && (self.dim() == 3 || self.dim() == 4) && self.is_contiguous() &&
                        !self.is_neg() && self.numel() > 0 && self.numel() <= std::numeric_limits<int32_t>::max();
  if (!is_image || self.suggest_memory_format() != at::MemoryFormat::Contiguous) return theirs();
  const auto window = [&](size_t dim) {
    const auto pick = [dim](at::IntArrayRef list) { return list[list.size() == 1 ? 0 : dim]; };
    Window one{pick(kernel),   stride.empty() ? pick(kernel) : pick(stride), pick(padding),
               pick(dilation), self.size(-2 + static_cast<int64_t>(dim)),    0};
    const bool sane = one.size > 0 && one.stride > 0 && one.dilation > 0 && one.padding >= 0 && one.padding <= one.size / 2;
    if (sane) one.out = at::native::pooling_output_shape(one.in, one.size, one.padding, one.stride, one.dilation, ceil_mode);
    return one;
  };
  const Window rows = window(0), columns = window(1);
  if (rows.out <= 0 || columns.out <= 0 || columns.out > kMostColumns) return theirs();  // its errors too
  auto sizes = self.sizes().vec();
  sizes[sizes.size() - 2] = rows.out, sizes[sizes.size() - 1] = columns.out;
  at::Tensor out(at::detail::empty_cpu(sizes, at::kFloat)), indices(at::detail::empty_cpu(sizes, at::kLong));
  const float* const from = self.const_data_ptr<float>();
  float* const to = out.mutable_data_ptr<float>();
  int64_t* const where = indices.mutable_data_ptr<int64_t>();
  const int64_t count = self.numel() / (rows.in * columns.in) * rows.out;
  const int64_t weight = columns.out * rows.size * columns.size;
  divide(count, std::max<int64_t>(1, kParallelGrain / weight), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const float* const image = from + i / rows.out * rows.in * columns.in;
      pool_row(image, rows, columns, i % rows.out, to + i * columns.out, where + i * columns.out);
    }
  });
  return {std::move(out), std::move(indices)};
}

}  // namespace ltc::torchscript
