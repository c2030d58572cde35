// Images from row-major to channels-last and back, in tiles of 8 x 8: ATen's copy goes one element at a time.
#pragma once
#include <ATen/core/Tensor.h>
#include <c10/core/MemoryFormat.h>

namespace ltc::torchscript {

// As self.contiguous(format), which does all but float32 images of one format in the other. An image of one channel gets the
// strides of the format, which convolutions go by.
at::Tensor in_format(const at::Tensor& self, at::MemoryFormat format);

inline at::Tensor images_last(const at::Tensor& images) {
  return in_format(images.resolve_neg(), at::MemoryFormat::ChannelsLast);
}

}  // namespace ltc::torchscript
