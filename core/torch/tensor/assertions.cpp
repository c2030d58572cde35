#include "core/torch/tensor/assertions.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <vector>

#include "core/base/env.h"
#include "core/ir/location.h"
#include "core/torch/tensor/tensor.h"
#include "core/torch/tensor/transfer.h"

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
    TORCH_CHECK(read_value(assertion.condition, "assertion").item().toBool(), assertion.message);
  }
}

}  // namespace ltc
