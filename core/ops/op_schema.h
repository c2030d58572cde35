// The arguments of an op, read from the schema of its row.
#pragma once

#include <string_view>
#include <vector>

#include "core/ops/op_table.h"

namespace ltc {

enum class OpArgKind : uint8_t {
  kTensor,      // Tensor, Tensor?: one operand
  kTensorList,  // Tensor[], Tensor?[]: as many operands as the attribute "<name>.count" says
  kNumber,      // Scalar, float, optional or not: one operand, or an attribute where it is constant
  kConstant,    // all others: an attribute, or absent
};

struct OpArg {
  std::string_view name;
  std::string_view type;  // as the schema spells it: "int[2]", "Tensor?"
  OpArgKind kind;
  std::string_view default_value;  // as the schema spells it; empty if there is none
};

// In the schema's order; parsed once per row. Any thread.
const std::vector<OpArg>& op_args(const OpRow& row);

}  // namespace ltc
