// The text form of a graph, for tests, logs and people. print and parse are inverse to each other up to the numbering of values.
//
//   graph(%0: f32[2,3] -> 0, %1: f64 scalar) {
//     %2: f32[2,3] = aten::mul.Tensor(%0, %1)  # train.py:31
//     %3: f32[3,2] = aten::permute(%2) {dims=[1,0]}
//     %4: f32[2,3], _ = aten::max.dim(%2, none) {dim=0, keepdim=false}
//     return %4
//   }
//
// "-> 0" is the output that a param may become, "#" until the end of the line the location in the user's program. Types are dtype
// and sizes, with strides (f32[2,3;1,2]) where they are not row-major. Attributes say their kind: none, 1, 1.0 (nan, inf, -0.0),
// true, "text", f32, [1,2], [1.0,2.0], ["a","b"]. An empty list of integers is [], the others are floats[] and strings[].
#pragma once

#include <string>
#include <string_view>

#include "core/ir/graph.h"

namespace ltc {

std::string print(const Graph& graph);
std::string type_text(TypeId type);       // f32[2,3]
std::string attr_text(const Attr& attr);  // dims=[1,0]
Graph parse(std::string_view text);       // throws Error(kInvalidArgument) with the line and what was expected there

}  // namespace ltc
