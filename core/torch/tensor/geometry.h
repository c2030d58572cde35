// Reading and writing storages through tensors: any tensor is a geometry (sizes, strides, offset, dtype) over its storage's
// value.
#pragma once

#include "core/run/device/recorder.h"
#include "core/torch/tensor/number.h"
#include "core/torch/tensor/tensor.h"

namespace ltc {

// The type that a tensor's geometry has, whether or not it is dense.
TypeId geometry_of(const c10::TensorImpl* tensor);

// Conjugation and negation that PyTorch has put off. It resolves them before most ops, but not before products of matrices.
inline bool has_lazy_bits(const c10::TensorImpl* tensor) { return tensor->is_conj() || tensor->is_neg(); }

// The declared type of what the storage holds if the tensor is exactly that; else kNoType.
inline TypeId whole_type(const Recorder& recorder, const c10::TensorImpl* tensor, const LazyStorage& storage) {
  if (recorder.is_empty(storage) || tensor->storage_offset() != 0 || has_lazy_bits(tensor)) return kNoType;
  const Type& type = recorder.declared(storage);
  const c10::IntArrayRef sizes = tensor->sizes(), strides = tensor->strides();
  const size_t rank = type.sizes.size();
  if (sizes.size() != rank || to_scalar_type(type.dtype) != c10::typeMetaToScalarType(tensor->dtype())) return kNoType;
  for (size_t dim = 0; dim < rank; ++dim) {
    if (sizes[dim] != type.sizes[dim] || strides[dim] != type.strides[dim]) return kNoType;
  }
  return recorder.type(storage);
}

// The tensor's contents as a value of the current trace: the storage's own value, or a view node on it.
ValueId read(Recorder& recorder, const c10::TensorImpl* tensor);
// The same through another geometry of the tensor's dtype: a view that needs no tensor.
ValueId read_as(Recorder& recorder, const c10::TensorImpl* tensor, TypeId geometry);

// The tensor's storage now holds `value` where the tensor's elements are, and what it held elsewhere. `value` has the tensor's
// dtype and sizes.
void write(Recorder& recorder, const c10::TensorImpl* tensor, ValueId value);

// Makes the storage's value cover so many bytes: what it held stays first, the rest is zero.
void grow_value(Recorder& recorder, LazyStorage& storage, size_t size_bytes);

// Small nodes that several places need.
ValueId emit_full(Recorder& recorder, TypeId type, const c10::Scalar& fill);
ValueId emit_cast(Recorder& recorder, ValueId value, DType dtype);
ValueId emit_expand(Recorder& recorder, ValueId value, c10::IntArrayRef sizes);
ValueId emit_number(Recorder& recorder, const Number& number);

}  // namespace ltc
