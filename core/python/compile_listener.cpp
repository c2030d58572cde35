#include "core/python/compile_listener.h"

#include "core/report/compiles.h"

namespace ltc {
namespace {

namespace py = pybind11;
using namespace py::literals;

py::object& listener() {
  static auto* instance = new py::object();  // leaked: Python may be gone at the end
  return *instance;
}

const char* name_of(CompiledProgram::Source source) {
  switch (source) {
    case CompiledProgram::kDisk: return "disk";
    case CompiledProgram::kQuick: return "compiled with little effort";
    case CompiledProgram::kReused: return "compiled for other sizes";
    case CompiledProgram::kCompiledSymbolic: return "compiled for many sizes";
    case CompiledProgram::kCompiled: break;
  }
  return "compiled";
}

void tell(const CompileFacts& facts) {
  if (_Py_IsFinalizing()) return;
  const py::gil_scoped_acquire gil;
  try {
    const timeline::ProgramFacts& program = facts.program;
    listener()(py::dict("program"_a = program.id, "graph"_a = program.graph, "source"_a = name_of(facts.source),
                        "reason"_a = facts.cause.reason, "difference"_a = facts.cause.difference,
                        "where"_a = location_text(facts.cause.where), "ms"_a = static_cast<double>(facts.ns) / 1e6,
                        "ops"_a = program.ops, "device_steps"_a = program.device_steps, "host_steps"_a = program.host_steps));
  } catch (py::error_already_set& error) {
    error.discard_as_unraisable("the listener of compiles");
  }
}

}  // namespace

void set_python_compile_listener(py::object function) {
  listener() = std::move(function);
  set_compile_listener(&tell);
}

}  // namespace ltc
