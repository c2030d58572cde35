// Where the runtime's two builds differ: libltc_runtime.so compiles a function that has no executable, libltc_runtime_lean.so
// refuses it.
#pragma once

#include <memory>
#include <string>

#include "core/compile/lowering/program.h"
#include "core/compile/lowering/target.h"

namespace ltc::deploy {

// `cause`: why there is no executable, as the end of a sentence. Throws what build_program() throws; UNSUPPORTED without a
// compiler.
std::shared_ptr<const Program> compile_function(Graph code, const CompileTarget& target, const std::string& cause);

}  // namespace ltc::deploy
