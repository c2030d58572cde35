// Ops of a program that the plugin does not claim, by the CPU's kernels: the host runner of run/queue/host_ops.h.
#pragma once

#include <span>
#include <vector>

#include "core/run/queue/host_ops.h"

namespace ltc {

std::vector<HostValue> run_on_host(const Graph& graph, std::span<const HostValue> inputs, std::span<const Scalar> scalars);

}  // namespace ltc
