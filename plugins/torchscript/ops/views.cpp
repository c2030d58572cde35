#include "torchscript/ops/views.h"

#include <ATen/InferSize.h>
#include <ATen/TensorUtils.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/ops/as_strided_native.h>

#include "torchscript/ops/image_layout.h"

namespace ltc::torchscript {
namespace {

using Sizes = c10::SmallVector<int64_t, 6>;

at::Tensor alias(const at::Tensor& self, const Sizes& sizes, const Sizes& strides) {
  return at::native::as_strided_tensorimpl(self, sizes, strides, self.storage_offset());
}

}  // namespace

at::Tensor view(const at::Tensor& self, at::IntArrayRef size) {
  if (self.is_contiguous()) {
    const Sizes sizes(at::infer_size_dv(size, self.numel()));
    Sizes strides(sizes.size(), 1);
    for (size_t i = sizes.size(); i-- > 1;) strides[i - 1] = strides[i] * std::max<int64_t>(sizes[i], 1);
    return alias(self, sizes, strides);
  }
  if (!self.is_contiguous(at::MemoryFormat::ChannelsLast)) return self.reshape(size);
  const auto sizes = at::infer_size(size, self.numel());
  if (at::detail::computeStride(self.sizes(), self.strides(), sizes)) return self.view(sizes);
  return in_format(self, at::MemoryFormat::Contiguous).view(sizes);
}

at::Tensor view_of(const std::vector<c10::IValue>& operands) {
  const c10::List<int64_t> size = operands[1].toIntList();
  return view(operands[0].toTensor(), Sizes(size.begin(), size.end()));
}

at::Tensor permute(const std::vector<c10::IValue>& operands) {
  const at::Tensor& self = operands[0].toTensor();
  const c10::List<int64_t> dims = operands[1].toIntList();
  TORCH_CHECK(static_cast<int64_t>(dims.size()) == self.dim(), "permute: ", dims.size(), " dims for a tensor of ", self.dim());
  Sizes sizes, strides;
  for (const int64_t dim : dims) {
    const auto from = static_cast<size_t>(at::maybe_wrap_dim(dim, self.dim()));
    sizes.push_back(self.sizes()[from]);
    strides.push_back(self.strides()[from]);
  }
  return alias(self, sizes, strides);
}

}  // namespace ltc::torchscript
