// From a graph to a program, by a plugin.
#pragma once

#include <memory>
#include <string>

#include "core/compile/lowering/effort.h"
#include "core/compile/lowering/program.h"
#include "core/compile/lowering/target.h"

namespace ltc {

// Passes, claims, decompositions, partition, lowering, compiling. Nodes that the plugin does not claim, or refuses when they are
// lowered or compiled, become host steps; a plugin that cannot compute gets one host step. The plugin's part is demoted, the
// types in the program are not. Throws what the plugin throws, but for a refusal (LTC_UNSUPPORTED).
std::shared_ptr<const Program> compile(Graph graph, const CompileTarget& target, Effort effort = default_effort());

// The same from what was compiled for other sizes alone. Null if that does not serve: then the plugin has been asked for claims,
// and for nothing else.
std::shared_ptr<const Program> reuse(Graph graph, const CompileTarget& target);

// A program of one host step, whatever the plugin could do, for the time until that is compiled. Asks the plugin nothing.
std::shared_ptr<const Program> interim_program(Graph graph, const CompileTarget& target);

// The steps for people: the plugin's own text of each where it has one. Lowers them once more.
std::string program_text(const Program& program, const CompileTarget& target);

}  // namespace ltc
