// Reads and writes through a geometry whose offset enters a program by value, for programs that run them on the host.
#include <ATen/ops/as_strided.h>
#include <ATen/ops/as_strided_scatter.h>
#include <torch/library.h>

namespace ltc {
namespace {

at::Tensor as_strided(const at::Tensor& self, c10::SymIntArrayRef size, c10::SymIntArrayRef stride, const at::Scalar& offset) {
  return at::as_strided_symint(self.contiguous(), size, stride, offset.toLong());
}

at::Tensor as_strided_scatter(const at::Tensor& self, const at::Tensor& src, c10::SymIntArrayRef size, c10::SymIntArrayRef stride,
                              const at::Scalar& offset) {
  return at::as_strided_scatter_symint(self.contiguous(), src, size, stride, offset.toLong());
}

TORCH_LIBRARY_FRAGMENT(ltc, m) {
  m.def("as_strided(Tensor self, SymInt[] size, SymInt[] stride, Scalar storage_offset) -> Tensor");
  m.def("as_strided_scatter(Tensor self, Tensor src, SymInt[] size, SymInt[] stride, Scalar storage_offset) -> Tensor");
}
TORCH_LIBRARY_IMPL(ltc, CPU, m) {
  m.impl("as_strided", as_strided);
  m.impl("as_strided_scatter", as_strided_scatter);
}

}  // namespace
}  // namespace ltc
