// A graph as text, and the step of the compiler that left it so.
#pragma once

#include <string>

namespace ltc {

struct GraphStage {
  const char* name;
  std::string graph;
};

}  // namespace ltc
