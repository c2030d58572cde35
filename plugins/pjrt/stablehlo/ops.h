// The table of ops. A row says which nodes an op is lowered from, and how it is written.
#pragma once
#include <span>

#include "pjrt/stablehlo/module.h"

namespace ltc::pjrt {

struct Row;

// One node that is being lowered.
class Call {
 public:
  Call(Module& module, const Row& row, const ltc_node& node, Values inputs, Values numbers, std::vector<Type> outputs)
      : module(module), row(row), inputs(inputs), outputs(outputs), node_(node), numbers_(numbers) {}

  Module& module;
  const Row& row;
  const Values inputs;              // tensors that are given
  const std::vector<Type> outputs;  // of a result that is not wanted: its dtype is 0

  const Type& type() const { return outputs[0]; }
  const ltc_attr* find(std::string_view name) const;  // null where there is none, or None is given
  int64_t integer(std::string_view name, int64_t otherwise) const;
  Sizes integers(std::string_view name) const;
  int64_t dim() const;  // attribute "dim", counted from the front; 0 for an operand of rank 0
  Sizes dims() const;   // the same of several; none is all
  // A number of rank 0: an attribute, or else the next scalar operand. Without either 0.
  Value number(std::string_view name);

 private:
  const ltc_node& node_;
  const Values numbers_;  // scalar operands
  size_t next_number_ = 0;
};

using Emit = Values (*)(Call&);

// operands  T: all of one dtype, in `dtypes`. N: a T that may be a scalar param. i: I64. b: BOOL. A: in `dtypes`. s: a scalar
//           param, absent where the number is an attribute. -: absent. +: any number of Ts. Behind the colon the results.
// dtypes    f: F32, F64. i: U8 and signed integers. w: I32, I64. b: BOOL. h: F16, BF16. c: C64.
// attrs     those that are known, by name and kind: i int, I ints, b bool, s a number, 1 a number that is one, d dtype,
//           n None. A node with another one is left to the host. ?: it may be missing.
// op        StableHLO's, for emitters that many rows share.
struct Row {
  std::string_view name, operands, dtypes, attrs;
  Emit emit;
  std::string_view op = {};
};

std::span<const Row> elementwise_ops();
std::span<const Row> movement_ops();
std::span<const Row> reduction_ops();
std::span<const Row> index_ops();
std::span<const Row> product_ops();
std::span<const Row> creation_ops();

// The conversion of the op set, to any dtype of its.
Value cast(Module& module, const Value& value, ltc_dtype dtype);
// Elements of the row-major contents at these positions, which lie inside.
Value take(Module& module, const Value& from, const Value& positions);

}  // namespace ltc::pjrt
