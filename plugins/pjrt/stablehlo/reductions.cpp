// Ops along dims: sums, extrema, order.
#include "pjrt/stablehlo/ops.h"

namespace ltc::pjrt {
namespace {

// The result with its dims of size 1, where it keeps them.
Values with_kept_dims(Call& call, const Value& reduced) { return {call.module.reshape(reduced, call.type().sizes)}; }

// `op` joins two elements.
Values reduce(Call& call) {
  Module& m = call.module;
  const Value initial = m.number(call.type().dtype, call.row.op == "multiply" ? 1 : 0);
  return with_kept_dims(call, m.reduce(call.inputs[0], call.dims(), call.row.op, initial));
}

Value maximum(Module& m, const Value& x, const Sizes& dims) {
  const ltc_dtype dtype = x.type.dtype;
  return m.reduce(x, dims, dtype == LTC_BOOL ? "or" : "maximum", m.least(dtype));
}

Values amax(Call& call) { return with_kept_dims(call, maximum(call.module, call.inputs[0], call.dims())); }

// The least position of those with the maximum. If there is a NaN, the maximum is one, and only NaNs are candidates.
Values argmax(Call& call) {
  Module& m = call.module;
  const Value& x = call.inputs[0];
  if (x.type.rank() == 0) return {m.number(LTC_I64, 0)};
  const Sizes dims = call.dims();
  Sizes kept = x.type.sizes;
  kept[static_cast<size_t>(dims[0])] = 1;
  const Value greatest = m.broadcast(m.reshape(maximum(m, x, dims), kept), x.type.sizes);
  Value is_candidate = m.compare(x, greatest, "EQ");
  if (is_float(x.type.dtype)) is_candidate = m.op("or", {is_candidate, m.compare(x, x, "NE")});
  const Value position = m.iota(LTC_I64, x.type.sizes, dims[0]), none = m.greatest(LTC_I64);
  const Value candidates = m.select(is_candidate, position, m.broadcast(none, x.type.sizes));
  return with_kept_dims(call, m.reduce(candidates, dims, "minimum", none));
}

// Each round adds what lies twice as far back, so the error is that of a sum in pairs.
Values cumsum(Call& call) {
  Module& m = call.module;
  Value sum = call.inputs[0];
  if (sum.type.rank() == 0) return {sum};
  const ltc_dtype dtype = sum.type.dtype;
  if (dtype == LTC_F32) sum = m.convert(sum, LTC_F64);
  const auto dim = static_cast<size_t>(call.dim());
  const Value zero = m.number(sum.type.dtype, 0);
  for (int64_t distance = 1; distance < sum.type.sizes.at(dim); distance *= 2) {
    Sizes none(sum.type.sizes.size(), 0), limit = sum.type.sizes, low = none;
    limit[dim] -= distance;
    low[dim] = distance;
    const Value earlier = m.slice(sum, none, limit, Sizes(none.size(), 1));
    sum = m.op("add", {sum, m.pad(earlier, zero, low, none)});
  }
  return {m.convert(sum, dtype)};
}

// The body of a sort of values with their positions: whether the first pair comes before the second.
std::string order(Module& m, ltc_dtype dtype, bool descending) {
  const std::string p = m.new_prefix(), element = Type{dtype, {}}.text(), flag = "tensor<i1>", index = "tensor<i64>";
  const auto compare = [&](const std::string& result, const std::string& a, const std::string& b, const char* direction) {
    return p + result + " = \"stablehlo.compare\"(" + p + a + ", " + p + b +
           ") {comparison_direction = #stablehlo<comparison_direction " + direction + ">} : (" + element + ", " + element +
           ") -> " + flag + " ";
  };
  const auto join = [&](const std::string& result, const char* op, const std::string& a, const std::string& b) {
    return p + result + " = \"stablehlo." + op + "\"(" + p + a + ", " + p + b + ") : (" + flag + ", " + flag + ") -> " + flag +
           " ";
  };
  std::string text = "({ ^bb0(" + p + "a: " + element + ", " + p + "b: " + element + ", " + p + "i: " + index + ", " + p +
                     "j: " + index + "): " + compare("before", "a", "b", descending ? "GT" : "LT");
  std::string result = "before";
  if (is_float(dtype)) {  // NaN is larger than all else
    const char *larger = descending ? "a" : "b", *other = descending ? "b" : "a";
    text += compare("nan", larger, larger, "NE") + compare("number", other, other, "EQ") + join("both", "and", "nan", "number") +
            join("any", "or", "before", "both");
    result = "any";
  }
  return text + "\"stablehlo.return\"(" + p + result + ") : (" + flag + ") -> () })";
}

Values sort(Call& call) {
  Module& m = call.module;
  const Value& x = call.inputs[0];
  if (x.type.rank() == 0) return {x, m.number(LTC_I64, 0)};
  const Value positions = m.iota(LTC_I64, x.type.sizes, call.dim());
  const ltc_attr* descending = call.find("descending");
  return m.emit("sort", {x, positions}, {x.type, positions.type},
                "dimension = " + std::to_string(call.dim()) + " : i64, is_stable = true",
                order(m, x.type.dtype, descending && descending->value.ints[0]));
}

constexpr Row kRows[] = {
    {"aten::sum.dim_IntList", "T:T", "fi", "dim:In? keepdim:b? dtype:dn?", reduce, "add"},
    {"aten::prod.dim_int", "T:T", "fi", "dim:i keepdim:b? dtype:dn?", reduce, "multiply"},
    {"aten::amax", "T:T", "fib", "dim:I? keepdim:b?", amax},
    {"aten::argmax", "T:i", "fib", "dim:i keepdim:b?", argmax},
    {"aten::cumsum", "T:T", "fi", "dim:i dtype:dn?", cumsum},
    {"aten::sort.stable", "T:Ti", "fib", "stable:bn? dim:i? descending:b?", sort},
};

}  // namespace

std::span<const Row> reduction_ops() { return kRows; }

}  // namespace ltc::pjrt
