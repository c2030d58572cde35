// Elements of operands that do not lie one after the other as floats.
#pragma once
#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>

#include <cstdint>

namespace ltc::torchscript {

struct Dim {
  int64_t size, stride;
};

// Where the elements of an operand lie, in row-major order of the program's sizes; dims of size 1 are gone, others joined.
using Dims = c10::SmallVector<Dim, 6>;

Dims dims_of(const at::Tensor& tensor, at::IntArrayRef sizes);

// `count` elements from the `first` one on.
void load(float* out, const float* data, const Dims& dims, int64_t first, int64_t count);
void load(float* out, const uint8_t* data, const Dims& dims, int64_t first, int64_t count);

}  // namespace ltc::torchscript
