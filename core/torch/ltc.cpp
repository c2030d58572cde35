#include "core/torch/ltc.h"

#include <c10/core/DeviceType.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <cstdlib>
#include <mutex>

#include "core/run/fallback_policy.h"
#include "core/run/fork.h"
#include "core/torch/fallback.h"
#include "core/torch/tensor.h"

namespace ltc {

namespace {

// A plugin that calls PyTorch must not be seen by the caller's dispatch modes. What a thread excludes does no harm: it is what
// kernels exclude for what they call.
bool thread_is_plain() { return (c10::impl::tls_local_dispatch_key_set().included_ - c10::default_included_set).empty(); }

// The CPU throws these at the op, with the type that programs catch.
void throw_as_pytorch(const Error& error) {
  TORCH_CHECK_INDEX(error.code() != Code::kOutOfRange, error.what());
  TORCH_CHECK_NOT_IMPLEMENTED(error.code() != Code::kUnsupported, error.what());
}

}  // namespace

void register_device() {
  static std::once_flag once;
  std::call_once(once, [] {
    c10::register_privateuse1_backend(kDeviceName);
    install_host_runner();
    set_runs_here(&thread_is_plain);
    set_throw_to_reader(&throw_as_pytorch);
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
void shut_down() {
  LazyDevice::shut_down();
  if (!forked()) log_fallback_summary();
}

}  // namespace ltc
