// The few operators of the plugin's own, in the torch namespace "ltc_torchscript".
//
//   number(Scalar value, *, ScalarType? dtype=None) -> Tensor   a Python number: rank 0 and weak in type promotion
//   to_float(Scalar value) -> float                a scalar where a schema wants a float
//   philox(Scalar seed, Scalar offset, int[] size, *, ScalarType dtype, Device? device=None) -> Tensor
//   in_format(Tensor(a) self, int memory_format) -> Tensor(a)   of an image
//   view, reshape, view_dtype, view_as_complex, as_strided, as_strided_scatter, as_strided_scatter_   of the row-major contents
//
// as_strided and its kin count strides and offsets in the row-major order of their operand, never in its memory.
#pragma once
#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>

namespace ltc::torchscript {

// Once per process, however often it is called and from however many copies of this library.
void register_operators();

// dtype: what the number is held as, where that is known to change no result; the default is its own.
at::Tensor make_number(const at::Scalar& value, std::optional<at::ScalarType> dtype);
at::Tensor make_number_on(c10::Device device, const at::Scalar& value, std::optional<at::ScalarType> dtype);

}  // namespace ltc::torchscript
