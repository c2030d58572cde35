// The types of nodes, of graphs as text: one that is refused and one that is taken are read without a fault.
#include <fstream>

#include "core/compile/passes/verify_nodes.h"
#include "fuzz/graphs.h"

namespace ltc::fuzz {

bool accept(std::string_view input) {
  try {
    const Graph graph = parse(input);
    check_types(graph);
    use(graph);
  } catch (const Error&) {
    return false;
  }
  return true;
}

std::vector<std::string> sound_inputs() {
  std::vector<std::string> inputs;
  std::ifstream file(LTC_RECORDED_CALLS);
  for (std::string line; std::getline(file, line);) inputs.push_back(line);
  require(!inputs.empty(), "there are calls that PyTorch recorded");
  return inputs;
}

}  // namespace ltc::fuzz
