// Graphs that show all of the text form, and what any reader's graph must bear.
#pragma once

#include "core/base/error.h"
#include "core/compile/lowering/abi_graph.h"
#include "core/ir/binary.h"
#include "core/ir/text.h"
#include "fuzz/target.h"

namespace ltc::fuzz {

// sin is not among the test plugin's ops: the first makes a program of three steps.
inline constexpr const char* kGraphs[] = {
    R"(graph(%0: f32[2] -> 0, %1: f64 scalar, %2: f32[2], %3: f64 scalar) {
    %4: f32[2] = aten::neg(%0)  # a.py:1
    %5: f32[2] = aten::sin(%4)  # a.py:2
    %6: f32[2] = aten::mul.Tensor(%5, %3)  # a.py:3
    %7: f32[2] = aten::add.Tensor(%4, %2)
    return %6, %7 })",
    R"(graph(%0: f32[2] -> 0, %1: f64 scalar, %2: bf16[2,0,3;1,2,2], %3: i64 scalar) {
    %4: f32[2] = aten::neg(%0)
    %5: f32[2], _ = aten::sin(%4, none) {a=none, b=1, c=nan, d=true, e="x\n\x01", f=f32, g=[1,2], h=[1.0,-0.0], i=["p","q"]}  # a.py:2
    %6: f32[2] = aten::mul.Tensor(%5, %3) {j=[], k=floats[], l=strings[]}
    return %6, %5 })",
    "graph() { %0: f8e4m3fn[1024,1024] = aten::zeros() return %0 }",
};

// A graph that its reader took: it is written and read again, printed, and handed to a plugin.
inline void use(const Graph& graph) {
  ByteWriter out;
  write_graph(out, graph);
  const std::string bytes = out.take();
  ByteReader in(bytes);
  require(same(read_graph(in), graph), "a graph that is written and read again is the same");
  require(!print(graph).empty(), "a graph has a text");
  AbiGraph abi(graph);
  require(abi.get()->value_count == graph.types.size(), "a plugin sees every value");
}

}  // namespace ltc::fuzz
