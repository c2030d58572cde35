// The reader of graphs as text.
#include "core/ir/verify.h"
#include "fuzz/graphs.h"

namespace ltc::fuzz {

bool accept(std::string_view input) {
  try {
    const Graph graph = parse(input);
    const std::string text = print(graph);
    require(print(parse(text)) == text, "a graph that is printed, parsed and printed has the same text");
    verify(graph, "parsing");  // it takes the graph or says why not
    use(graph);
    return true;
  } catch (const Error&) {
    return false;
  }
}

std::vector<std::string> sound_inputs() { return {std::begin(kGraphs), std::end(kGraphs)}; }

}  // namespace ltc::fuzz
