// The counters of compiles.
#pragma once

#include "core/compile/build_program.h"

namespace ltc {

// Counts a trace that has got its program, by where that came from. Any thread.
void count_compile(CompiledProgram::Source source);

}  // namespace ltc
