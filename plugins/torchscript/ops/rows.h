// Sums, layer normalisation and softmax of dense float32 tensors, and rows by index. ATen walks columns in short chunks and a row
// in one; these read memory once, in the order in which it lies, and divide the work in chunks that do not depend on the number
// of threads.
#pragma once
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <optional>
#include <tuple>
#include <vector>

namespace ltc::torchscript {

// As aten::sum.dim_IntList, aten::mean.dim, aten::native_layer_norm and aten::_softmax, to which everything else goes.
at::Tensor sum(const at::Tensor& self, at::OptionalIntArrayRef dim, bool keepdim, std::optional<at::ScalarType> dtype);
at::Tensor mean(const at::Tensor& self, at::OptionalIntArrayRef dim, bool keepdim, std::optional<at::ScalarType> dtype);
std::tuple<at::Tensor, at::Tensor, at::Tensor> native_layer_norm(const at::Tensor& input, at::IntArrayRef normalized_shape,
                                                                 const std::optional<at::Tensor>& weight,
                                                                 const std::optional<at::Tensor>& bias, double eps);
at::Tensor softmax(const at::Tensor& self, int64_t dim, bool half_to_float);

// Adds the bias to each row of x, and `other` if it is defined, which is x's size; with `relu`, what is negative becomes 0. All
// plain.
void add_to_rows(at::Tensor& x, const at::Tensor& bias, const at::Tensor& other, bool relu);

// aten::embedding, operands in the order of the schema.
at::Tensor embedding(const std::vector<c10::IValue>& operands);

// Float32, row-major, not empty.
bool is_plain(const at::Tensor& tensor);

}  // namespace ltc::torchscript
