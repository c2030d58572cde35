// The target that a graph is compiled for.
#pragma once

#include <cstdint>

#include "core/compile/lowering/type_demotion.h"

namespace ltc {

namespace host {
class PluginDevice;
}
class SymbolicPrograms;

struct CompileTarget {
  CompileTarget(host::PluginDevice& device, const TypeDemotion& demotion = {}, uint32_t precision = 0,
                SymbolicPrograms* symbolic = nullptr)
      : device(device), demotion(demotion), precision(precision), symbolic(symbolic) {}

  host::PluginDevice& device;  // outlives the programs
  TypeDemotion demotion;
  uint32_t precision;          // see precision.h
  SymbolicPrograms* symbolic;  // what was compiled before and is found again; null for a plugin that does not understand it
  bool keeps_stages = false;   // Program::stages, for reports
};

}  // namespace ltc
