#include "core/torch/assertions.h"

#include <torch/library.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <vector>

#include "core/base/env.h"
#include "core/ir/location.h"
#include "core/run/capture.h"
#include "core/torch/fallback.h"
#include "core/torch/tensor.h"
#include "core/torch/transfer.h"

namespace ltc {
namespace {

// A program that never reads a value has them checked when there are so many.
constexpr size_t kMostAssertions = 64;

struct Assertion {
  at::Tensor condition;
  std::string message;
};

struct Pending {
  std::atomic<size_t> count{0};
  std::mutex mutex;
  std::vector<Assertion> assertions;
};

Pending& pending() {
  static auto* all = new Pending;  // outlives every thread
  return *all;
}

std::vector<Assertion> take_those_of(const LazyDevice& device) {
  Pending& all = pending();
  std::lock_guard lock(all.mutex);
  const auto others = std::ranges::stable_partition(
      all.assertions, [&](const Assertion& assertion) { return &lazy_device(assertion.condition) != &device; });
  std::vector<Assertion> taken(std::make_move_iterator(others.begin()), std::make_move_iterator(others.end()));
  all.assertions.erase(others.begin(), others.end());
  all.count = all.assertions.size();
  return taken;
}

}  // namespace

void assert_later(const at::Tensor& condition, std::string message) {
  LazyDevice& device = lazy_device(condition);
  Pending& all = pending();
  {
    std::lock_guard lock(all.mutex);
    all.assertions.push_back({condition.detach(), std::move(message) + at_location(current_location())});
    all.count = all.assertions.size();
  }
  static const bool at_once = env::is_set(env::kEager);
  if (at_once || all.count > kMostAssertions) check_assertions(device);
}

void check_assertions(LazyDevice& device) {
  if (pending().count.load(std::memory_order_relaxed) == 0) [[likely]]
    return;
  for (const Assertion& assertion : take_those_of(device)) {
    TORCH_CHECK(to_cpu(assertion.condition, metrics::kReadBarrier).item().toBool(), assertion.message);
  }
}

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
