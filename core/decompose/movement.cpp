// Ops that move elements and compute nothing, and those that make tensors.
#include <algorithm>
#include <cmath>

#include "core/decompose/families.h"

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

Results roll(const Call& call) {
  const Val x = call.tensor("self");
  const Ints shifts = call.ints("shifts"), dims = call.ints("dims");
  if (x.count() == 0) return x;
  Val result = dims.empty() ? reshape(x, {-1}) : x;
  for (size_t i = 0; i < shifts.size(); ++i) {
    const int64_t dim = dims.empty() ? 0 : result.wrap(dims[i]), size = result.size(dim);
    const int64_t shift = ((shifts[i] % size) + size) % size;
    if (shift == 0) continue;
    result = cat({slice(result, dim, size - shift, size), slice(result, dim, 0, size - shift)}, dim);
  }
  return reshape(result, x.sizes());
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

Results zeros(const Call& call) { return full(call.builder(), call.result().dtype, call.result().sizes, int64_t{0}); }
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
  Ints amounts(static_cast<size_t>(2 * (rank - dim)), 0);
  amounts[amounts.size() - 2] = at, amounts[amounts.size() - 1] = size - 1 - at;
  return pad(unsqueeze(g, dim), amounts, 0.0);
}

Results slice_backward(const Call& call) {
  const Val g = call.tensor("grad_output");
  const Ints sizes = call.ints("input_sizes");
  const auto rank = static_cast<int64_t>(sizes.size());
  const int64_t given = call.integer("dim"), dim = given < 0 ? given + rank : given, size = sizes[static_cast<size_t>(dim)];
  const int64_t step = call.integer("step"), pieces = g.size(dim);
  int64_t begin = call.integer("start");
  begin = std::clamp<int64_t>(begin < 0 ? begin + size : begin, 0, size);
  if (pieces == 0) return full(call.builder(), g.dtype(), sizes, int64_t{0});
  Val spread = g;
  if (step > 1) {  // each element with step - 1 zeros behind it
    Ints apart = g.sizes();
    apart.insert(apart.begin() + dim + 1, 1);
    Ints amounts(static_cast<size_t>(2 * (rank - dim)), 0);
    amounts[amounts.size() - 1] = step - 1;
    Ints joined = g.sizes();
    joined[static_cast<size_t>(dim)] = pieces * step;
    spread = reshape(pad(reshape(g, apart), amounts, 0.0), joined);
    spread = slice(spread, dim, 0, (pieces - 1) * step + 1);
  }
  Ints amounts(static_cast<size_t>(2 * (rank - dim)), 0);
  amounts[amounts.size() - 2] = begin, amounts[amounts.size() - 1] = size - begin - spread.size(dim);
  return pad(spread, amounts, 0.0);
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

Results as_strided_read(const Call& call) {
  const Val x = reshape(call.tensor("self"), {-1});
  const Ints sizes = call.ints("size");
  if (call.result().element_count == 0) return full(call.builder(), x.dtype(), sizes, int64_t{0});
  return reshape(gather(x, 0, places(call.builder(), sizes, call.ints("stride"), offset_of(call))), sizes);
}

Results as_strided_write(const Call& call) {
  const Val x = call.tensor("self"), piece = call.tensor("src");
  if (piece.count() == 0) return x;
  const Val index = places(call.builder(), call.ints("size"), call.ints("stride"), offset_of(call));
  return reshape(scatter(reshape(x, {-1}), 0, index, reshape(piece, {-1})), x.sizes());
}

constexpr Decomposition kRules[] = {
    {"aten::clone", clone},
    {"aten::stack", stack},
    {"aten::repeat", repeat},
    {"aten::roll", roll},
    {"aten::tril", lower_triangle},
    {"aten::triu", upper_triangle},
    {"aten::flip", flip_all},
    {"aten::linspace", linspace},
    {"aten::arange.start_step", arange},
    {"aten::eye", identity_matrix},
    {"aten::eye.m", identity_matrix},
    {"aten::zeros", zeros},
    {"aten::ones", ones},
    {"aten::select_scatter", select_scatter},
    {"aten::select_backward", select_backward},
    {"aten::slice_backward", slice_backward},
    {"aten::as_strided", as_strided_read},
    {"aten::as_strided_scatter", as_strided_write},
};

}  // namespace

std::span<const Decomposition> movement() { return kRules; }

}  // namespace ltc::decompose
