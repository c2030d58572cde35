// Tells a function of Python's of each program that a trace has got (report/compiles.h).
#pragma once

#include <pybind11/pybind11.h>

namespace ltc {

// The function gets a dict: program, graph, source, reason, difference, where, ms, ops, device_steps, host_steps. An error
// that it raises is printed. It is called by barriers, in their thread, and by tell_compiles().
void set_python_compile_listener(pybind11::object function);

}  // namespace ltc
