// Programs that outlive the process: what the passes and the partition made of a graph, with the plugin's executables where it
// can save them. Where it cannot, they are lowered again, and nothing else is done again.
#pragma once

#include <memory>
#include <string>

#include "core/compile/lowering/effort.h"
#include "core/compile/lowering/narrowing.h"
#include "core/compile/lowering/program.h"
#include "core/compile/lowering/symbolic_programs.h"

namespace ltc {

// All that the program of a graph depends on: the graph, the builds of core and plugin, the device, what narrows and restricts,
// what may be rounded (precision.h).
std::string program_key(const Graph& graph, host::PluginDevice& device, const Narrowing& narrowing, uint32_t precision = 0);

// `graph`: the one that was compiled, for the places of its nodes.
std::string save_program(const Program& program, const Graph& graph, host::PluginDevice& device);

// Throws where the bytes are damaged, or the plugin does not take what it took before.
std::shared_ptr<Program> load_program(std::string_view bytes, const Graph& graph, host::PluginDevice& device,
                                      const Narrowing& narrowing, uint32_t precision = 0, SymbolicPrograms* symbolic = nullptr);

struct CompiledProgram {
  enum Source : uint8_t {
    kCompiled,        // for its own sizes
    kCompiledForAll,  // for further sizes too (ltc/symbolic.h)
    kQuick,           // not optimized, for its own sizes
    kReused,          // all that the plugin runs of it was compiled before, for other sizes
    kDisk,
  };

  std::shared_ptr<const Program> program;
  Source source;
};
// compile(), unless an earlier process has kept the result. Two kinds are not kept: a program that serves many sizes is compiled
// once in a process, and a quick one costs less than reading it.
CompiledProgram load_or_compile(Graph graph, host::PluginDevice& device, const Narrowing& narrowing, uint32_t precision = 0,
                                SymbolicPrograms* symbolic = nullptr, Effort effort = usual_effort());

}  // namespace ltc
