// A script that computes a graph on the device and on the CPU, without the program that it comes from.
#pragma once

#include <string>
#include <vector>

#include "core/run/queue/host_ops.h"

namespace ltc {

// Writes ltc-check-N.py, of fewer than 50 lines for a graph of a few nodes, and the bytes of `params` beside it, into the current
// folder; N is the first number that is free. Returns the script's name; empty, and a warning in the log, where that fails.
std::string write_reproducer(const std::string& title, const std::string& graph, const std::vector<HostValue>& params);

}  // namespace ltc
