// x[i] = y arrives as _index_put_impl_: recorded as index_put, so that plugins meet one op.
#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/index_put.h>
#include <torch/library.h>

namespace ltc {
namespace {

at::Tensor& index_put_impl_(at::Tensor& self, const c10::List<std::optional<at::Tensor>>& indices, const at::Tensor& values,
                            bool accumulate, bool /*unsafe*/) {
  return self.copy_(at::index_put(self, indices, values, accumulate));
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { m.impl("_index_put_impl_", index_put_impl_); }

}  // namespace
}  // namespace ltc
