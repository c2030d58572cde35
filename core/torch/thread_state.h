// PyTorch's state of the calling thread, found without a call once a thread has asked: at every recorded op some of it is read.
#pragma once

#include <c10/core/AutogradState.h>

#include "core/base/api.h"

namespace ltc {

// What GradMode and InferenceMode read.
inline const c10::AutogradState& autograd_state() {
  static LTC_THREAD_LOCAL constinit const c10::AutogradState* state = nullptr;
  if (!state) [[unlikely]]
    state = &c10::AutogradState::get_tls_state();
  return *state;
}

}  // namespace ltc
