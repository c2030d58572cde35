// A tensor apart from its storage.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace ltc {

// The part of a tensor that is not its storage.
struct TensorGeometry {
  c10::ScalarType dtype;
  std::vector<int64_t> sizes, strides;
  int64_t offset;
  bool conj, neg;

  explicit TensorGeometry(const c10::TensorImpl& tensor);
  bool fits(const c10::TensorImpl& tensor) const;
  at::Tensor over(c10::Storage storage) const;
  bool operator==(const TensorGeometry&) const = default;
};

}  // namespace ltc
