// Recording of any op by its schema: one boxed kernel serves every op of every library.
#pragma once

#include <ATen/core/stack.h>
#include <torch/csrc/autograd/variable.h>

#include "core/torch/dispatch/op_entry.h"

namespace ltc {

// Pops the op's arguments and pushes its results: lazy tensors, or the arguments that it writes. Throws what PyTorch would.
void record(OpEntry& entry, torch::jit::Stack& stack);

// Whether nothing stands between autograd and the device: no dispatch mode, no functionalization, no bits to resolve.
inline bool reaches_device(c10::DispatchKeySet keys) {
  const auto below = (keys & c10::after_autograd_keyset).remove(c10::DispatchKey::ADInplaceOrView);
  return below.highestFunctionalityKey() == c10::DispatchKey::Dense;
}

inline bool has_forward_gradient(const at::Tensor& tensor) {
  const auto* meta = static_cast<torch::autograd::AutogradMeta*>(tensor.unsafeGetTensorImpl()->autograd_meta());
  return meta && meta->fw_grad_;
}
// Whether an op of this tensor, which may be undefined, leaves nothing to autograd.
inline bool needs_no_gradient(const at::Tensor& tensor, bool grad_mode) {
  const auto* meta = static_cast<torch::autograd::AutogradMeta*>(tensor.unsafeGetTensorImpl()->autograd_meta());
  return !meta || (!meta->fw_grad_ && !(grad_mode && meta->requires_grad()));
}
inline bool has_forward_gradient(const at::Scalar&) { return false; }
inline bool needs_no_gradient(const at::Scalar&, bool) { return true; }

// The kernel for one op: keeps the op's entry, so that a call looks nothing up.
class BoxedKernel final : public c10::OperatorKernel {
 public:
  explicit BoxedKernel(const c10::OperatorHandle& handle) : handle_(handle) {}
  void operator()(const c10::OperatorHandle&, c10::DispatchKeySet, torch::jit::Stack* stack) {
    OpEntry* entry = entry_.load(std::memory_order_acquire);
    if (!entry) [[unlikely]] {
      entry = &OpEntry::of(handle_);
      entry_.store(entry, std::memory_order_release);
    }
    record(*entry, *stack);
  }

 private:
  c10::OperatorHandle handle_;
  std::atomic<OpEntry*> entry_{nullptr};
};

// The kernel for ops without one of their own.
void record_any(const c10::OperatorHandle& handle, torch::jit::Stack* stack);

}  // namespace ltc
