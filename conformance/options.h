// The command line of ltc-conformance.
#pragma once

#include <string>
#include <vector>

namespace ltc::conformance {

struct Options {
  std::string backend;  // as given: a path, or a name that is searched for as LTC_BACKEND's are
  std::vector<std::string> tiers;
  std::vector<std::string> filters;  // patterns with '*'; a check runs if one matches, or if there is none
  std::string json, junit, expected, waivers;
  std::string must_pass;  // the list to write
  int timeout_s = 60;
  int jobs = 1;
  bool list = false, verbose = false, help = false;
  std::string end;     // started by a check: how this process is to end
  bool child = false;  // started by the runner: names on the standard input, results to the descriptor below
};

extern const char* const kUsage;
inline constexpr int kResultDescriptor = 3;

// Throws ltc::Error(kInvalidArgument) that names the argument.
Options parse_options(int argc, char** argv);

// The file that `backend` stands for. Throws ltc::Error(kNotFound).
std::string find_backend(const std::string& backend);

}  // namespace ltc::conformance
