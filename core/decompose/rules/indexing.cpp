// Reads and writes by index tensors, through gather and scatter of whole rows.
#include <algorithm>

#include "core/decompose/rules/families.h"

namespace ltc::decompose {
namespace {

// `index` of one dim, negative values counted from the end.
Val wrapped(Val index, int64_t size) {
  index = cast(index, DType::kI64);
  return where(index < 0, index + size, index);
}

Results index_select(const Call& call) {
  const Val x = as_vector(call.tensor("self")), index = call.tensor("index");
  const int64_t dim = x.wrap(call.integer("dim"));
  return reshape(gather(x, dim, index_for(index, dim, x.sizes())), call.result().sizes);
}

Results embedding(const Call& call) {
  const Val weight = call.tensor("weight"), indices = call.tensor("indices");
  return reshape(gather(weight, 0, index_for(reshape(indices, {-1}), 0, weight.sizes())), call.result().sizes);
}

Results embedding_backward(const Call& call) {
  const Val g = call.math("grad_output"), index = reshape(cast(call.tensor("indices"), DType::kI64), {-1});
  const int64_t rows = call.integer("num_weights"), width = g.rank() ? g.size(-1) : 1, padding = call.integer("padding_idx");
  Builder& b = call.builder();
  Val piece = reshape(g, {index.count(), width});
  if (padding >= 0) piece = where(reshape(index == padding, {-1, 1}), zeros_like(piece), piece);
  if (call.flag("scale_grad_by_freq")) {
    const Val ones = full(b, piece.dtype(), {index.count()}, int64_t{1});
    const Val counts = scatter_add(full(b, piece.dtype(), {rows}, int64_t{0}), 0, index, ones);
    piece = piece / reshape(gather(counts, 0, index), {-1, 1});
  }
  const Val table = full(b, piece.dtype(), {rows, width}, int64_t{0});
  return reshape(scatter_add(table, 0, index_for(index, 0, piece.sizes()), piece), call.result().sizes);
}

// x[indices] as rows of a matrix: the indexed dims, moved to the front, are one dim whose places the indices give.
struct Indexed {
  Val rows;          // [places of the indexed dims, rest]
  Val places;        // of shape `shape`; -1, which names no row, where an index is outside its own dim
  Ints shape;        // what the indices broadcast to
  Ints order, rest;  // dims moved to the front; sizes of the others
  int64_t first;     // dim of x at which the result has the indices' shape; 0 if they stand apart
};

std::optional<Indexed> index_rows(Val x, const std::vector<Val>& indices) {
  Indexed r;
  Ints others;
  std::vector<int64_t> indexed;
  for (int64_t dim = 0; dim < x.rank(); ++dim) {
    const bool is_indexed = static_cast<size_t>(dim) < indices.size() && indices[static_cast<size_t>(dim)];
    (is_indexed ? indexed : others).push_back(dim);
  }
  for (const int64_t dim : indexed) {
    const Val& index = indices[static_cast<size_t>(dim)];
    if (!is_integral(index.dtype()) || index.dtype() == DType::kU8) return std::nullopt;  // a mask: its count depends on values
    r.shape = broadcast(r.shape, index.sizes());
  }
  const bool adjacent = indexed.back() - indexed.front() + 1 == static_cast<int64_t>(indexed.size());
  r.first = adjacent ? indexed.front() : 0;
  r.order = indexed;
  r.order.insert(r.order.end(), others.begin(), others.end());
  int64_t count = 1;
  Val outside;
  for (const int64_t dim : indexed) {
    const int64_t size = x.size(dim);
    const Val index = wrapped(indices[static_cast<size_t>(dim)], size), out = (index < 0) | (index >= size);
    r.places = r.places ? r.places * size + index : index;
    outside = outside ? outside | out : out;
    count *= size;
  }
  if (indexed.size() > 1) r.places = where(outside, -1, r.places);
  r.places = expand(r.places, r.shape);
  int64_t rest = 1;
  for (const int64_t dim : others) r.rest.push_back(x.size(dim)), rest *= x.size(dim);
  r.rows = reshape(permute(x, r.order), {count, rest});
  return r;
}

// Dims of the result in the order [indices' shape, rest] -> where PyTorch puts them.
Ints result_order(const Indexed& r) {
  const auto shape = static_cast<int64_t>(r.shape.size()), rest = static_cast<int64_t>(r.rest.size());
  Ints order;
  for (int64_t i = 0; i < r.first; ++i) order.push_back(shape + i);
  for (int64_t i = 0; i < shape; ++i) order.push_back(i);
  for (int64_t i = r.first; i < rest; ++i) order.push_back(shape + i);
  return order;
}

Ints inverse(const Ints& order) {
  Ints result(order.size());
  for (size_t i = 0; i < order.size(); ++i) result[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  return result;
}

Ints joined(const Ints& a, const Ints& b) {
  Ints result = a;
  result.insert(result.end(), b.begin(), b.end());
  return result;
}

Results index(const Call& call) {
  const Val x = call.tensor("self");
  const auto r = index_rows(x, call.tensors("indices"));
  if (!r) return nothing();
  const Val picked = gather(r->rows, 0, index_for(reshape(r->places, {-1}), 0, r->rows.sizes()));
  return permute(reshape(picked, joined(r->shape, r->rest)), result_order(*r));
}

// Writes the same where one mask holds: `values` have one row for all its places, or none of their own.
Results put_by_mask(const Call& call) {
  const Val x = call.tensor("self");
  const std::vector<Val> indices = call.tensors("indices");
  const auto given = [](const Val& index) { return static_cast<bool>(index); };
  const auto at = std::ranges::find_if(indices, given);
  if (std::ranges::count_if(indices, given) != 1 || at->dtype() != DType::kBool) return nothing();
  Val values = cast(call.tensor("values"), x.dtype());
  const int64_t behind = x.rank() - (at - indices.begin()) - at->rank(), row = values.rank() - 1 - behind;
  if (row >= 0) {
    if (values.size(row) != 1) return nothing();
    Ints sizes = values.sizes();
    sizes.erase(sizes.begin() + row);
    sizes.insert(sizes.begin() + row, static_cast<size_t>(at->rank()), 1);
    values = reshape(values, sizes);
  }
  Ints sizes = at->sizes();
  sizes.insert(sizes.end(), static_cast<size_t>(behind), 1);
  const Val mask = reshape(*at, sizes);
  return call.flag("accumulate") ? x + where(mask, values, zeros_like(x)) : where(mask, values, x);
}

Results index_put(const Call& call) {
  const Val x = call.tensor("self");
  const auto r = index_rows(x, call.tensors("indices"));
  if (!r) return put_by_mask(call);
  const Ints order = result_order(*r), shape = joined(r->shape, r->rest);
  Ints wide;
  for (const int64_t dim : order) wide.push_back(shape[static_cast<size_t>(dim)]);
  const Val values = permute(expand(cast(call.tensor("values"), x.dtype()), wide), inverse(order));
  const int64_t count = r->places.count();
  const Val from = reshape(values, {count, r->rows.size(1)}), at = index_for(reshape(r->places, {-1}), 0, from.sizes());
  const Val written = call.flag("accumulate") ? scatter_add(r->rows, 0, at, from) : scatter(r->rows, 0, at, from);
  Ints moved;
  for (const int64_t dim : r->order) moved.push_back(x.size(dim));
  return permute(reshape(written, moved), inverse(r->order));
}

Results scatter_number(const Call& call) {
  const Val x = as_vector(call.tensor("self")), index = as_vector(call.tensor("index"));
  const Val from = expand(cast(call.number("value"), x.dtype()), index.sizes());
  return reshape(scatter(x, call.integer("dim"), index, from), call.result().sizes);
}

template <Val (Call::*kValue)(std::string_view) const>
Results index_fill(const Call& call) {
  const Val x = as_vector(call.tensor("self")), index = call.tensor("index"), value = cast((call.*kValue)("value"), x.dtype());
  const int64_t dim = x.wrap(call.integer("dim"));
  const Val at = index_for(wrapped(index, x.size(dim)), dim, x.sizes());
  return reshape(scatter(x, dim, at, expand(value, at.sizes())), call.result().sizes);
}

Results index_copy(const Call& call) {
  const Val x = as_vector(call.tensor("self")), index = call.tensor("index"), source = call.tensor("source");
  const int64_t dim = x.wrap(call.integer("dim"));
  const Val at = index_for(index, dim, x.sizes());
  return reshape(scatter(x, dim, at, reshape(source, at.sizes())), call.result().sizes);
}

Results index_add(const Call& call) {
  const Val x = as_vector(call.math("self")), index = call.tensor("index");
  Val source = cast(call.tensor("source"), x.dtype());
  if (!call.is_constant("alpha", 1)) source = source * cast(call.number("alpha"), x.dtype());
  const int64_t dim = x.wrap(call.integer("dim"));
  const Val at = index_for(index, dim, x.sizes());
  return reshape(scatter_add(x, dim, at, reshape(source, at.sizes())), call.result().sizes);
}

// How many of the sorted boundaries lie before each value.
Val positions(Val boundaries, Val x, bool right, DType dtype) {
  const Val each = unsqueeze(x, -1), before = right ? boundaries <= each : boundaries < each;
  return cast(sum(cast(before, DType::kI64), {-1}), dtype);
}
Results bucketize(const Call& call) {
  return positions(call.math("boundaries"), call.math("self"), call.flag("right"), call.result().dtype);
}
Results search_sorted(const Call& call) {
  Val sorted = call.math("sorted_sequence");
  const Val x = call.math("self");
  if (const Val sorter = call.tensor("sorter")) sorted = gather(sorted, -1, sorter);
  const bool right = call.flag("right") || call.string("side") == "right";
  return positions(sorted.rank() > 1 ? unsqueeze(sorted, -2) : sorted, x, right, call.result().dtype);
}

Results is_in(const Call& call) {
  const Val x = call.math("elements"), set = reshape(call.math("test_elements"), {-1});
  const Val found = any(unsqueeze(x, -1) == set, {-1});
  return call.flag("invert") ? ~found : found;
}

Results take(const Call& call) {
  const Val x = reshape(call.tensor("self"), {-1}), index = call.tensor("index");
  return reshape(gather(x, 0, wrapped(reshape(index, {-1}), x.count())), index.sizes());
}
Results put(const Call& call) {
  const Val x = call.tensor("self"), flat = reshape(x, {-1}), index = wrapped(reshape(call.tensor("index"), {-1}), x.count());
  const Val source = reshape(call.tensor("source"), {-1});
  return reshape(call.flag("accumulate") ? scatter_add(flat, 0, index, source) : scatter(flat, 0, index, source), x.sizes());
}

constexpr Decomposition kRules[] = {
    {"aten::index_select", index_select},
    {"aten::embedding", embedding},
    {"aten::embedding_dense_backward", embedding_backward},
    {"aten::index.Tensor", index},
    {"aten::index_put", index_put},
    {"aten::scatter.value", scatter_number},
    {"aten::index_fill.int_Scalar", index_fill<&Call::number>},
    {"aten::index_copy", index_copy},
    {"aten::index_add", index_add},
    {"aten::bucketize.Tensor", bucketize},
    {"aten::searchsorted.Tensor", search_sorted},
    {"aten::isin.Tensor_Tensor", is_in},
    {"aten::take", take},
    {"aten::put", put},
    {"aten::index_fill.int_Tensor", index_fill<&Call::tensor>},
};

}  // namespace

std::span<const Decomposition> indexing() { return kRules; }

}  // namespace ltc::decompose
