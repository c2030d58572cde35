// Sums, means and maxima of the rows of an embedding by bag: consecutive indices, of which `offsets` says where each bag begins.
#include "core/decompose/rules/families.h"
#include "core/decompose/support/runs.h"

namespace ltc::decompose {
namespace {

constexpr int64_t kMean = 1, kMax = 2;

// Whether the first bag begins with the first of n indices, and no bag lies outside of them.
Val are_valid(Val offsets, int64_t n) {
  offsets = cast(offsets, DType::kI64);
  return all((offsets >= 0) & (offsets <= n), {}) & (select(offsets, 0, 0) == 0);
}

// Which bag each index is of, which is none at all with offsets that are not valid; how many of its indices count; which count.
struct Bags {
  Val of_index, counts, size;
  int64_t count;
};
Bags bags_of(Val indices, Val offsets, bool has_end, int64_t padding) {
  Builder& b = *indices.builder;
  const int64_t n = indices.count(), count = offsets.count() - has_end;
  const Val valid = are_valid(offsets, n);
  const Val begun = reshape(cast(slice(offsets, 0, 0, count), DType::kI64), {1, count}) <= reshape(iota(b, n), {n, 1});
  const Val of_index = where(valid, sum(cast(begun, DType::kI64), {1}) - 1, -1), counts = indices != padding;
  return {of_index, counts, scatter_add(full(b, DType::kI64, {count}, int64_t{0}), 0, of_index, cast(counts, DType::kI64)),
          count};
}

struct Largest {
  Val rows, places;  // by bag; of an empty one 0
};
Largest largest_rows(const Bags& bags, Val rows, Val indices) {
  Builder& b = *rows.builder;
  const int64_t n = rows.size(0), width = rows.size(1);
  const Val keys = expand(reshape(bags.of_index, {n, 1}), {n, width});
  const Val counted = where(reshape(bags.counts, {n, 1}), rows, full_like(rows, lowest_of(rows.dtype())));
  const auto by_bag = [&](Val runs) { return scatter(full(b, runs.dtype(), {bags.count, width}, int64_t{0}), 0, keys, runs); };
  const Val best = by_bag(join_runs(counted, keys, 0, maximum));
  const Val is_best = counted == gather(best, 0, keys);
  const Val place = where(is_best, reshape(iota(b, n), {n, 1}), full(b, DType::kI64, {n, width}, n - 1));
  const Val first = by_bag(join_runs(place, keys, 0, minimum));
  const Val filled = reshape(bags.size, {bags.count, 1}) > 0;
  return {where(filled, best, zeros_like(best)), gather(expand(reshape(indices, {n, 1}), {n, width}), 0, first)};
}

// Zeros, which come from no place where the offsets are not valid.
Results empty_bags(const Call& call) {
  Results results = zeros_of(call);
  if (!call.wants(0)) return results;
  Builder& b = call.builder();
  const Val zero = full(b, call.result().dtype, {1}, int64_t{0}), place = full(b, DType::kI64, {1}, int64_t{0});
  results.values[0] = expand(gather(zero, 0, where(are_valid(call.tensor("offsets"), 0), place, -1)), call.result().sizes);
  return results;
}

Results embedding_bag(const Call& call) {
  const Val weight = call.math("weight"), indices = cast(call.tensor("indices"), DType::kI64);
  const int64_t n = indices.count(), mode = call.integer("mode");
  const bool has_end = call.flag("include_last_offset");
  if (weight.count() == 0 || call.tensor("offsets").count() == has_end) return zeros_of(call);
  if (n == 0) return empty_bags(call);
  Builder& b = call.builder();
  const Bags bags = bags_of(indices, call.tensor("offsets"), has_end, call.integer("padding_idx"));
  Val rows = take_along(weight, 0, indices), result, largest;
  if (mode == kMax) {
    const Largest l = largest_rows(bags, rows, indices);
    result = l.rows, largest = l.places;
  } else {
    if (const Val scale = call.math("per_sample_weights")) rows = rows * reshape(scale, {n, 1});
    rows = where(reshape(bags.counts, {n, 1}), rows, zeros_like(rows));
    result = put_along(rows, 0, bags.of_index, bags.count);
    if (mode == kMean) result = result / cast(reshape(maximum(bags.size, 1), {bags.count, 1}), result.dtype());
  }
  // The CPU's other results depend on its way of computing; only the backward reads them.
  const auto filled = [&](size_t i, Val value) {
    if (!call.wants(i)) return Val();
    const Ints& sizes = call.result(i).sizes;
    return value && value.sizes() == sizes ? value : full(b, DType::kI64, sizes, int64_t{0});
  };
  return {result, filled(1, bags.of_index), filled(2, bags.size), filled(3, largest)};
}

Results embedding_bag_backward(const Call& call) {
  const Val grad = call.math("grad"), indices = cast(call.tensor("indices"), DType::kI64);
  const int64_t n = indices.count(), rows = call.integer("num_weights"), mode = call.integer("mode");
  if (call.flag("sparse")) return nothing();
  if (n == 0) return zeros_of(call);
  Builder& b = call.builder();
  const bool has_end = call.tensor("offsets").count() > grad.size(0);
  const Bags bags = bags_of(indices, call.tensor("offsets"), has_end, call.integer("padding_idx"));
  if (mode == kMax) {
    const Val filled = reshape(bags.size, {bags.count, 1}) > 0;
    return scatter_add(full(b, grad.dtype(), {rows, grad.size(1)}, int64_t{0}), 0, call.tensor("maximum_indices"),
                       where(filled, grad, zeros_like(grad)));
  }
  Val share = mode == kMean ? grad / cast(reshape(maximum(bags.size, 1), {bags.count, 1}), grad.dtype()) : grad;
  share = take_along(share, 0, bags.of_index);
  if (const Val scale = call.math("per_sample_weights")) share = share * reshape(scale, {n, 1});
  if (call.flag("scale_grad_by_freq")) {
    const Val ones = full(b, grad.dtype(), {n}, int64_t{1});
    const Val uses = scatter_add(full(b, grad.dtype(), {rows}, int64_t{0}), 0, indices, ones);
    share = share / reshape(gather(uses, 0, indices), {n, 1});
  }
  return put_along(where(reshape(bags.counts, {n, 1}), share, zeros_like(share)), 0, indices, rows);
}

Results sample_weights_backward(const Call& call) {
  const Val grad = call.math("grad"), indices = cast(call.tensor("indices"), DType::kI64);
  const int64_t n = indices.count();
  if (n == 0) return zeros_of(call);
  const bool has_end = call.tensor("offsets").count() > grad.size(0);
  const Bags bags = bags_of(indices, call.tensor("offsets"), has_end, call.integer("padding_idx"));
  const Val each = sum(take_along(grad, 0, bags.of_index) * take_along(call.math("weight"), 0, indices), {1});
  return where(bags.counts, each, zeros_like(each));
}

// Rows that are used and longer than max_norm are scaled down to it.
Results renormalize_used(const Call& call) {
  const Val x = call.math("self"), indices = cast(reshape(call.tensor("indices"), {-1}), DType::kI64);
  const Val p = call.number("norm_type"), most = cast(call.number("max_norm"), x.dtype());
  const Val none = full(call.builder(), DType::kBool, {x.size(0)}, int64_t{0});
  const Val used = scatter(none, 0, indices, full(call.builder(), DType::kBool, {indices.count()}, int64_t{1}));
  const Val norm = p_norm(x, {1}, true, call.constant("norm_type"), p);
  const Val scale = where(reshape(used, {-1, 1}) & (norm > most), most / (norm + 1e-7), ones_like(norm));
  return x * scale;
}

constexpr Decomposition kRules[] = {
    {"aten::_embedding_bag", embedding_bag},
    {"aten::_embedding_bag_forward_only", embedding_bag},
    {"aten::_embedding_bag_backward", embedding_bag_backward},
    {"aten::_embedding_bag_per_sample_weights_backward", sample_weights_backward},
    {"aten::embedding_renorm", renormalize_used},
};

}  // namespace

std::span<const Decomposition> bags() { return kRules; }

}  // namespace ltc::decompose
