// The ends of a process that uses the plugin.
#pragma once

#include <string>

namespace ltc::conformance {

// Opens a device, runs a program, and comes to an end as `how` says: everything is ended from atexit ("atexit"), or nothing is
// ("open", "pending": with runs in the queue), or a child that was forked ends first ("fork"). Returns the exit code for main.
int end_process(const std::string& how);

}  // namespace ltc::conformance
