// The capture of the calling thread, as far as recording has to know it. capture.h has the rest.
#pragma once

#include <string>
#include <string_view>

#include "core/base/api.h"
#include "core/run/device/trace_state.h"

namespace ltc {

class LazyDevice;

inline constexpr const char* kFromCapture =
    "this tensor was made inside a function that torch.compile or ltc.jit recorded, and has no value outside of it: return it";
inline constexpr const char* kIsPlaceholder =
    "this tensor stands for an argument while torch.compile or ltc.jit records a function, and has no value outside of that "
    "call: "
    "the function's own thread may use it, before the function returns";

class LTC_API CaptureState {
 public:
  LazyDevice& device() const { return device_; }
  TraceState& trace_state() { return trace_state_; }

  // Why the capture was refused; empty if it was not.
  const std::string& refusal() const { return refusal_; }
  [[noreturn]] void refuse(std::string_view why);

 protected:
  explicit CaptureState(LazyDevice& device) : device_(device) {}
  ~CaptureState() = default;

  LazyDevice& device_;
  TraceState trace_state_;
  std::string refusal_;
};

// Null mostly. It is a Capture.
extern LTC_API LTC_THREAD_LOCAL constinit CaptureState* t_capture;

}  // namespace ltc
