// Ops that move elements and compute nothing, and those that make tensors.
#include <algorithm>
#include <cmath>

#include "core/decompose/rules/families.h"

namespace ltc::decompose {
namespace {

Results clone(const Call& call) { return call.tensor("self"); }

Results stack(const Call& call) {
  std::vector<Val> parts;
  const auto rank = static_cast<int64_t>(call.result().sizes.size());
  const int64_t given = call.integer("dim"), dim = given < 0 ? given + rank : given;
  for (const Val& part : call.tensors("tensors")) parts.push_back(unsqueeze(cast(part, call.result().dtype), dim));
  return cat(parts, dim);
}

Results repeat(const Call& call) {
  const Val x = call.tensor("self");
  const Ints repeats = call.ints("repeats");
  const size_t extra = repeats.size() - static_cast<size_t>(x.rank());
  Ints apart, wide, sizes;
  for (size_t i = 0; i < repeats.size(); ++i) {
    const int64_t size = i < extra ? 1 : x.sizes()[i - extra];
    apart.insert(apart.end(), {1, size}), wide.insert(wide.end(), {repeats[i], size}), sizes.push_back(repeats[i] * size);
  }
  return reshape(expand(reshape(x, apart), wide), sizes);
}

// Each element from where the shift has it come from.
Results roll(const Call& call) {
  const Val x = call.tensor("self");
  const int64_t dim = x.wrap(call.integer("dim")), size = x.size(dim);
  if (x.count() == 0) return x;
  return take_along(x, dim, remainder(iota(call.builder(), size) - call.number("shift"), size));
}

Val column_less_row(Val x) { return index_along(x, -1, x.size(-1)) - index_along(x, -2, x.size(-2)); }
Results lower_triangle(const Call& call) {
  const Val x = call.tensor("self");
  return where(column_less_row(x) <= call.integer("diagonal"), x, zeros_like(x));
}
Results upper_triangle(const Call& call) {
  const Val x = call.tensor("self");
  return where(column_less_row(x) >= call.integer("diagonal"), x, zeros_like(x));
}

Results flip_all(const Call& call) {
  const Val x = call.tensor("self");
  return x.rank() == 0 || call.ints("dims").empty() ? Results(x) : nothing();
}

// start + step * i, in double and rounded once: PyTorch's kernels do the same for float.
Results linspace(const Call& call) {
  const Type& type = call.result();
  const double start = *call.constant("start"), end = *call.constant("end");
  const int64_t steps = call.integer("steps");
  Builder& b = call.builder();
  if (steps == 0) return full(b, type.dtype, {0}, int64_t{0});
  if (steps == 1) return cast(full(b, DType::kF64, {1}, start), type.dtype);
  const Val i = cast(iota(b, steps), DType::kF64);
  const double step = (end - start) / static_cast<double>(steps - 1);
  return where(i < static_cast<double>(steps / 2), i * step + start, end - (static_cast<double>(steps - 1) - i) * step);
}

// Powers of a base, the exponents as of linspace, which PyTorch's kernel takes in the result's type, or for integers in float.
Results logspace(const Call& call) {
  const Type& type = call.result();
  const auto limit = [&](const char* name) {
    return is_integral(type.dtype) ? std::trunc(*call.constant(name)) : *call.constant(name);
  };
  const double start = limit("start"), end = limit("end"), base = *call.constant("base");
  const int64_t steps = call.integer("steps");
  Builder& b = call.builder();
  if (steps == 0) return zeros_of(call);
  const DType dtype = is_floating(type.dtype) ? math_dtype(type.dtype) : DType::kF32;
  const Val i = cast(iota(b, steps), dtype);
  const auto constant = [&](double value) { return cast(number(b, value), dtype); };
  const Val step = constant(steps > 1 ? (end - start) / static_cast<double>(steps - 1) : 0);
  const Val exponent = where(i < static_cast<double>(steps / 2), step * i + constant(start),
                             constant(end) - step * (static_cast<double>(steps - 1) - i));
  return pow(full(b, DType::kF64, {1}, base), cast(steps == 1 ? reshape(constant(start), {1}) : exponent, DType::kF64));
}

Results arange(const Call& call) {
  const double start = *call.constant("start"), step = *call.constant("step");
  const Type& type = call.result();
  if (start == 0 && step == 1 && type.dtype == DType::kI64) return nothing();
  const Val i = iota(call.builder(), type.sizes[0]);
  if (is_integral(type.dtype)) return i * static_cast<int64_t>(step) + static_cast<int64_t>(start);
  return cast(i, DType::kF64) * step + start;
}

Results identity_matrix(const Call& call) {
  const Type& type = call.result();
  Builder& b = call.builder();
  const Val rows = reshape(iota(b, type.sizes[0]), {type.sizes[0], 1}),
            columns = reshape(iota(b, type.sizes[1]), {1, type.sizes[1]});
  return cast(rows == columns, type.dtype);
}

Results ones(const Call& call) { return full(call.builder(), call.result().dtype, call.result().sizes, int64_t{1}); }

// The pieces beside what an as_strided or slice of this op reads, put together again.
Val put_between(Val whole, Val piece, int64_t dim, int64_t begin) {
  const int64_t size = whole.size(dim), end = begin + piece.size(dim);
  std::vector<Val> parts;
  if (begin > 0) parts.push_back(slice(whole, dim, 0, begin));
  parts.push_back(piece);
  if (end < size) parts.push_back(slice(whole, dim, end, size));
  return cat(parts, dim);
}

Results select_scatter(const Call& call) {
  const Val x = call.tensor("self");
  const int64_t dim = x.wrap(call.integer("dim")), at = call.integer("index");
  return put_between(x, unsqueeze(cast(call.tensor("src"), x.dtype()), dim), dim, at < 0 ? at + x.size(dim) : at);
}

// Gradients of views: zeros with the piece in its place.
Results select_backward(const Call& call) {
  const Val g = call.tensor("grad_output");
  const Ints sizes = call.ints("input_sizes");
  const auto rank = static_cast<int64_t>(sizes.size());
  const int64_t given = call.integer("dim"), dim = given < 0 ? given + rank : given, size = sizes[static_cast<size_t>(dim)];
  const int64_t at = call.integer("index") < 0 ? call.integer("index") + size : call.integer("index");
  return unslice(unsqueeze(g, dim), dim, at, 1, size);
}

Results slice_backward(const Call& call) {
  const Ints sizes = call.ints("input_sizes");
  const auto rank = static_cast<int64_t>(sizes.size());
  const int64_t given = call.integer("dim"), dim = given < 0 ? given + rank : given, size = sizes[static_cast<size_t>(dim)];
  const int64_t begin = call.given("start") ? call.integer("start") : 0;
  return unslice(call.tensor("grad_output"), dim, std::clamp<int64_t>(begin < 0 ? begin + size : begin, 0, size),
                 call.integer("step"), size);
}

// A read through any geometry: the elements' places in row-major order, gathered.
Val places(Builder& b, const Ints& sizes, const Ints& strides, int64_t offset) {
  Val result = full(b, DType::kI64, Ints(sizes.size(), 1), offset);
  for (size_t i = 0; i < sizes.size(); ++i) {
    Ints along(sizes.size(), 1);
    along[i] = sizes[i];
    result = result + reshape(iota(b, sizes[i]), along) * strides[i];
  }
  return reshape(result, {-1});
}

int64_t offset_of(const Call& call) { return call.given("storage_offset") ? call.integer("storage_offset") : 0; }
Val places_of(const Call& call) { return places(call.builder(), call.ints("size"), call.ints("stride"), offset_of(call)); }
Val places_by_value(const Call& call) {
  return places(call.builder(), call.ints("size"), call.ints("stride"), 0) + call.number("storage_offset");
}

Results read_at(const Call& call, Val (*index)(const Call& call)) {
  const Val x = reshape(call.tensor("self"), {-1});
  const Ints sizes = call.ints("size");
  if (call.result().element_count == 0) return full(call.builder(), x.dtype(), sizes, int64_t{0});
  return reshape(gather(x, 0, index(call)), sizes);
}

Results write_at(const Call& call, Val (*index)(const Call& call)) {
  const Val x = call.tensor("self"), piece = call.tensor("src");
  if (piece.count() == 0) return x;
  return reshape(scatter(reshape(x, {-1}), 0, index(call), reshape(piece, {-1})), x.sizes());
}

Results as_strided_read(const Call& call) { return read_at(call, places_of); }
Results as_strided_write(const Call& call) { return write_at(call, places_of); }
Results as_strided_read_by_value(const Call& call) { return read_at(call, places_by_value); }
Results as_strided_write_by_value(const Call& call) { return write_at(call, places_by_value); }

Results as_strided_copy(const Call& call) {
  const Val x = call.tensor("self");
  return as_strided(x, call.ints("size"), call.ints("stride"), offset_of(call));
}

// ---- copies of what views would show

Results reshaped(const Call& call) { return reshape(call.tensor("self"), call.result().sizes); }
Results expanded(const Call& call) { return expand(call.tensor("self"), call.result().sizes); }
Results permuted(const Call& call) {
  const Val x = call.tensor("self");
  Ints dims;
  for (const int64_t dim : call.ints("dims")) dims.push_back(x.wrap(dim));
  return permute(x, dims);
}
Results transposed(const Call& call) { return transpose(call.tensor("self"), call.integer("dim0"), call.integer("dim1")); }
Results matrix_transposed(const Call& call) {
  const Val x = call.tensor("self");
  return x.rank() < 2 ? x : transpose(x, 0, 1);
}
Results selected(const Call& call) { return select(call.tensor("self"), call.integer("dim"), call.integer("index")); }

Results narrowed(const Call& call) {
  const Val x = call.tensor("self");
  const int64_t dim = call.integer("dim"), start = call.integer("start"), begin = start < 0 ? start + x.size(dim) : start;
  return slice(x, dim, begin, begin + call.integer("length"));
}
Results split_by_sizes(const Call& call) {
  const Val x = call.tensor("self");
  const int64_t dim = call.integer("dim");
  std::vector<Val> parts;
  int64_t begin = 0;
  for (const int64_t size : call.ints("split_sizes")) {
    parts.push_back(slice(x, dim, begin, begin + size));
    begin += size;
  }
  return parts;
}
Results unbound(const Call& call) {
  const Val x = call.tensor("self");
  const int64_t dim = call.integer("dim");
  std::vector<Val> parts;
  for (int64_t i = 0; i < x.size(dim); ++i) parts.push_back(select(x, dim, i));
  return parts;
}

struct Range {
  int64_t dim, begin, end, step;
};
Range range_of(const Call& call, const Val& x) {
  const int64_t dim = x.wrap(call.integer("dim")), size = x.size(dim);
  const auto limit = [&](const char* name, int64_t otherwise) {
    const int64_t value = call.given(name) ? call.integer(name) : otherwise;
    return std::clamp<int64_t>(value < 0 ? value + size : value, 0, size);
  };
  const int64_t begin = limit("start", 0);
  return {dim, begin, std::max(limit("end", size), begin), call.integer("step")};
}
Results sliced(const Call& call) {
  const Val x = call.tensor("self");
  const Range r = range_of(call, x);
  return slice(x, r.dim, r.begin, r.end, r.step);
}
Results slice_scatter(const Call& call) {
  const Val x = call.tensor("self");
  const Range r = range_of(call, x);
  Ints sizes = x.sizes();
  sizes[static_cast<size_t>(r.dim)] = (r.end - r.begin + r.step - 1) / r.step;
  const Val piece = expand(cast(call.tensor("src"), x.dtype()), sizes);
  if (piece.count() == 0) return x;
  if (r.step == 1) return put_between(x, piece, r.dim, r.begin);
  const Val places = index_along(x, r.dim, piece.size(r.dim)) * r.step + r.begin;
  return scatter(x, r.dim, expand(places, piece.sizes()), piece);
}

// Windows along a dim, the places within a window last.
Results unfolded(const Call& call) {
  const Val x = call.tensor("self");
  if (x.rank() == 0) return reshape(x, call.result().sizes);
  const int64_t dim = x.wrap(call.integer("dimension"));
  Ints sizes = x.sizes(), strides = contiguous_strides(sizes);
  const auto at = static_cast<size_t>(dim);
  sizes[at] = (sizes[at] - call.integer("size")) / call.integer("step") + 1;
  sizes.push_back(call.integer("size")), strides.push_back(strides[at]);
  strides[at] *= call.integer("step");
  return as_strided(x, sizes, strides, 0);
}

struct Diagonal {
  Ints sizes, strides;
  int64_t offset;
};
Diagonal diagonal_of(const Call& call, const Val& x) {
  const auto dim1 = static_cast<size_t>(x.wrap(call.integer("dim1"))), dim2 = static_cast<size_t>(x.wrap(call.integer("dim2")));
  const int64_t shift = call.integer("offset");
  const Ints all = contiguous_strides(x.sizes());
  Diagonal d{{}, {}, shift >= 0 ? shift * all[dim2] : -shift * all[dim1]};
  for (size_t i = 0; i < all.size(); ++i) {
    if (i != dim1 && i != dim2) d.sizes.push_back(x.sizes()[i]), d.strides.push_back(all[i]);
  }
  const int64_t rows = x.sizes()[dim1] - std::max<int64_t>(-shift, 0), columns = x.sizes()[dim2] - std::max<int64_t>(shift, 0);
  d.sizes.push_back(std::max<int64_t>(std::min(rows, columns), 0)), d.strides.push_back(all[dim1] + all[dim2]);
  return d;
}
Results diagonal_copy(const Call& call) {
  const Val x = call.tensor("self");
  const Diagonal d = diagonal_of(call, x);
  if (call.result().element_count == 0) return full(call.builder(), x.dtype(), d.sizes, int64_t{0});
  return as_strided(x, d.sizes, d.strides, d.offset);
}
Results diagonal_scatter(const Call& call) {
  const Val x = call.tensor("self");
  const Diagonal d = diagonal_of(call, x);
  const Val piece = call.tensor("src");
  if (piece.count() == 0) return x;
  const Val index = places(call.builder(), d.sizes, d.strides, d.offset);
  return reshape(scatter(reshape(x, {-1}), 0, index, reshape(piece, {-1})), x.sizes());
}

// The last dim becomes the diagonal of a matrix, whose dims then go where they are wanted.
Results diag_embed(const Call& call) {
  const Val x = call.tensor("self");
  const int64_t shift = call.integer("offset"), size = x.size(-1) + std::abs(shift), rank = x.rank() + 1;
  const Val line = pad(x, {0, std::abs(shift)}, 0.0), square = unsqueeze(line, shift >= 0 ? -1 : -2);
  const Val row = reshape(iota(call.builder(), size), {size, 1}), column = reshape(iota(call.builder(), size), {1, size});
  const Val matrix = where(column - row == shift, square, zeros_like(square));
  const int64_t dim1 = (call.integer("dim1") + rank) % rank, dim2 = (call.integer("dim2") + rank) % rank;
  Ints order;
  for (int64_t dim = 0, next = 0; dim < rank; ++dim) order.push_back(dim == dim1 ? rank - 2 : dim == dim2 ? rank - 1 : next++);
  return permute(matrix, order);
}
// Rows and columns of a triangle's elements, row by row: element k lies in the row that so many rows end before.
template <bool kLower>
Results triangle_indices(const Call& call) {
  const int64_t rows = call.integer("row"), columns = call.integer("col"), offset = call.integer("offset");
  const int64_t count = call.result().sizes[1];
  Builder& b = call.builder();
  if (count == 0) return full(b, call.result().dtype, {2, 0}, int64_t{0});
  const Val edge = minimum(maximum(iota(b, rows) + (kLower ? offset + 1 : offset), 0), columns);
  const Val lengths = kLower ? edge : columns - edge, ends = cumsum(lengths, 0), k = iota(b, count);
  const Val row = sum(cast(reshape(ends, {1, rows}) <= reshape(k, {count, 1}), DType::kI64), {1});
  const Val column = k - gather(kLower ? ends - lengths : ends - columns, 0, row);
  return cast(cat({reshape(row, {1, count}), reshape(column, {1, count})}, 0), call.result().dtype);
}

Results trace(const Call& call) {
  const Val x = cast(call.tensor("self"), math_dtype(call.result().dtype));
  return sum(where(column_less_row(x) == 0, x, zeros_like(x)), {});
}

// ---- channels and space

Results pixel_shuffle(const Call& call) {
  const Val x = call.tensor("self");
  const int64_t r = call.integer("upscale_factor"), h = x.size(-2), w = x.size(-1), c = x.size(-3) / (r * r);
  const int64_t n = x.count() / std::max<int64_t>(c * r * r * h * w, 1);
  return reshape(permute(reshape(x, {n, c, r, r, h, w}), {0, 1, 4, 2, 5, 3}), call.result().sizes);
}
Results pixel_unshuffle(const Call& call) {
  const Val x = call.tensor("self");
  const int64_t r = call.integer("downscale_factor"), h = x.size(-2) / r, w = x.size(-1) / r, c = x.size(-3);
  const int64_t n = x.count() / std::max<int64_t>(c * r * r * h * w, 1);
  return reshape(permute(reshape(x, {n, c, h, r, w, r}), {0, 1, 3, 5, 2, 4}), call.result().sizes);
}
Results channel_shuffle(const Call& call) {
  const Val x = call.tensor("self");
  const int64_t groups = call.integer("groups"), n = x.size(0), c = x.size(1) / groups;
  const int64_t rest = x.count() / std::max<int64_t>(n * groups * c, 1);
  return reshape(transpose(reshape(x, {n, groups, c, rest}), 1, 2), x.sizes());
}

constexpr Decomposition kRules[] = {
    {"aten::clone", clone},
    {"aten::stack", stack},
    {"aten::repeat", repeat},
    {"ltc::roll", roll},
    {"aten::tril", lower_triangle},
    {"aten::triu", upper_triangle},
    {"aten::flip", flip_all},
    {"aten::linspace", linspace},
    {"aten::logspace", logspace},
    {"aten::arange.start_step", arange},
    {"aten::eye", identity_matrix},
    {"aten::eye.m", identity_matrix},
    {"aten::zeros", zeros_of},
    {"aten::ones", ones},
    {"aten::select_scatter", select_scatter},
    {"aten::select_backward", select_backward},
    {"aten::slice_backward", slice_backward},
    {"aten::as_strided", as_strided_read},
    {"aten::as_strided_scatter", as_strided_write},
    {"ltc::as_strided", as_strided_read_by_value},
    {"ltc::as_strided_scatter", as_strided_write_by_value},
    {"aten::as_strided_copy", as_strided_copy},
    {"aten::alias_copy", clone},
    {"aten::view_copy", reshaped},
    {"aten::squeeze_copy", reshaped},
    {"aten::squeeze_copy.dim", reshaped},
    {"aten::squeeze_copy.dims", reshaped},
    {"aten::unsqueeze_copy", reshaped},
    {"aten::expand_copy", expanded},
    {"aten::permute_copy", permuted},
    {"aten::transpose_copy.int", transposed},
    {"aten::t_copy", matrix_transposed},
    {"aten::select_copy.int", selected},
    {"aten::slice_copy.Tensor", sliced},
    {"aten::slice_scatter", slice_scatter},
    {"aten::unfold_copy", unfolded},
    {"aten::diagonal_copy", diagonal_copy},
    {"aten::diagonal_scatter", diagonal_scatter},
    {"aten::diag_embed", diag_embed},
    {"aten::trace", trace},
    {"aten::tril_indices", triangle_indices<true>},
    {"aten::triu_indices", triangle_indices<false>},
    {"aten::narrow_copy", narrowed},
    {"aten::split_with_sizes_copy", split_by_sizes},
    {"aten::unbind_copy.int", unbound},
    {"aten::pixel_shuffle", pixel_shuffle},
    {"aten::pixel_unshuffle", pixel_unshuffle},
    {"aten::channel_shuffle", channel_shuffle},
};

}  // namespace

std::span<const Decomposition> movement() { return kRules; }

}  // namespace ltc::decompose
