// The reader of graphs as bytes.
#include "fuzz/graphs.h"

namespace ltc::fuzz {

bool accept(std::string_view input) {
  Graph graph;
  try {
    ByteReader in(input);
    graph = read_graph(in);
  } catch (const Error&) {
    return false;
  }
  use(graph);
  return true;
}

std::vector<std::string> sound_inputs() {
  std::vector<std::string> inputs;
  for (const char* text : kGraphs) {
    ByteWriter out;
    write_graph(out, parse(text));
    inputs.push_back(out.take());
  }
  return inputs;
}

}  // namespace ltc::fuzz
