// Ops that move elements and compute none.
#include <algorithm>
#include <numeric>

#include "pjrt/stablehlo/ops.h"

namespace ltc::pjrt {
namespace {

Values reshape(Call& call) { return {call.module.reshape(call.inputs[0], call.type().sizes)}; }
Values expand(Call& call) { return {call.module.broadcast(call.inputs[0], call.type().sizes)}; }
Values permute(Call& call) {
  return {call.module.op("transpose", call.inputs, call.type(), "permutation = " + array(call.dims()))};
}
Values flip(Call& call) {
  if (call.integers("dims").empty()) return call.inputs;
  return {call.module.op("reverse", call.inputs, "dimensions = " + array(call.dims()))};
}

Values slice(Call& call) {
  const Type& type = call.inputs[0].type;
  const auto dim = static_cast<size_t>(call.dim());
  Sizes start(type.sizes.size(), 0), limit = type.sizes, step(type.sizes.size(), 1);
  step.at(dim) = call.integer("step", 1);
  start[dim] = call.integer("start", 0);
  limit[dim] = start[dim] + (call.type().sizes[dim] - 1) * step[dim] + 1;
  return {call.module.slice(call.inputs[0], start, limit, step)};
}

Values pad(Call& call) {
  const Sizes pairs = call.integers("pad");
  Sizes low(call.type().sizes.size(), 0), high = low;
  for (size_t i = 0; i + 1 < pairs.size(); i += 2) {
    low.at(low.size() - 1 - i / 2) = pairs[i];
    high.at(low.size() - 1 - i / 2) = pairs[i + 1];
  }
  const Value value = cast(call.module, call.number("value"), call.type().dtype);
  return {call.module.pad(call.inputs[0], value, low, high)};
}

Values cat(Call& call) {
  return {call.module.op("concatenate", call.inputs, call.type(), "dimension = " + std::to_string(call.dim()) + " : i64")};
}

// ---- by strides

struct Strides {
  Sizes strides;
  int64_t offset;
};

Strides strides_of(const Call& call) { return {call.integers("stride"), call.integer("storage_offset", 0)}; }

// Where each element of an array of these sizes lies.
Value positions(Module& m, const Sizes& sizes, const Strides& strides) {
  Value sum = m.filled({LTC_I64, sizes}, strides.offset);
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 1 || strides.strides.at(i) == 0) continue;
    const Value along = m.iota(LTC_I64, sizes, static_cast<int64_t>(i));
    sum = m.op("add", {sum, m.op("multiply", {along, m.like(along, strides.strides[i])})});
  }
  return sum;
}

Values as_strided(Call& call) {
  return {take(call.module, call.inputs[0], positions(call.module, call.type().sizes, strides_of(call)))};
}

// Each place takes the element whose number is the largest of those that meet there. An order of writing would not be kept
// by devices that write in parallel.
Values as_strided_scatter(Call& call) {
  Module& m = call.module;
  const Value &x = call.inputs[0], &from = call.inputs[1];
  const Value at = m.reshape(positions(m, from.type.sizes, strides_of(call)), {from.type.count()});
  const Value numbers = m.iota(LTC_I64, at.type.sizes, 0);
  const Value last = m.op("scatter", {m.filled({LTC_I64, {x.type.count()}}, -1), at, numbers}, {LTC_I64, {x.type.count()}},
                          "scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], "
                          "scatter_dims_to_operand_dims = [0], index_vector_dim = 1>",
                          m.joining("maximum", LTC_I64));
  const Value number = m.reshape(last, x.type.sizes), zero = m.like(number, 0);
  const Value taken = take(m, from, m.op("maximum", {number, zero}));
  return {m.select(m.compare(number, zero, "GE"), taken, x)};
}

constexpr Row kRows[] = {
    {"aten::reshape", "T:T", "fibh", "shape:I?", reshape},
    {"aten::expand", "T:T", "fibh", "size:I? implicit:b?", expand},
    {"aten::permute", "T:T", "fibh", "dims:I", permute},
    {"aten::flip", "T:T", "fibh", "dims:I", flip},
    {"aten::slice.Tensor", "T:T", "fibh", "dim:i? start:in? end:in? step:i?", slice},
    {"aten::constant_pad_nd", "Ts:T", "fibh", "pad:I value:s?", pad},
    {"aten::cat", "+:T", "fibh", "tensors.count:i? dim:i?", cat},
    {"aten::as_strided", "T:T", "fibh", "size:I? stride:I storage_offset:in?", as_strided},
    {"aten::as_strided_scatter", "TT:T", "fibh", "size:I? stride:I storage_offset:in?", as_strided_scatter},
};

}  // namespace

std::span<const Row> movement_ops() { return kRows; }

Value take(Module& m, const Value& from, const Value& positions) {
  const Value flat = m.reshape(from, {from.type.count()});
  return m.op("gather", {flat, positions}, {from.type.dtype, positions.type.sizes},
              "dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = " +
                  std::to_string(positions.type.rank()) + ">, slice_sizes = array<i64: 1>");
}

}  // namespace ltc::pjrt
