// How nodes that the plugin does not claim are computed: by a function that the part of the core that knows PyTorch installs.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/ir/graph.h"

namespace ltc {

// Dense row-major bytes of a value of `type` in host memory.
struct HostValue {
  TypeId type = kNoType;
  std::shared_ptr<void> data;
};

// Computes the outputs of `graph` from its buffer params and scalars, in their order. Throws what the op throws.
using HostRunner = std::vector<HostValue> (*)(const Graph& graph, std::span<const HostValue> inputs,
                                              std::span<const Scalar> scalars);

void set_host_runner(HostRunner runner);
HostRunner host_runner();  // throws Error(kUnsupported) if none was installed

HostValue allocate_host_value(TypeId type);

}  // namespace ltc
