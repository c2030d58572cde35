// Runs checks in child processes of this program.
//
// A child runs checks one after the other and reports each over a pipe. When it dies or takes too long, the check that it was in
// has failed and a new child goes on behind it. So the report is complete whatever a plugin does. With several jobs the checks of
// a tier are dealt out to as many children at a time. After a check of the loader that takes too long no more are run: each would
// take as long.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "conformance/options.h"
#include "conformance/result.h"

namespace ltc::conformance {

// The checks of this program that the options ask for, in the order of the tiers. After InitGoogleTest.
std::vector<std::string> all_checks();
std::vector<std::string> chosen_checks(const Options& options);

// `starts` is called before each check, by any thread; `report` after each, by one thread at a time.
using Starts = std::function<void(const std::string& name)>;
using Report = std::function<void(Result)>;
void run_checks(const Options& options, const std::vector<std::string>& names, const Starts& starts, const Report& report);

// The other end: runs the checks whose names stand on the standard input. The exit code for the process.
int run_as_child();

}  // namespace ltc::conformance
