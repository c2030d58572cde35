// A process of its own that uses the plugin, and how it ends.
#pragma once

#include <string>

namespace ltc::conformance {

// In such a process: opens a device, runs a program, and comes to an end as `how` says. Everything is ended from atexit
// ("atexit"), or nothing is ("open", "pending": with runs in the queue), or a child that was forked ends first ("fork"). "load":
// loads a saved executable of kAdd4 from the standard input and runs it. Returns the exit code for main.
int end_process(const std::string& how);

// Starts such a process with `input` as its standard input; the test fails where it ends badly.
void expect_end(const char* how, const std::string& input = "");

}  // namespace ltc::conformance
