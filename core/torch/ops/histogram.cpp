// histc: recorded for floats. PyTorch's CPU has none for integers, which device code counts exactly, as CUDA does.
#include <ATen/ScalarOps.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <torch/library.h>

#include "core/torch/dispatch/boxed_kernel.h"

namespace ltc {
namespace {

// The ends that are counted, without reading a value: where both are equal, the smallest and the largest element.
std::pair<at::Tensor, at::Tensor> ends(const at::Tensor& elements, int64_t min, int64_t max) {
  const auto number = [](int64_t value) { return at::native::wrapped_scalar_tensor(value); };
  if (min != max) return {number(min), number(max)};
  if (elements.numel() == 0) return {number(min - 1), number(max + 1)};
  const at::Tensor smallest = elements.amin(), largest = elements.amax(), is_one = smallest.eq(largest).to(at::kLong);
  return {smallest.sub(is_one), largest.add(is_one)};
}

at::Tensor count(const at::Tensor& self, int64_t bins, int64_t min, int64_t max) {
  TORCH_CHECK(bins > 0, "bins must be > 0");
  TORCH_CHECK(min <= max, "max must be larger than min");
  const at::Tensor elements = self.reshape({-1}).to(at::kLong);
  const auto [low, high] = ends(elements, min, max);
  const at::Tensor bin = elements.sub(low).mul(bins).div(high.sub(low), "floor").clamp_max(bins - 1);
  const at::Tensor is_inside = elements.ge(low).logical_and(elements.le(high));
  const at::Tensor place = at::where(is_inside, bin, at::native::wrapped_scalar_tensor(bins));  // a bin more for all others
  const at::Tensor counts = at::zeros({bins + 1}, self.options());
  return counts.scatter_add(0, place, at::ones_like(place, self.options())).narrow(0, 0, bins).clone();
}

void histc(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  OpEntry& entry = OpEntry::of(op);
  const size_t arguments = op.schema().arguments().size();
  const c10::IValue* args = stack->data() + (stack->size() - arguments);
  const at::Tensor& self = args[0].toTensor();
  if (!c10::isIntegralType(self.scalar_type(), false)) return record(entry, *stack);
  at::Tensor result = count(self, args[1].toInt(), args[2].toScalar().toLong(), args[3].toScalar().toLong());
  if (arguments > 4) {
    at::Tensor out = args[4].toTensor();
    at::native::resize_output(out, result.sizes());
    result = out.copy_(result);
  }
  torch::jit::drop(*stack, arguments);
  stack->emplace_back(std::move(result));
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("histc", torch::CppFunction::makeFromBoxedFunction<&histc>());
  m.impl("histc.out", torch::CppFunction::makeFromBoxedFunction<&histc>());
}

}  // namespace
}  // namespace ltc
