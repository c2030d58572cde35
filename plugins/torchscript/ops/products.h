// Products of matrices, without the dispatcher.
#pragma once
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

#include <vector>

namespace ltc::torchscript {

// Of the stack's operands, in the order of the schema.
using Product = at::Tensor (*)(const std::vector<c10::IValue>& operands);

// What computes aten::mm and aten::addmm; null for any other operator. With several threads the result is cut into chunks by
// shapes alone, and each is one thread's: how many threads there are at the moment changes no bit.
Product find_product(const c10::OperatorHandle& op);

// aten::mm so.
at::Tensor multiply_matrices(const at::Tensor& a, const at::Tensor& b);

}  // namespace ltc::torchscript
