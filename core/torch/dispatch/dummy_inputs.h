// Calls of PyTorch's kernels on dummy inputs in the place of lazy tensors, to learn what a call gives.
#pragma once

#include <ATen/core/stack.h>

#include <optional>
#include <vector>

#include "core/torch/dispatch/op_entry.h"
#include "core/torch/tensor/tensor.h"

namespace ltc {

// The contents of dummy inputs. Zeros are a legal input of nearly everything; some ops want a regular matrix or a divisor.
enum class Fill { kZeros, kRegular, kOnes };
constexpr Fill kFills[] = {Fill::kZeros, Fill::kRegular, Fill::kOnes};

at::Tensor filled(at::Tensor tensor, Fill fill);

// The arguments with tensors of the same geometries in the place of lazy ones, on the CPU or without data. On request those that
// share a storage do so afterwards too.
torch::jit::Stack dummy_inputs(const torch::jit::Stack& stack, Fill fill, bool share, c10::DeviceType device = at::kCPU);

// The type of a node's output that stands for `result`.
TypeId type_of_result(const at::Tensor& result);

// The results of a call, on its stack, as outputs of a node.
void add_results(const torch::jit::Stack& results, const std::vector<size_t>& returns, std::vector<TypeId>& outputs);

// The results of a call of dummy inputs; nothing if it throws.
std::optional<std::vector<TypeId>> try_on(const OpEntry& entry, const torch::jit::Stack& args);

}  // namespace ltc
