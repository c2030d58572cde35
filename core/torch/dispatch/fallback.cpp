#include "core/torch/dispatch/fallback.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <unordered_map>

#include "core/report/fallback_policy.h"
#include "core/report/timeline.h"
#include "core/torch/dispatch/infer.h"
#include "core/torch/dispatch/map_tensors.h"
#include "core/torch/tensor/generator.h"
#include "core/torch/tensor/sparse.h"
#include "core/torch/tensor/transfer.h"

namespace ltc {
namespace {

// One call of a CPU kernel in the place of a lazy one.
class EagerCall {
 public:
  EagerCall(const OpEntry& entry, torch::jit::Stack& stack) : schema_(entry.called.schema()), stack_(stack) {}

  void run(const c10::OperatorHandle& op) {
    const size_t count = schema_.arguments().size();
    const size_t begin = stack_.size() - count;
    for (size_t i = 0; i < count; ++i) {
      const auto* alias = schema_.arguments()[i].alias_info();
      fetch(stack_[begin + i], alias && alias->isWrite());
      // No generator given means the device's own, not the CPU's.
      if (schema_.arguments()[i].name() == "generator" && stack_[begin + i].isNone() && device_) {
        stack_[begin + i] = cpu_generator_for(default_generator(static_cast<c10::DeviceIndex>(device_->ordinal())));
      }
    }
    op.callBoxed(&stack_);
    for (const auto& [lazy, cpu] : written_) write_back(lazy, cpu);
    for (size_t i = stack_.size() - schema_.returns().size(); i < stack_.size(); ++i) {
      stack_[i] = map_tensors(stack_[i], [this](const at::Tensor& tensor) { return upload(tensor); });
    }
  }

  int64_t moved_bytes() const { return moved_bytes_; }

 private:
  // Tensors that share memory share it here too: the kernel finds out itself that it is to write what it reads.
  at::Tensor copied(const at::Tensor& tensor) {
    at::Tensor& first = of_storage_[tensor.storage().unsafeGetStorageImpl()];
    if (!first.defined() || first.storage().nbytes() != tensor.storage().nbytes()) {
      return first = to_cpu(tensor, metrics::kFallbackBarrier);
    }
    at::Tensor alias = at::empty({0}, tensor.options().device(at::kCPU));
    alias.set_(first.storage(), tensor.storage_offset(), tensor.sizes(), tensor.strides());
    alias._set_conj(tensor.is_conj());
    alias._set_neg(tensor.is_neg());
    return alias;
  }

  // A kernel may ask whether two of its operands are the same tensor.
  template <typename Fetch>
  at::Tensor fetch_sparse(const at::Tensor& tensor, const Fetch& fetch_part) {
    at::Tensor& cpu = of_sparse_[tensor.unsafeGetTensorImpl()];
    if (!cpu.defined()) cpu = map_parts(tensor, fetch_part);
    return cpu;
  }

  at::Tensor fetch(const at::Tensor& tensor, bool is_written) {
    if (!tensor.defined() || !is_lazy(tensor)) return tensor;
    if (!device_) device_ = &lazy_device(tensor.device());
    const auto fetch_part = [&](const at::Tensor& part) {
      at::Tensor cpu = copied(part);
      moved_bytes_ += static_cast<int64_t>(cpu.nbytes());
      return cpu;
    };
    at::Tensor cpu = is_sparse(tensor) ? fetch_sparse(tensor, fetch_part) : fetch_part(tensor);
    if (is_written) written_.emplace_back(tensor, cpu);
    if (gives_views_ && !is_sparse(tensor)) viewed_.emplace_back(tensor, cpu);
    return cpu;
  }

  void fetch(c10::IValue& value, bool is_written) {
    if (value.isDevice()) {
      if (value.toDevice().type() == kLtc && !device_) device_ = &lazy_device(value.toDevice());
      value = c10::Device(at::kCPU);
    } else if (value.isGenerator()) {
      value = cpu_generator_for(value.toGenerator());
    } else {
      value = map_tensors(value, [&](const at::Tensor& tensor) { return fetch(tensor, is_written); });
    }
  }

  // An op may have resized what it writes.
  void write_back(const at::Tensor& lazy, const at::Tensor& cpu) {
    if (is_sparse(lazy)) return assign_sparse(lazy, upload_new(cpu));
    if (lazy.sizes() != cpu.sizes()) {
      lazy.resize_(cpu.sizes());
      if (cpu.is_non_overlapping_and_dense()) {
        lazy.unsafeGetTensorImpl()->set_sizes_and_strides(cpu.sizes(), cpu.strides(), lazy.storage_offset());
      }
    }
    write_cpu(lazy, cpu);
    moved_bytes_ += static_cast<int64_t>(cpu.nbytes());
  }

  at::Tensor upload(const at::Tensor& result) {
    if (!result.defined() || !device_) return result;
    for (const auto& [lazy, cpu] : written_) {
      if (cpu.is_same(result)) return lazy;
    }
    for (const auto& [lazy, cpu] : viewed_) {  // a view op of another library: the same view of the lazy tensor
      if (!is_sparse(result) && cpu.is_alias_of(result) && cpu.scalar_type() == result.scalar_type())
        return lazy.as_strided(result.sizes(), result.strides(), result.storage_offset());
    }
    return upload_new(result);
  }

  at::Tensor upload_new(const at::Tensor& result) {
    const auto upload_part = [&](const at::Tensor& part) {
      moved_bytes_ += static_cast<int64_t>(part.nbytes());
      return to_lazy(*device_, part);
    };
    return is_sparse(result) ? map_parts(result, upload_part) : upload_part(result);
  }

  const c10::FunctionSchema& schema_;
  const bool gives_views_ = std::ranges::any_of(schema_.returns(), [](const auto& result) { return result.alias_info(); });
  torch::jit::Stack& stack_;
  LazyDevice* device_ = nullptr;
  int64_t moved_bytes_ = 0;                                          // both ways
  std::unordered_map<c10::StorageImpl*, at::Tensor> of_storage_;     // by lazy storage: the CPU copy that was made first
  std::unordered_map<c10::TensorImpl*, at::Tensor> of_sparse_;       // by lazy tensor
  std::vector<std::pair<at::Tensor, at::Tensor>> written_, viewed_;  // lazy, its CPU copy
};

}  // namespace

void run_eagerly(const OpEntry& entry, torch::jit::Stack& stack, const char* reason) {
  const std::string name = toString(entry.called.operator_name());
  timeline::Span span("fallback");
  span.because(name);
  span.detail(reason);
  span.here();
  check_fallback(name, reason, current_location());
  at::AutoDispatchBelowADInplaceOrView below_autograd;
  EagerCall call(entry, stack);
  call.run(entry.called);
  span.count(1, call.moved_bytes());
  count_fallback(name, call.moved_bytes());
}

}  // namespace ltc
