// Products of matrices, without the dispatcher.
#pragma once
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <vector>

namespace ltc::torchscript {

// aten::mm and aten::addmm, operands in the order of their schemas. With several threads the result is cut into chunks by shapes
// alone, and each is one thread's: how many threads there are at the moment changes no bit.
at::Tensor mm(const std::vector<c10::IValue>& operands);
at::Tensor addmm(const std::vector<c10::IValue>& operands);

// aten::mm so.
at::Tensor multiply_matrices(const at::Tensor& a, const at::Tensor& b);

}  // namespace ltc::torchscript
