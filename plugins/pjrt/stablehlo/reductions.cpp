// Ops along dims: sums, extrema, order.
#include "pjrt/stablehlo/ops.h"

namespace ltc::pjrt {
namespace {

// The formula joins two elements.
Values reduce(Call& call) {
  const Value initial = call.m.number(call.type().dtype, call.formula.starts_with("multiply") ? 1 : 0);
  return {call.m.reshape(call.m.reduce(call.in(0), call.dims(), call.formula, initial), call.type().sizes)};
}

Value maximum(Module& m, const Value& x, const Sizes& dims) {
  return m.reduce(x, dims, x.type.dtype == LTC_BOOL ? "or(x,y)" : "maximum(x,y)", m.extreme(x.type.dtype, true));
}

Values amax(Call& call) { return {call.m.reshape(maximum(call.m, call.in(0), call.dims()), call.type().sizes)}; }

// The least position of those with the maximum, along a dim or in the row-major contents. If there is a NaN, the maximum is one,
// and only NaNs are candidates.
Values argmax(Call& call) {
  Module& m = call.m;
  const bool along_dim = call.node.find<int64_t>("dim") && call.in(0).type.rank() > 0;
  const Value x = along_dim ? call.in(0) : m.reshape(call.in(0), {call.in(0).type.count()});
  const int64_t dim = along_dim ? call.dim() : 0;
  Sizes kept = x.type.sizes;
  kept.at(static_cast<size_t>(dim)) = 1;
  const Value greatest = m.broadcast(m.reshape(maximum(m, x, {dim}), kept), x.type.sizes);
  const Value position = m.iota(LTC_I64, x.type.sizes, dim), none = m.extreme(LTC_I64, false);
  const Value candidates = m.eval("select(or(EQ(x,y),NE(x,x)),z,w)", {x, greatest, position, m.broadcast(none, x.type.sizes)});
  return {m.reshape(m.reduce(candidates, {dim}, "minimum(x,y)", none), call.type().sizes)};
}

// Each round adds what lies twice as far back, so the error is that of a sum in pairs.
Values cumsum(Call& call) {
  Module& m = call.m;
  Value sum = call.in(0);
  if (sum.type.rank() == 0) return {sum};
  if (sum.type.dtype == LTC_F32) sum = m.convert(sum, LTC_F64);
  const auto dim = static_cast<size_t>(call.dim());
  const Value zero = m.number(sum.type.dtype, 0);
  const Sizes none(sum.type.sizes.size(), 0), ones(none.size(), 1);
  for (int64_t distance = 1; distance < sum.type.sizes.at(dim); distance *= 2) {
    Sizes limit = sum.type.sizes, low = none;
    limit[dim] -= low[dim] = distance;
    sum = m.eval("add(x,y)", {sum, m.pad(m.slice(sum, none, limit, ones), zero, low, none)});
  }
  return {m.convert(sum, call.type().dtype)};
}

// Compares pairs of a value and its position. NaN is larger than all else.
Values sort(Call& call) {
  Module& m = call.m;
  const Value& x = call.in(0);
  if (x.type.rank() == 0) return {x, m.number(LTC_I64, 0)};
  const Value positions = m.iota(LTC_I64, x.type.sizes, call.dim(-1));
  const char* comes_before =
      call.node.get<bool>("descending", false) ? "or(GT(x,y),and(NE(x,x),EQ(y,y)))" : "or(LT(x,y),and(EQ(x,x),NE(y,y)))";
  const std::string order = m.region({x.type.dtype, x.type.dtype, LTC_I64, LTC_I64}, comes_before);
  return m.emit("sort", {x, positions}, {x.type, positions.type}, axis("dimension", call.dim(-1)) + ", is_stable = true", order);
}

constexpr Row kRows[] = {
    {"aten::sum.dim_IntList", "T:T", "fi", "add(x,y)", reduce},
    {"aten::prod.dim_int", "T:T", "fi", "multiply(x,y)", reduce},
    {"aten::amax", "T:T", "fib", {}, amax},
    {"aten::argmax", "T:i", "fib", {}, argmax},
    {"aten::cumsum", "T:T", "fi", {}, cumsum},
    {"aten::sort.stable", "T:Ti", "fib", {}, sort},
};

}  // namespace

std::span<const Row> reduction_ops() { return kRows; }

}  // namespace ltc::pjrt
