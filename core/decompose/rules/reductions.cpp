// Reductions, scans and sorting.
#include <algorithm>
#include <limits>

#include "core/decompose/rules/families.h"

namespace ltc::decompose {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

double count_of(const Val& x, const Ints& dims) {
  double count = 1;
  for (const int64_t dim : wrap_dims(x, dims)) count *= static_cast<double>(x.size(dim));
  return count;
}

Results sum_all(const Call& call) { return sum(cast(call.tensor("self"), math_dtype(call.result().dtype)), {}); }

Results mean_over(const Call& call) {
  return mean(cast(call.tensor("self"), math_dtype(call.result().dtype)), call.ints("dim"), call.flag("keepdim"));
}
Results mean_all(const Call& call) { return mean(cast(call.tensor("self"), math_dtype(call.result().dtype)), {}); }

Results product_all(const Call& call) {
  const Val x = cast(call.tensor("self"), math_dtype(call.result().dtype));
  return x.rank() == 0 ? x : prod(reshape(x, {-1}), 0);
}

Results minimum_over(const Call& call) {
  const Val x = call.tensor("self");
  if (x.rank() == 0) return x;
  if (x.dtype() == DType::kBool) return all(x, call.ints("dim"), call.flag("keepdim"));
  return amin(call.math("self"), call.ints("dim"), call.flag("keepdim"));
}
Results maximum_all(const Call& call) {
  const Val x = call.tensor("self");
  if (x.dtype() == DType::kBool) return any(x, {});
  return x.rank() == 0 ? x : amax(call.math("self"), {});
}
Results minimum_all(const Call& call) {
  const Val x = call.tensor("self");
  if (x.dtype() == DType::kBool) return all(x, {});
  return x.rank() == 0 ? x : amin(call.math("self"), {});
}

// In reversed order: see amin.
Val order_reversed(Val x) {
  x = x.dtype() == DType::kBool ? cast(x, DType::kU8) : x;
  return is_floating(x.dtype()) ? -x : ~x;
}

Val position(Val x, int64_t dim, bool keepdim, bool smallest) {
  if (x.rank() == 0) return full(*x.builder, DType::kI64, {}, int64_t{0});
  if (x.dtype() == DType::kBool) x = cast(x, DType::kU8);
  return argmax(smallest ? order_reversed(x) : x, dim, keepdim);
}

template <bool kSmallest>
Results extreme_with_position(const Call& call) {
  const Val x = call.tensor("self");
  const int64_t dim = call.integer("dim");
  if (x.rank() == 0) return {x, full(call.builder(), DType::kI64, {}, int64_t{0})};
  const Val index = position(call.math("self"), dim, true, kSmallest), value = gather(x, dim, index);
  return call.flag("keepdim") ? Results{value, index} : Results{squeeze(value, dim), squeeze(index, dim)};
}

Results position_of_minimum(const Call& call) {
  const Val x = call.math("self");
  if (call.given("dim")) return position(x, call.integer("dim"), call.flag("keepdim"), true);
  return reshape(position(reshape(x, {-1}), 0, false, true), call.result().sizes);
}

Results range_of(const Call& call) {
  const Val x = call.math("self");
  const Ints dims = call.given("dim") ? Ints{call.integer("dim")} : Ints{};
  const bool keep = call.flag("keepdim");
  if (x.rank() == 0) return {x, x};
  return {amin(x, dims, keep), amax(x, dims, keep)};
}

Results any_of(const Call& call) { return any(call.math("self"), {}); }
Results all_of(const Call& call) { return all(call.math("self"), {}); }
Results any_along(const Call& call) { return any(call.math("self"), {call.integer("dim")}, call.flag("keepdim")); }
Results all_along(const Call& call) { return all(call.math("self"), {call.integer("dim")}, call.flag("keepdim")); }
Results any_over(const Call& call) { return any(call.math("self"), call.ints("dim"), call.flag("keepdim")); }
Results all_over(const Call& call) { return all(call.math("self"), call.ints("dim"), call.flag("keepdim")); }

// In two passes: the squares of what is left after the mean.
struct Moments {
  Val variance, mean;
};
Moments moments(const Call& call) {
  const Val x = cast(call.tensor("self"), math_dtype(call.any_result().dtype));
  const Ints dims = call.ints("dim");
  const bool keep = call.flag("keepdim");
  const Val centre = mean(x, dims, true), squares = sum(square(x - centre), dims, keep);
  const double count = count_of(x, dims);
  const Val divisor = call.given("correction") ? maximum(count - cast(call.number("correction"), x.dtype()), 0.0)
                                               : cast(number(call.builder(), std::max(count - 1, 0.0)), x.dtype());
  return {squares / divisor, keep ? centre : mean(x, dims, false)};
}
Results variance(const Call& call) { return moments(call).variance; }
Results deviation(const Call& call) { return sqrt(moments(call).variance); }
Results variance_and_mean(const Call& call) {
  const Moments m = moments(call);
  return {m.variance, m.mean};
}
Results deviation_and_mean(const Call& call) {
  const Moments m = moments(call);
  return {sqrt(m.variance), m.mean};
}

// The largest is taken out, unless it is infinite: then the plain formula gives the right infinity.
Results log_sum_exp(const Call& call) {
  const Val x = cast(call.tensor("self"), math_dtype(call.result().dtype));
  const Ints dims = call.ints("dim");
  if (x.rank() == 0) return x;
  const Val peak = amax(x, dims, true), shift = where(abs(peak) == kInf, zeros_like(peak), peak);
  const Val total = log(sum(exp(x - shift), dims, true)) + shift;
  return reshape(total, call.result().sizes);
}

// The p-norm over dims, by default the Euclidean one.
Results norm_of(const Call& call, const char* order_name) {
  const Val x = cast(call.tensor("self"), math_dtype(call.result().dtype));
  const auto order = call.given(order_name) ? call.constant(order_name) : 2.0;
  return p_norm(x, call.ints("dim"), call.flag("keepdim"), order, call.number(order_name));
}
Results norm(const Call& call) { return norm_of(call, "p"); }
Results vector_norm(const Call& call) { return norm_of(call, "ord"); }

Results count_nonzero(const Call& call) { return sum(cast(call.math("self") != 0, DType::kI64), call.ints("dim")); }

// Running results by doubling: after step k each place holds what `join` makes of the 2^k places up to it.
template <Val (*kJoin)(Val, Val)>
Results scan(const Call& call) {
  Val x = cast(call.tensor("self"), math_dtype(call.result().dtype));
  if (x.rank() == 0 || x.count() == 0) return x;
  const int64_t dim = x.wrap(call.integer("dim")), size = x.size(dim);
  for (int64_t reach = 1; reach < size; reach *= 2) {
    x = cat({slice(x, dim, 0, reach), kJoin(slice(x, dim, reach, size), slice(x, dim, 0, size - reach))}, dim);
  }
  return x;
}

// Running extremes in the same way; later positions win ties, as in PyTorch, and NaN stays.
template <bool kSmallest>
Results running_extreme(const Call& call) {
  const Val x = call.math("self");
  if (x.rank() == 0) return {call.tensor("self"), full(call.builder(), DType::kI64, {}, int64_t{0})};
  if (x.count() == 0) return {call.tensor("self"), full(call.builder(), DType::kI64, x.sizes(), int64_t{0})};
  const int64_t dim = x.wrap(call.integer("dim")), size = x.size(dim);
  Val value = x.dtype() == DType::kBool ? cast(x, DType::kU8) : x, index = expand(index_along(x, dim, size), x.sizes());
  for (int64_t reach = 1; reach < size; reach *= 2) {
    const Val late = slice(value, dim, reach, size), early = slice(value, dim, 0, size - reach);
    Val keeps = kSmallest ? late <= early : late >= early;
    if (is_floating(x.dtype())) keeps = (keeps & ~is_nan(early)) | is_nan(late);
    index =
        cat({slice(index, dim, 0, reach), where(keeps, slice(index, dim, reach, size), slice(index, dim, 0, size - reach))}, dim);
    value = cat({slice(value, dim, 0, reach), where(keeps, late, early)}, dim);
  }
  return {value, index};
}

// Values of the 16-bit floats are sorted as floats: their order is the same.
Sorted sorted(Val x, int64_t dim, bool descending) {
  const DType own = x.dtype(), key = own == DType::kBool ? DType::kU8 : math_dtype(own);
  if (x.rank() == 0) return {x, full(*x.builder, DType::kI64, {}, int64_t{0})};
  Sorted result = sort(cast(x, key), dim, descending);
  result.values = cast(result.values, own);
  return result;
}

Results sort_stable(const Call& call) {
  const Val x = call.tensor("self");
  const bool canonical = x.rank() > 0 && x.dtype() != DType::kBool && x.dtype() == math_dtype(x.dtype());
  if (canonical && call.flag("stable")) return nothing();
  const Sorted s = sorted(x, call.integer("dim"), call.flag("descending"));
  return {s.values, s.indices};
}

Results sort_any(const Call& call) {
  const Sorted s = sorted(call.tensor("self"), call.integer("dim"), call.flag("descending"));
  return {s.values, s.indices};
}

Results top_k(const Call& call) {
  const Val x = call.tensor("self");
  const int64_t dim = call.integer("dim"), k = call.integer("k");
  const Sorted s = sorted(x, dim, call.flag("largest"));
  if (x.rank() == 0) return {s.values, s.indices};
  return {slice(s.values, dim, 0, k), slice(s.indices, dim, 0, k)};
}

Results kth_value(const Call& call) {
  const Val x = call.tensor("self");
  const int64_t dim = call.integer("dim"), k = call.integer("k") - 1;
  const Sorted s = sorted(x, dim, false);
  if (x.rank() == 0) return {s.values, s.indices};
  const Ints sizes = call.wants(0) ? call.result(0).sizes : call.result(1).sizes;
  return {reshape(slice(s.values, dim, k, k + 1), sizes), reshape(slice(s.indices, dim, k, k + 1), sizes)};
}

Results sum_without_nan(const Call& call) {
  const Val x = cast(call.tensor("self"), math_dtype(call.result().dtype));
  return sum(where(is_nan(x), zeros_like(x), x), call.ints("dim"), call.flag("keepdim"));
}

// The lower of the two middle elements; NaN, unless left out, is the median of all that has it.
Sorted middle(Val x, int64_t dim, bool skips_nan) {
  const Sorted s = sorted(x, dim, false);
  const int64_t size = x.size(dim);
  const Val places = index_along(x, dim, 1) * 0;
  Val at = places + (size - 1) / 2;
  Ints one = x.sizes();
  one[static_cast<size_t>(x.wrap(dim))] = 1;
  at = expand(at, one);
  if (is_floating(x.dtype())) {
    const Val lost = sum(cast(is_nan(s.values), DType::kI64), {dim}, true);
    const Val skipped =
        arithmetic("aten::bitwise_right_shift.Tensor", maximum((size - 1) - lost, 0), number(*x.builder, int64_t{1}));
    at = skips_nan ? skipped : where(lost > 0, size - lost, at);
  }
  return {gather(s.values, dim, at), gather(s.indices, dim, at)};
}
template <bool kSkipsNan>
Results median_along(const Call& call) {
  const Val x = call.math("self");
  if (x.rank() == 0) return {x, full(call.builder(), DType::kI64, {}, int64_t{0})};
  const Sorted m = middle(x, call.integer("dim"), kSkipsNan);
  const Ints sizes = call.wants(0) ? call.result(0).sizes : call.result(1).sizes;
  return {reshape(m.values, sizes), reshape(m.indices, sizes)};
}
template <bool kSkipsNan>
Results median_of_all(const Call& call) {
  const Val x = reshape(call.math("self"), {-1});
  if (x.count() == 0) return nothing();
  return reshape(middle(x, 0, kSkipsNan).values, {});
}

constexpr Decomposition kRules[] = {
    {"aten::sum", sum_all},
    {"aten::mean", mean_all},
    {"aten::mean.dim", mean_over},
    {"aten::prod", product_all},
    {"aten::amin", minimum_over},
    {"aten::max", maximum_all},
    {"aten::min", minimum_all},
    {"aten::max.dim", extreme_with_position<false>},
    {"aten::min.dim", extreme_with_position<true>},
    {"aten::argmin", position_of_minimum},
    {"aten::aminmax", range_of},
    {"aten::any", any_of},
    {"aten::all", all_of},
    {"aten::any.dim", any_along},
    {"aten::all.dim", all_along},
    {"aten::any.dims", any_over},
    {"aten::all.dims", all_over},
    {"aten::var.correction", variance},
    {"aten::std.correction", deviation},
    {"aten::var_mean.correction", variance_and_mean},
    {"aten::std_mean.correction", deviation_and_mean},
    {"aten::logsumexp", log_sum_exp},
    {"aten::norm.ScalarOpt_dim", norm},
    {"aten::linalg_vector_norm", vector_norm},
    {"aten::count_nonzero.dim_IntList", count_nonzero},
    {"aten::cumprod", scan<product>},
    {"aten::cummax", running_extreme<false>},
    {"aten::cummin", running_extreme<true>},
    {"aten::_logcumsumexp", scan<log_add_exp>},
    {"aten::sort.stable", sort_stable},
    {"aten::sort", sort_any},
    {"aten::topk", top_k},
    {"aten::kthvalue", kth_value},
    {"aten::nansum", sum_without_nan},
    {"aten::median.dim", median_along<false>},
    {"aten::nanmedian.dim", median_along<true>},
    {"aten::median", median_of_all<false>},
    {"aten::nanmedian", median_of_all<true>},
};

}  // namespace

std::span<const Decomposition> reductions() { return kRules; }

}  // namespace ltc::decompose
