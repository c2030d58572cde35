// What LTC_FALLBACK says of ops that the CPU runs instead of the plugin.
#pragma once

#include <string_view>

namespace ltc {

// To be called where the decision falls, an eager run or the compile of a program with host steps. `op` is "aten::nonzero" or
// "aten::add.Tensor". allow: logs each op once (info); warn: once as a warning; error: throws Error(kUnsupported) that names it.
void check_fallback(std::string_view op);

// Counts one run of it, under the name without overload.
void count_fallback(std::string_view op);

}  // namespace ltc
