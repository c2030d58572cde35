// One run of an executable on behalf of the host.
#pragma once
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include "compile.h"
#include "device.h"

namespace ltc::torchscript {

// While one lives, dispatch in the calling thread is as if nobody had changed it. That may be in the middle of anything.
struct QuietDispatch {
  c10::InferenceMode inference;
  c10::impl::ExcludeDispatchKeyGuard exclude{c10::autocast_dispatch_keyset | c10::python_ks};
};

// Nothing but this run can see or change the memory of an operand that was moved here.
bool is_exclusive(const c10::IValue& operand);

// Throws, with nothing consumed and nothing made, when the arguments do not fit the executable, or when the run fails before it
// has taken a donated input. A failure after that consumes the donated inputs like a success, leaves outputs of the declared
// types with unspecified contents, and is returned for an event.
std::optional<Error> submit(ltc_device* device, Executable& executable, const ltc_execute_args& args, ltc_buffer** outputs);

}  // namespace ltc::torchscript
