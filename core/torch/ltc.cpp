#include "core/torch/ltc.h"

#include <c10/core/DeviceType.h>

#include <cstdlib>
#include <mutex>

#include "core/torch/fallback.h"
#include "core/torch/tensor.h"

namespace ltc {

void register_device() {
  static std::once_flag once;
  std::call_once(once, [] {
    c10::register_privateuse1_backend(kDeviceName);
    install_host_runner();
    std::atexit(&shut_down);
  });
}

void mark_step() {
  LazyDevice::for_each([](LazyDevice& device) { device.sync(metrics::kMarkStep); });
}

void wait_device_ops() {
  LazyDevice::for_each([](LazyDevice& device) { device.wait(); });
}

int64_t counter_value(const std::string& name) { return metrics::counter_value(name); }
std::vector<std::string> counter_names() { return metrics::counter_names(); }
std::string metrics_report() { return metrics::report(); }
void reset_metrics() { metrics::reset(); }
void shut_down() { LazyDevice::shut_down(); }

}  // namespace ltc
