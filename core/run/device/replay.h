// A graph computed on a device and on the CPU: what the scripts of LTC_CHECK call.
#pragma once

#include <string>
#include <string_view>

#include "core/base/api.h"

namespace ltc {

// `graph`: as print() writes it. `params`: the bytes of its params, one after the other, dense and row-major. Returns a line for
// each output, with how it differs. Throws Error(kInvalidArgument) for a bad text or another number of bytes, and what the plugin
// throws.
LTC_API std::string replay(std::string_view graph, std::string_view params, uint32_t device);

}  // namespace ltc
