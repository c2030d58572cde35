#include <torch/library.h>

#include "core/run/device/capture_state.h"
#include "core/torch/dispatch/fallback.h"
#include "core/torch/tensor/assertions.h"

namespace ltc {
namespace {

// A captured function would have to be checked at each of its calls: it is recorded again instead.
bool is_left_to_the_cpu(const at::Tensor& condition) { return t_capture || condition.numel() != 1; }

void assert_async(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const OpEntry& entry = OpEntry::of(op);
  const size_t count = entry.args.size();
  const at::Tensor condition = torch::jit::peek(*stack, 0, count).toTensor();
  if (is_left_to_the_cpu(condition)) return run_eagerly(entry, *stack, "its results are no tensors");
  assert_later(condition, count > 1 ? torch::jit::peek(*stack, 1, count).toStringRef()
                                    : "Expected Tensor with single nonzero value, but got zero");
  torch::jit::drop(*stack, count);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_assert_async", torch::CppFunction::makeFromBoxedFunction<&assert_async>());
  m.impl("_assert_async.msg", torch::CppFunction::makeFromBoxedFunction<&assert_async>());
}

}  // namespace
}  // namespace ltc
