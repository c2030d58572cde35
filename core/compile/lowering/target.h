// The target that a graph is compiled for.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "core/compile/lowering/type_demotion.h"

namespace ltc {

namespace host {
class PluginDevice;
}
class Prefetch;
class SymbolicPrograms;

struct CompileTarget {
  CompileTarget(host::PluginDevice& device, const TypeDemotion& demotion = {}, uint32_t precision = 0,
                std::shared_ptr<SymbolicPrograms> symbolic = nullptr)
      : device(device), demotion(demotion), precision(precision), symbolic(std::move(symbolic)) {}

  host::PluginDevice& device;  // outlives the programs
  TypeDemotion demotion;
  uint32_t precision;                          // see precision.h
  std::shared_ptr<SymbolicPrograms> symbolic;  // what is found again; null for a plugin that does not understand it
  Prefetch* prefetch = nullptr;                // what was read ahead; null where nothing is
  bool keeps_stages = false;                   // Program::stages, for reports
};

// All but a graph that its program depends on: the builds of core and plugin, the device, what narrows and restricts, what may be
// rounded (precision.h).
std::string target_key(const CompileTarget& target);
// The same without what may be rounded. The key of a target begins with it.
std::string device_key(const CompileTarget& target);

}  // namespace ltc
