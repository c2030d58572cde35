// Work in a process of its own, for code of strangers: it may crash, end the process or hang.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "core/base/error.h"

namespace ltc::host {

// INTERNAL: how a child ended before its work was done, or why there is none.
class ChildError : public Error {
 public:
  explicit ChildError(const std::string& how, std::string in_slot = "");
  const std::string slot;  // of a plugin's table, that the child was in; empty: in none
};

// Forks, does `work` in the child, and returns what it wrote to standard output. Only where the process has one thread.
// An exception that leaves `work` ends the child.
// Throws ChildError, also where the work took longer than `limit`: then the child is killed.
std::string in_a_child(const std::function<void()>& work, std::chrono::milliseconds limit);

}  // namespace ltc::host
