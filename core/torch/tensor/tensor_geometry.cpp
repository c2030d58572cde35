#include "core/torch/tensor/tensor_geometry.h"

#include "core/torch/tensor/tensor.h"

namespace ltc {

TensorGeometry::TensorGeometry(const c10::TensorImpl& tensor)
    : dtype(c10::typeMetaToScalarType(tensor.dtype())),
      sizes(tensor.sizes().vec()),
      strides(tensor.strides().vec()),
      offset(tensor.storage_offset()),
      conj(tensor.is_conj()),
      neg(tensor.is_neg()) {}

bool TensorGeometry::fits(const c10::TensorImpl& tensor) const {
  return dtype == c10::typeMetaToScalarType(tensor.dtype()) && tensor.sizes().equals(sizes) && tensor.strides().equals(strides) &&
         offset == tensor.storage_offset() && conj == tensor.is_conj() && neg == tensor.is_neg();
}

at::Tensor TensorGeometry::over(c10::Storage storage) const {
  at::Tensor result = tensor_over(std::move(storage), dtype);
  auto* impl = result.unsafeGetTensorImpl();
  impl->set_sizes_and_strides(sizes, strides, offset);
  if (conj) impl->_set_conj(true);
  if (neg) impl->_set_neg(true);
  return result;
}

}  // namespace ltc
