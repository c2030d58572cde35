#include "torchscript/ops/max_pool.h"

#include <ATen/EmptyTensor.h>
#include <ATen/native/Pool.h>
#include <ATen/ops/max_pool2d_with_indices.h>
#include <ATen/ops/relu.h>

#include <algorithm>
#include <limits>

#include "cpu_kernels/images.h"
#include "torchscript/threads/threads.h"

namespace ltc::torchscript {

constexpr int64_t kPoolGrain = 1 << 15;

std::tuple<at::Tensor, at::Tensor> max_pool2d_with_indices(const at::Tensor& self, at::IntArrayRef kernel, at::IntArrayRef stride,
                                                           at::IntArrayRef padding, at::IntArrayRef dilation, bool ceil_mode,
                                                           bool relu, bool indices) {
  const auto theirs = [&] {
    return at::max_pool2d_with_indices(relu ? at::relu(self) : self, kernel, stride, padding, dilation, ceil_mode);
  };
  const at::MemoryFormat format = self.suggest_memory_format();
  const bool is_image = self.scalar_type() == at::kFloat && (self.dim() == 3 || self.dim() == 4) && self.is_contiguous(format) &&
                        !self.is_neg() && self.numel() > 0 && self.numel() <= std::numeric_limits<int32_t>::max();
  if (!is_image) return theirs();
  const auto window = [&](size_t dim) {
    const auto pick = [dim](at::IntArrayRef list) { return list[list.size() == 1 ? 0 : dim]; };
    cpu::Window one{pick(kernel),   stride.empty() ? pick(kernel) : pick(stride), pick(padding),
                    pick(dilation), self.size(-2 + static_cast<int64_t>(dim)),    0};
    const bool sane = one.size > 0 && one.stride > 0 && one.dilation > 0 && one.padding >= 0 && one.padding <= one.size / 2;
    if (sane) one.out = at::native::pooling_output_shape(one.in, one.size, one.padding, one.stride, one.dilation, ceil_mode);
    return one;
  };
  const cpu::Pooling pooling{window(0), window(1), self.size(-3), relu};
  const cpu::Window &rows = pooling.rows, &columns = pooling.columns;
  if (rows.out <= 0 || columns.out <= 0 || columns.out > cpu::kMostColumns) return theirs();  // its errors too
  auto sizes = self.sizes().vec();
  sizes[sizes.size() - 2] = rows.out, sizes[sizes.size() - 1] = columns.out;
  const auto make = [&](at::ScalarType type) {
    return at::Tensor(at::detail::empty_cpu(sizes, type, /*pin_memory=*/false, format));
  };
  at::Tensor out = make(at::kFloat), where = indices ? make(at::kLong) : at::Tensor();
  const float* const from = self.const_data_ptr<float>();
  float* const to = out.mutable_data_ptr<float>();
  int64_t* const to_indices = indices ? where.mutable_data_ptr<int64_t>() : nullptr;
  const bool by_channels = format == at::MemoryFormat::ChannelsLast;
  const auto pool = by_channels ? cpu::pool_pixels : cpu::pool_row;
  const int64_t together = by_channels ? pooling.channels : 1;  // of an image's channels
  const int64_t image = rows.in * columns.in * together, row = columns.out * together;
  const int64_t count = self.numel() / image * rows.out;
  divide(count, std::max<int64_t>(1, kPoolGrain / (row * rows.size * columns.size)), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      pool(pooling, from + i / rows.out * image, i % rows.out, to + i * row, indices ? to_indices + i * row : nullptr);
    }
  });
  return {std::move(out), std::move(where)};
}

}  // namespace ltc::torchscript
