// The front door of compiling: a program from the disk, or compiled and kept there.
#pragma once

#include <memory>

#include "core/compile/lowering/effort.h"
#include "core/compile/lowering/program.h"
#include "core/compile/lowering/target.h"

namespace ltc {

struct CompiledProgram {
  enum Source : uint8_t {
    kCompiled,          // for its own sizes
    kCompiledSymbolic,  // for further sizes too (ltc/symbolic.h)
    kQuick,             // not optimized, for its own sizes
    kReused,            // all that the plugin runs of it was compiled before, for other sizes
    kDisk,
  };

  std::shared_ptr<const Program> program;
  Source source = kCompiled;
};

// The graph's program on the disk; null where none is kept.
std::shared_ptr<const Program> find_saved_program(const Graph& graph, const CompileTarget& target);

// Looks the graph up on the disk, compiles it where it is not there, and keeps what it compiled. It keeps only
// the plugin's code of a program for many sizes (lowering/saved_code.h), and nothing of a program of less than the usual effort,
// which costs less than reading it. Throws what compile() throws.
CompiledProgram build_program(Graph graph, const CompileTarget& target, Effort effort = default_effort());

}  // namespace ltc
