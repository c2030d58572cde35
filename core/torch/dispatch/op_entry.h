// Facts about an op that recording needs, worked out once from its schema.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <optional>
#include <string>
#include <vector>

#include "core/ir/op.h"
#include "core/ops/op_table.h"
#include "core/torch/tensor/number.h"

namespace ltc {

enum class ArgKind : uint8_t {
  kTensor,      // Tensor, Tensor?
  kTensorList,  // Tensor[], Tensor?[]
  kNumber,      // Scalar, float: enters the graph by value, unless it is its default or static
  kConstant,    // part of the graph: sizes, dims, flags, dtypes, names, static numbers
  kPlacement,   // memory_format, layout, device, pin_memory, non_blocking: shapes the result's geometry, is no part of the graph
};

struct Arg {
  std::string name;
  ArgKind kind;
  bool is_dtype = false;       // a ScalarType among the constants
  bool written = false;        // a tensor, or the tensors of a list, that the op changes
  Number default_number = {};  // the schema's, of a kNumber

  // A number that is absent or has its schema default is part of the graph: it is not expected to change.
  bool is_default(const Number& number) const { return number.dtype == DType::kNone || number == default_number; }
};

enum class OpKind : uint8_t {
  kFunctional,  // recorded as it is
  kInPlace,     // op_(self, ...): recorded as its functional twin, whose result is bound to self's storage
  kOut,         // op.out(..., out): the same, bound to the storages of the out arguments
  kWriting,     // recorded as it is; its results are the new contents of what it writes, then its own (ltc/plugin.h, Ops)
  kEager,       // runs on the CPU at once: data-dependent, random without a recipe, results that are no tensors
};

struct OpEntry {
  OpEntry(const c10::OperatorHandle& handle, bool as_writing);

  // The entry of an op, made at its first use. Any thread.
  static OpEntry& of(const c10::OperatorHandle& handle);
  // The entry of one of PyTorch's own, "add.Tensor".
  static OpEntry& named(std::string_view name);
  // The same for an op that is to be recorded as kWriting although it has a functional twin (or as kEager, if it cannot be).
  static OpEntry& writing(const c10::OperatorHandle& handle);

  c10::OperatorHandle called;
  OpKind kind = OpKind::kEager;
  const char* why_eager = nullptr;              // of kEager: the end of a sentence
  std::optional<c10::OperatorHandle> recorded;  // the op of the node, `called` or its functional twin; empty for kEager
  OpId id = 0;                                  // of `recorded`
  uint32_t flags = 0;                           // OpFlags
  bool structured = false;                      // PyTorch's own shape function can be asked
  std::vector<Arg> args;                        // of `recorded`: without the out arguments of a kOut
  size_t out_count = 0;                         // trailing out arguments that are not among `args`
  std::vector<size_t> returns;                  // by result of `called`: the argument that it is, or kFresh
  static constexpr size_t kFresh = SIZE_MAX;
};

// Whether the op changes any of its arguments.
bool writes(const c10::FunctionSchema& schema);

// The tensors that a call writes, in order: `args` are those of `entry.called`. Not given ones are left out.
c10::SmallVector<at::Tensor, 2> written_tensors(const OpEntry& entry, const c10::IValue* args);

}  // namespace ltc
