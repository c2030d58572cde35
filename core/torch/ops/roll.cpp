// roll along one dim by a number: its shift enters a program by value.
#include <ATen/ops/roll.h>
#include <torch/library.h>

namespace ltc {
namespace {

at::Tensor roll_along(const at::Tensor& self, const at::Scalar& shift, int64_t dim) {
  static const auto recorded = c10::Dispatcher::singleton()
                                   .findSchemaOrThrow("ltc::roll", "")
                                   .typed<at::Tensor(const at::Tensor&, const at::Scalar&, int64_t)>();
  return recorded.call(self, shift, dim);
}

// As PyTorch does: without dims the elements in a row; along several dims one after the other.
at::Tensor roll(const at::Tensor& self, c10::SymIntArrayRef symbolic, c10::IntArrayRef dims) {
  const auto shifts = C10_AS_INTARRAYREF_SLOW(symbolic);
  TORCH_CHECK(!shifts.empty(), "`shifts` required");
  if (dims.empty() && shifts.size() == 1) return roll_along(self.contiguous().view(-1), shifts[0], 0).view(self.sizes());
  TORCH_CHECK(shifts.size() == dims.size(), "shifts and dimensions must align. shifts: ", shifts.size(), ", dims:", dims.size());
  at::Tensor result = self;
  for (size_t i = 0; i < dims.size(); ++i) result = roll_along(result, shifts[i], dims[i]);
  return result;
}

at::Tensor roll_on_cpu(const at::Tensor& self, const at::Scalar& shift, int64_t dim) {
  const int64_t size = self.dim() ? self.size(dim) : 1;
  return size ? at::roll(self, shift.toLong() % size, dim) : at::roll(self, 0, dim);
}

// The geometry of a large one.
at::Tensor roll_on_meta(const at::Tensor& self, const at::Scalar&, int64_t dim) { return at::roll(self, 0, dim); }

TORCH_LIBRARY_FRAGMENT(ltc, m) { m.def("roll(Tensor self, Scalar shift, int dim) -> Tensor"); }
TORCH_LIBRARY_IMPL(ltc, CPU, m) { m.impl("roll", roll_on_cpu); }
TORCH_LIBRARY_IMPL(ltc, Meta, m) { m.impl("roll", roll_on_meta); }
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { m.impl("roll", roll); }

}  // namespace
}  // namespace ltc
