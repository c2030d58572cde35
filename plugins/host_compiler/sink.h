// Writing to the sinks of the interface.
#pragma once
#include <string_view>

#include "host_compiler/host_compiler.h"

namespace ltc::host_compiler {

inline void write(const ltc_hc_sink& sink, std::string_view text) { sink.write(sink.context, text.data(), text.size()); }

void initialize_target();

}  // namespace ltc::host_compiler
