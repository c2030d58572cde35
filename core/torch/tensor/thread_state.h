// PyTorch's state of the calling thread, found without a call once a thread has asked: at every recorded op some of it is read.
#pragma once

#include <ATen/PythonTorchFunctionTLS.h>
#include <ATen/record_function.h>
#include <c10/core/AutogradState.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include "core/base/api.h"

namespace ltc {

// The state that GradMode and InferenceMode read.
inline const c10::AutogradState& autograd_state() {
  static LTC_THREAD_LOCAL constinit const c10::AutogradState* state = nullptr;
  if (!state) [[unlikely]]
    state = &c10::AutogradState::get_tls_state();
  return *state;
}

// Whether nobody wants to see a call that has only plain arguments: no mode, transform, autocast, tracer or profiler.
inline bool nothing_intercepts() {
  const auto local = c10::impl::tls_local_dispatch_key_set();
  return local.included_ == c10::default_included_set && local.excluded_ == c10::default_excluded_set && !at::hasCallbacks() &&
         at::impl::PythonTorchFunctionTLS::stack_len() == 0;
}

// Whether CPU kernels may be called for a device: the caller's dispatch modes must not see these. Excluded keys do no harm, since
// kernels exclude them for the kernels that they call.
inline bool nothing_intercepts_thread() {
  return (c10::impl::tls_local_dispatch_key_set().included_ - c10::default_included_set).empty();
}

}  // namespace ltc
