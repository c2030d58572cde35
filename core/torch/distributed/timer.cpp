// The timer of DistributedDataParallel's logger for tensors of the device. It reports when the host records: a step runs as a
// whole, so the device has no such times.
#include <torch/csrc/distributed/c10d/reducer_timer.hpp>

#include <optional>

namespace ltc {
namespace {

class HostTimer : public c10d::Timer {
 public:
  explicit HostTimer(c10::Device) {}

  std::optional<int64_t> measureDifference(Event start, Event end) override {
    const std::optional<int64_t> begun = getTimestamp(start), ended = getTimestamp(end);
    if (!begun || !ended || *ended <= *begun) return {};  // a wrong order: not both of this iteration
    return *ended - *begun;
  }
};

}  // namespace
}  // namespace ltc

namespace c10d {
C10_REGISTER_TYPED_CLASS(TimerRegistry, c10::kPrivateUse1, ltc::HostTimer)
}
