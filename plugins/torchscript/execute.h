// One run of an executable on behalf of the host.
#pragma once
#include "torchscript/compile.h"
#include "torchscript/device.h"

namespace ltc::torchscript {

// Throws, with nothing consumed and nothing made, when the arguments do not fit the executable, or when the run fails before it
// has taken a donated input. A failure after that consumes the donated inputs like a success, leaves outputs of the declared
// types with unspecified contents, and is returned for an event.
std::optional<Error> submit(ltc_device* device, Executable& executable, const ltc_execute_args& args, ltc_buffer** outputs);

}  // namespace ltc::torchscript
