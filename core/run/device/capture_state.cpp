#include "core/run/device/capture_state.h"

#include "core/base/error.h"

namespace ltc {

LTC_THREAD_LOCAL constinit CaptureState* t_capture = nullptr;

void CaptureState::refuse(std::string_view why) {
  refusal_ = cat(why, at_location(current_location()));
  fail(Code::kUnsupported, refusal_);
}

}  // namespace ltc
