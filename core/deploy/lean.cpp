// In place of the compiler, in libltc_runtime_lean.so.
#include "core/compile/lowering/compiler.h"
#include "core/compile/passes/verify_nodes.h"
#include "core/deploy/compile_function.h"

namespace ltc {

std::shared_ptr<const Program> deploy::compile_function(Graph, const CompileTarget&, const std::string& cause) {
  fail(Code::kUnsupported, "it is to be compiled, since ", cause,
       ", and libltc_runtime_lean.so has no compiler: `ltc compile FILE --backend NAME` adds executables to an archive, and "
       "libltc_runtime.so compiles");
}

// The executor compiles where it repeats a recorded step op by op or checks its results. An archive has no such steps.
std::shared_ptr<const Program> compile(Graph, const CompileTarget&, Effort) {
  fail(Code::kUnsupported, "libltc_runtime_lean.so has no compiler");
}

// Guards what compiles a graph. An executable is code, which the caller trusts.
void check_types(const Graph&) {}

}  // namespace ltc
