// Ops that move elements and compute none.
#include "pjrt/stablehlo/ops.h"

namespace ltc::pjrt {
namespace {

Values reshape(Call& call) { return {call.m.reshape(call.in(0), call.type().sizes)}; }
Values expand(Call& call) { return {call.m.broadcast(call.in(0), call.type().sizes)}; }
Values permute(Call& call) {
  return {call.m.op("transpose", call.inputs, call.type(), "permutation = " + array(call.dims("dims")))};
}
Values cat(Call& call) { return {call.m.op("concatenate", call.inputs, call.type(), axis("dimension", call.dim()))}; }
Values flip(Call& call) {
  if (call.integers("dims").empty()) return call.inputs;
  return {call.m.op("reverse", call.inputs, call.type(), "dimensions = " + array(call.dims("dims")))};
}

Values slice(Call& call) {
  const auto dim = static_cast<size_t>(call.dim());
  Sizes limit = call.in(0).type.sizes, start(limit.size(), 0), step(limit.size(), 1);
  step.at(dim) = call.node.get<int64_t>("step", 1);
  start[dim] = call.node.get<int64_t>("start", 0);
  limit[dim] = start[dim] + (call.type().sizes[dim] - 1) * step[dim] + 1;
  return {call.m.slice(call.in(0), start, limit, step)};
}

Values pad(Call& call) {
  const Sizes pairs = call.integers("pad");
  Sizes low(call.type().sizes.size(), 0), high = low;
  for (size_t i = 0; i + 1 < pairs.size(); i += 2) {
    low.at(low.size() - 1 - i / 2) = pairs[i];
    high.at(low.size() - 1 - i / 2) = pairs[i + 1];
  }
  return {call.m.pad(call.in(0), cast(call.m, call.number("value"), call.type().dtype), low, high)};
}

// Where each element of an array of these sizes lies, by the node's strides.
Value positions(Call& call, const Sizes& sizes) {
  return positions(call.m, sizes, call.integers("stride"), call.node.get<int64_t>("storage_offset", 0));
}

Values as_strided(Call& call) { return {take(call.m, call.in(0), positions(call, call.type().sizes))}; }

// Each place takes the element whose number is the largest of those that meet there: an order of writing would not be kept by
// devices that write in parallel.
Values as_strided_scatter(Call& call) {
  Module& m = call.m;
  const Value &x = call.in(0), &from = call.in(1);
  const Value numbers = m.iota(LTC_I64, {from.type.count()}, 0), none = m.filled({LTC_I64, {x.type.count()}}, -1);
  const Value number = m.reshape(put(m, none, positions(call, from.type.sizes), numbers, "maximum(x,y)"), x.type.sizes);
  return {m.eval("select(GE(x,0),y,z)", {number, take(m, from, m.eval("maximum(x,0)", {number})), x})};
}

constexpr Row kRows[] = {
    {"aten::reshape", "T:T", "fibh", {}, reshape},
    {"aten::expand", "T:T", "fibh", {}, expand},
    {"aten::permute", "T:T", "fibh", {}, permute},
    {"aten::flip", "T:T", "fibh", {}, flip},
    {"aten::slice.Tensor", "T:T", "fibh", {}, slice},
    {"aten::constant_pad_nd", "Ts:T", "fibh", {}, pad},
    {"aten::cat", "+:T", "fibh", {}, cat},
    {"aten::as_strided", "T:T", "fibh", {}, as_strided},
    {"aten::as_strided_scatter", "TT:T", "fibh", {}, as_strided_scatter},
};

}  // namespace

std::span<const Row> movement_ops() { return kRows; }

}  // namespace ltc::pjrt
