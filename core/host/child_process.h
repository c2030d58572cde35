// Work in a process of its own, for code of strangers: it may crash, end the process or hang.
#pragma once

#include <chrono>
#include <functional>
#include <string>

namespace ltc::host {

// Forks, does `work` in the child, and returns what it wrote to standard output. Only where the process has one thread.
// An exception that leaves `work` ends the child.
// Throws INTERNAL, which says how the child ended before the work was done, or that it took longer than `limit`: then it is
// killed. It names the slot of a plugin that the child was in.
std::string in_a_child(const std::function<void()>& work, std::chrono::milliseconds limit);

}  // namespace ltc::host
