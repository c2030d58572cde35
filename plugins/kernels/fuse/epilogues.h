// The functions that a library applies to the result of a product on its way to memory.
#pragma once
#include <string>
#include <vector>

#include "kernels/graph/graph.h"
#include "kernels/graph/options.h"

namespace ltc::kernels {

enum class Activation : uint8_t { kNone, kRelu, kGelu };  // gelu: by the hyperbolic tangent

// The epilogue of a product of matrices: adds a vector to each row, then applies a function.
struct Epilogue {
  bool bias = false;
  Activation activation = Activation::kNone;
  bool keeps_input = false;  // what the function reads is written too
  auto operator<=>(const Epilogue&) const = default;
};

// Such a node has the bias as its third operand, and what the function reads as its second result.
Epilogue epilogue_of(const Node& node);

// Gives the products that go to the library what follows them, as far as the options say that it can do that: also reshapes,
// which only say where its result ends. Returns what was decided, for people.
std::vector<std::string> extend_products(Graph& graph, const Options& options);

}  // namespace ltc::kernels
