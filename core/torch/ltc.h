// The core for C++ programs: link libltc_core and libtorch, call register_device() once, then use tensors on device "ltc".
//
//   ltc::register_device();
//   auto x = torch::ones({2, 3}, torch::Device("ltc"));
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/api.h"

namespace ltc {

// Names the device; loads no plugin.
LTC_API void register_device();

// Ends the step on all devices: what was recorded and is still held is compiled, or found in the cache, and queued. Returns
// before it has run, unless two steps are on their way already.
LTC_API void mark_step();

// Returns when all that was queued is done.
LTC_API void wait_device_ops();

// Counters by name (report/metrics.h says which there are), and all of them as text.
LTC_API int64_t counter_value(const std::string& name);
LTC_API std::vector<std::string> counter_names();
LTC_API std::string metrics_report();
LTC_API void reset_metrics();

// Waits for the queues, ends their threads, and logs one line about what the CPU ran instead of the plugin. Also runs at exit.
LTC_API void shut_down();

}  // namespace ltc
