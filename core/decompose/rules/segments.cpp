// Reductions of the elements that an index sends to one place: sorted by the index they lie side by side, as runs.
#include <algorithm>

#include "core/decompose/rules/families.h"
#include "core/decompose/support/runs.h"

namespace ltc::decompose {

Val scan_runs(Val x, Val keys, int64_t dim, Join join) {
  const int64_t size = x.size(dim);
  for (int64_t reach = 1; reach < size; reach *= 2) {
    const Val late = slice(x, dim, reach, size), early = slice(x, dim, 0, size - reach);
    const Val same = slice(keys, dim, reach, size) == slice(keys, dim, 0, size - reach);
    x = cat({slice(x, dim, 0, reach), where(same, join(late, early), late)}, dim);
  }
  return x;
}

Val join_runs(Val x, Val keys, int64_t dim, Join join) {
  const Val place = expand(index_along(x, dim, x.size(dim)), x.sizes());
  const Val end = flip(scan_runs(flip(place, {dim}), flip(keys, {dim}), dim, maximum), {dim});
  return gather(scan_runs(x, keys, dim, join), dim, end);
}

namespace {

// x with what `join` makes of all elements of `source` that the index sends to one place; `own`: and of x's there.
Val join_into(Val x, int64_t dim, Val index, Val source, Join join, bool own) {
  const Sorted keys = sort(cast(index, DType::kI64), dim, false);
  const Val joined = scatter(x, dim, keys.values, join_runs(gather(source, dim, keys.indices), keys.values, dim, join));
  if (!own) return joined;
  const Val none = full(*x.builder, DType::kBool, x.sizes(), int64_t{0});
  const Val touched = scatter(none, dim, index, full(*x.builder, DType::kBool, index.sizes(), int64_t{1}));
  return where(touched, join(x, joined), x);
}

Val add_into(Val x, int64_t dim, Val index, Val source, bool own) {
  return scatter_add(own ? x : scatter(x, dim, index, zeros_like(source)), dim, index, source);
}

Val average_into(Val x, int64_t dim, Val index, Val source, bool own) {
  const Val total = add_into(x, dim, index, source, own);
  const Val count = maximum(scatter_add(own ? ones_like(x) : zeros_like(x), dim, index, ones_like(source)), 1);
  return is_floating(x.dtype()) ? total / count : exact_quotient(total - remainder(total, count), count);
}

// Source as large as the index. Truth values are numbers meanwhile: sums of them are maxima, products minima.
Val reduce_into(Val x, int64_t dim, Val index, Val source, const std::string& how, bool own) {
  const DType dtype = x.dtype();
  const bool is_truth = dtype == DType::kBool;
  const Ints sizes = x.sizes();
  const DType math = is_truth ? DType::kU8 : math_dtype(dtype);
  x = as_vector(cast(x, math)), index = as_vector(index), source = as_vector(cast(source, math));
  if (index.count() == 0) return cast(reshape(x, sizes), dtype);
  for (int64_t i = 0; i < index.rank(); ++i) source = slice(source, i, 0, index.size(i));
  Val result;
  if (how == "mean") {
    result = average_into(x, dim, index, source, own);
  } else if ((how == "sum" || how == "add") && !is_truth) {
    result = add_into(x, dim, index, source, own);
  } else if (how == "amin" || (is_truth && (how == "prod" || how == "multiply"))) {
    result = join_into(x, dim, index, source, minimum, own);
  } else {
    const Join join = how == "prod" || how == "multiply" ? Join(product) : Join(maximum);
    result = join_into(x, dim, index, source, join, own);
  }
  return cast(reshape(result, sizes), dtype);
}

Results scatter_reduce(const Call& call) {
  return reduce_into(call.tensor("self"), call.integer("dim"), call.tensor("index"), call.tensor("src"), call.string("reduce"),
                     call.flag("include_self"));
}
Results scatter_with(const Call& call) {
  return reduce_into(call.tensor("self"), call.integer("dim"), call.tensor("index"), call.tensor("src"), call.string("reduce"),
                     true);
}
Results scatter_number_with(const Call& call) {
  const Val x = call.tensor("self"), index = call.tensor("index");
  const Val source = expand(cast(call.number("value"), x.dtype()), index.sizes());
  return reduce_into(x, call.integer("dim"), index, source, call.string("reduce"), true);
}
Results index_reduce(const Call& call) {
  const Val x = call.tensor("self"), source = as_vector(call.tensor("source"));
  const int64_t dim = x.wrap(call.integer("dim"));
  return reduce_into(x, dim, index_for(call.tensor("index"), dim, source.sizes()), source, call.string("reduce"),
                     call.flag("include_self"));
}

// The most frequent value, of several the smallest: where the longest of the runs ends.
Results mode(const Call& call) {
  const Val x = call.tensor("self");
  if (x.rank() == 0) return {x, full(call.builder(), DType::kI64, {}, int64_t{0})};
  if (x.count() == 0) return nothing();
  const int64_t dim = x.wrap(call.integer("dim"));
  const Sorted s = sort(cast(x, x.dtype() == DType::kBool ? DType::kU8 : math_dtype(x.dtype())), dim, false);
  const Val ones = full(call.builder(), DType::kI64, x.sizes(), int64_t{1});
  const Val length = scan_runs(cumsum(ones, dim), s.values, dim, minimum), end = argmax(cumsum(ones, dim) - length, dim, true);
  const Val value = gather(s.values, dim, end), place = gather(s.indices, dim, end);
  return call.flag("keepdim") ? Results{value, place} : Results{squeeze(value, dim), squeeze(place, dim)};
}

// Equal limits stand for the least and the largest element, and if these are equal for one below and one above.
Results histogram_counts(const Call& call) {
  const Val x = reshape(call.math("self"), {-1});
  const int64_t bins = call.integer("bins");
  Builder& b = call.builder();
  const Val zeros = full(b, x.dtype(), {bins}, int64_t{0});
  if (x.count() == 0) return zeros;
  Val low = cast(call.number("min"), x.dtype()), high = cast(call.number("max"), x.dtype());
  const Val open = low == high;
  low = where(open, amin(x, {}), low), high = where(open, amax(x, {}), high);
  const Val flat = low == high;
  low = where(flat, low - 1, low), high = where(flat, high + 1, high);
  const Val inside = (low <= x) & (x <= high);
  const Val place = cast((where(inside, x, low) - low) / (high - low) * bins, DType::kI64);
  return scatter_add(zeros, 0, minimum(place, bins - 1), cast(inside, x.dtype()));
}

constexpr Decomposition kRules[] = {
    {"aten::scatter_reduce.two", scatter_reduce},
    {"aten::scatter.reduce", scatter_with},
    {"aten::scatter.value_reduce", scatter_number_with},
    {"aten::index_reduce", index_reduce},
    {"aten::mode", mode},
    {"aten::histc", histogram_counts},
};

}  // namespace

std::span<const Decomposition> segments() { return kRules; }

}  // namespace ltc::decompose
