// Recording a small training step ahead of the program's first one.
#pragma once

#include "core/base/api.h"

namespace ltc {

class LazyDevice;

// Records it in a capture and throws it away: nothing is compiled or run. The code and tables of recording are in memory then
// when the program's own first step needs them. False if not all of it was recorded, or if somebody would see it: anomaly mode, a
// profiler.
//
// Threads: any, beside those that record.
LTC_API bool warm_up_recording(LazyDevice& device) noexcept;

}  // namespace ltc
