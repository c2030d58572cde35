// Views without the dispatcher: a small program has as many of them as of kernels.
#pragma once
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <vector>

namespace ltc::torchscript {

// A view of the row-major contents; a copy where they lie otherwise.
at::Tensor view(const at::Tensor& self, at::IntArrayRef size);

// ltc_torchscript::view or reshape, and aten::permute, operands in the order of their schemas.
at::Tensor view_of(const std::vector<c10::IValue>& operands);
at::Tensor permute(const std::vector<c10::IValue>& operands);

}  // namespace ltc::torchscript
