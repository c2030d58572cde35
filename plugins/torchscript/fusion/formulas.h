// Which ATen operators tiles can compute, and as what: formulas over the primitives, one row per operator in formulas.cpp.
#pragma once
#include <torch/csrc/jit/ir/ir.h>

#include <cstdint>
#include <vector>

#include "torchscript/fusion/primitives.h"

namespace ltc::torchscript {

struct Formula {
  struct Term {
    enum class Kind : uint8_t { kArgument, kLiteral, kCall } kind;
    Primitive primitive;              // of a call
    uint8_t operands[kMostOperands];  // terms
    size_t argument;                  // index in the operator's schema
    float literal;
  };

  std::vector<Term> terms;  // operands before calls; the last one is the result
  bool gives_bool;
};

int operand_count(Primitive primitive);
const char* name_of(Primitive primitive);

// Null if tiles cannot compute the node: none of the rows is for its operator, its attributes or its types. They compute in
// float32; operands are float32, bool, or numbers, and the result is float32 or bool.
const Formula* find_formula(const torch::jit::Node& node, const c10::FunctionSchema& schema);

}  // namespace ltc::torchscript
