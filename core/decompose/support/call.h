// A node that is to be computed with smaller ops, its arguments read by name from the schema of its row in the op table.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "core/decompose/support/builder.h"
#include "core/ops/op_schema.h"

namespace ltc::decompose {

class Call {
 public:
  // `node` must not be one of the builder's graph's own: its nodes move. `recorded`: the operands that it was recorded with.
  Call(Builder& builder, const Node& node, const OpRow& row, std::span<const ValueId> recorded);

  Builder& builder() const { return builder_; }

  // Operands. Optional ones that were not given are false.
  Val tensor(std::string_view name) const;
  std::vector<Val> tensors(std::string_view name) const;
  Val first() const;                        // operand
  Val number(std::string_view name) const;  // weak; false where it is None
  // A tensor as PyTorch's CPU kernels compute with it: 16-bit floats as float.
  Val math(std::string_view name) const;
  // Whether the program's tensor is contiguous, which a few ops make a difference by; in the graph all values are.
  bool is_contiguous(std::string_view name) const;

  // The value of a number that is constant in the graph: an attribute or its default.
  std::optional<double> constant(std::string_view name) const;
  bool is_constant(std::string_view name, double value) const { return constant(name) == value; }

  // Constants; the schema's default where there is no attribute.
  bool given(std::string_view name) const;  // neither None nor an absent operand
  int64_t integer(std::string_view name) const;
  bool flag(std::string_view name) const { return integer(name) != 0; }
  Ints ints(std::string_view name) const;
  std::string string(std::string_view name) const;
  std::optional<DType> dtype(std::string_view name) const;

  // Whether the caller wants that result.
  bool wants(size_t result) const { return result < node_.outputs.size() && node_.outputs[result] != kNone; }
  const Type& result(size_t index = 0) const;  // of one that is wanted
  size_t result_count() const { return node_.outputs.size(); }
  const Type& any_result() const;  // of the first that is wanted, where all have the same sizes

  // The same op on the bits of its complex operands: for what moves elements only. C64 results.
  std::vector<Val> with_bits() const;

 private:
  struct Argument {
    const OpArg* spec;
    size_t first = 0, count = 0;  // its operands
    const Attr* attr = nullptr;   // where it is constant
  };
  const Argument& find(std::string_view name) const;
  Val operand(ValueId value) const;

  Builder& builder_;
  const Node& node_;
  const OpRow& row_;
  const std::span<const ValueId> recorded_;
  std::vector<Argument> arguments_;
};

// The results in the schema's order; false for those that nobody wants. None at all: there is nothing smaller for this call.
struct Results {
  std::vector<Val> values;
  Results(Val value) : values{value} {}                              // NOLINT(google-explicit-constructor): rules return values
  Results(std::initializer_list<Val> several) : values(several) {}   // NOLINT(google-explicit-constructor)
  Results(std::vector<Val> several) : values(std::move(several)) {}  // NOLINT(google-explicit-constructor)
};
// Zeros for each result that is wanted.
Results zeros_of(const Call& call);
// `value` in the sizes of a result; nothing where that is not wanted.
Val in_shape_of(const Call& call, size_t result, Val value);
inline Results nothing() { return std::vector<Val>(); }

using Rule = Results (*)(const Call& call);

// The rule f of the first operand, in the type that the result is computed in.
template <Val (*kFormula)(Val)>
Results real(const Call& call) {
  return kFormula(cast(call.first(), math_dtype(call.result().dtype)));
}

struct Decomposition {
  std::string_view op;  // "aten::relu"
  Rule rule;
};

}  // namespace ltc::decompose
