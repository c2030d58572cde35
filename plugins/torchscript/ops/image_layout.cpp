#include "torchscript/ops/image_layout.h"

#include <ATen/EmptyTensor.h>

#include <algorithm>

#include "cpu_kernels/images.h"
#include "torchscript/threads/threads.h"

namespace ltc::torchscript {
namespace {

constexpr int64_t kChunkColumns = 16;     // of a chunk of work: a cache line
constexpr int64_t kChunkGrain = 1 << 14;  // elements

// An image of one channel or pixel has both formats, and gets the strides of either: operators take the format from these.
at::Tensor with_strides_of(at::Tensor image, at::MemoryFormat format) {
  if (format != at::MemoryFormat::ChannelsLast || image.dim() != 4 || image.suggest_memory_format() == format) return image;
  return image.as_strided(image.sizes(), c10::get_channels_last_strides_2d(image.sizes()));
}

}  // namespace

at::Tensor in_format(const at::Tensor& self, at::MemoryFormat format) {
  constexpr auto kRowMajor = at::MemoryFormat::Contiguous, kChannelsLast = at::MemoryFormat::ChannelsLast;
  const bool is_image =
      self.device().is_cpu() && self.dim() == 4 && self.scalar_type() == at::kFloat && !self.is_neg() && self.numel() > 0;
  const bool turns =
      is_image && !self.is_contiguous(format) &&
      ((format == kRowMajor && self.is_contiguous(kChannelsLast)) || (format == kChannelsLast && self.is_contiguous()));
  if (!turns) return with_strides_of(self.contiguous(format), format);
  const int64_t channels = self.size(1), pixels = self.size(2) * self.size(3);
  const int64_t rows = format == kRowMajor ? pixels : channels, columns = format == kRowMajor ? channels : pixels;
  at::Tensor out(at::detail::empty_cpu(self.sizes(), at::kFloat, /*pin_memory=*/false, format));
  const float* const from = self.const_data_ptr<float>();
  float* const to = out.mutable_data_ptr<float>();
  const int64_t chunks = (columns + kChunkColumns - 1) / kChunkColumns;  // of an image
  divide(self.size(0) * chunks, std::max<int64_t>(1, kChunkGrain / (rows * kChunkColumns)), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t image = i / chunks * rows * columns, first = i % chunks * kChunkColumns;
      cpu::transpose(from + image + first, rows, std::min(kChunkColumns, columns - first), columns, to + image + first * rows);
    }
  });
  return out;
}

}  // namespace ltc::torchscript
