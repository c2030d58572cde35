// The facts of a run that a reader of its report must know besides the results: the suite's build and the machine.
#pragma once

#include <string>

namespace ltc::conformance {

struct Build {
  std::string version;  // of the host, whose part the suite is
  std::string commit;   // empty: the sources had no repository
  bool clean = false;   // no file that the commit names had changed
};

struct Machine {
  std::string processor, architecture, os, kernel;
  unsigned processors = 0;
};

Build this_build();
Machine this_machine();

}  // namespace ltc::conformance
