#include "core/decompose/support/value.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "core/base/error.h"
#include "core/decompose/support/builder.h"

namespace ltc::decompose {
namespace {

int64_t count_of(std::span<const int64_t> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies());
}

Attr flag(std::string name, bool value) { return {std::move(name), AttrKind::kBool, {value}}; }

Ints without(const Ints& sizes, const Ints& dims, bool keepdim) {
  Ints result;
  for (int64_t dim = 0; dim < static_cast<int64_t>(sizes.size()); ++dim) {
    const bool reduced = std::ranges::find(dims, dim) != dims.end();
    if (!reduced) result.push_back(sizes[static_cast<size_t>(dim)]);
    if (reduced && keepdim) result.push_back(1);
  }
  return result;
}

Ints padded(Ints sizes, const Ints& amounts) {
  for (size_t i = 0; i < amounts.size(); ++i) sizes[sizes.size() - 1 - i / 2] += amounts[i];
  return sizes;
}

Val reduce(const char* op, Val x, Ints dims, bool keepdim, AttrList extra) {
  dims = wrap_dims(x, dims);
  AttrList attrs = {Attr::of_ints("dim", dims), flag("keepdim", keepdim)};
  attrs.insert(attrs.end(), extra.begin(), extra.end());
  return x.builder->emit(op, {x}, x.dtype(), without(x.sizes(), dims, keepdim), std::move(attrs));
}

Val full_of(Builder& b, DType dtype, Ints sizes, Attr fill) {
  fill.name = "fill_value";
  AttrList attrs = {Attr::of_ints("size", sizes), std::move(fill), Attr::of_dtype("dtype", dtype)};
  return b.emit("aten::full", {}, dtype, sizes, std::move(attrs));
}

}  // namespace

const Type& Val::type() const { return builder->graph().type(id); }

DType math_dtype(DType dtype) { return dtype == DType::kF16 || dtype == DType::kBF16 || is_f8(dtype) ? DType::kF32 : dtype; }

DType promote(const Val& a, const Val& b) {
  if (a.weak == b.weak) {
    // A tensor of rank 0 gives way like a number to one with dims.
    const bool a_low = !a.weak && a.rank() == 0 && b.rank() > 0, b_low = !a.weak && b.rank() == 0 && a.rank() > 0;
    if (a_low == b_low) return promote(a.dtype(), b.dtype());
    const Val &high = a_low ? b : a, &low = a_low ? a : b;
    return number_kind(low.dtype()) > number_kind(high.dtype()) ? promote(low.dtype(), high.dtype()) : high.dtype();
  }
  const Val &tensor = a.weak ? b : a, &number = a.weak ? a : b;
  if (number_kind(number.dtype()) <= number_kind(tensor.dtype())) return tensor.dtype();
  if (number_kind(number.dtype()) == 1) return DType::kI64;
  if (number_kind(number.dtype()) == 2) return DType::kF32;
  return is_floating(tensor.dtype()) ? complex_of(tensor.dtype()) : DType::kC64;
}

Ints broadcast(std::span<const int64_t> a, std::span<const int64_t> b) {
  const size_t rank = std::max(a.size(), b.size());
  Ints result(rank);
  for (size_t i = 0; i < rank; ++i) {
    const int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1, y = i < b.size() ? b[b.size() - 1 - i] : 1;
    ensure(x == y || x == 1 || y == 1, "sizes ", x, " and ", y, " do not broadcast");
    result[rank - 1 - i] = x == 1 ? y : x;
  }
  return result;
}

Ints all_dims(const Val& x) {
  Ints dims(static_cast<size_t>(x.rank()));
  std::iota(dims.begin(), dims.end(), 0);
  return dims;
}

Ints dims_but(const Val& x, int64_t kept) {
  Ints dims = all_dims(x);
  std::erase(dims, x.wrap(kept));
  return dims;
}

Ints wrap_dims(const Val& x, const Ints& dims) {
  if (dims.empty()) return all_dims(x);
  if (x.rank() == 0) return {};
  Ints result;
  for (const int64_t dim : dims) result.push_back(x.wrap(dim));
  std::ranges::sort(result);
  return result;
}

Val full(Builder& b, DType dtype, Ints sizes, double value) {
  Attr fill{"", AttrKind::kFloat};
  fill.floats = {value};
  return full_of(b, dtype, std::move(sizes), std::move(fill));
}
Val full(Builder& b, DType dtype, Ints sizes, int64_t value) {
  return full_of(b, dtype, std::move(sizes), Attr::of_int("", value));
}
Val number(Builder& b, double value) { return {&b, full(b, DType::kF64, {}, value).id, true}; }
Val number(Builder& b, int64_t value) { return {&b, full(b, DType::kI64, {}, value).id, true}; }

Val iota(Builder& b, int64_t count) {
  AttrList attrs = {Attr::of_int("start", 0), Attr::of_int("end", count), Attr::of_int("step", 1),
                    Attr::of_dtype("dtype", DType::kI64)};
  return b.emit("aten::arange.start_step", {}, DType::kI64, {count}, std::move(attrs));
}

// Numbers are cast too: in canonical form all operands of a node have one dtype.
Val cast(Val x, DType dtype) {
  if (x.dtype() == dtype && !x.weak) return x;
  return x.builder->emit("aten::_to_copy", {x}, dtype, x.sizes(), {Attr::of_dtype("dtype", dtype)});
}

Val bitcast(Val x, DType dtype) {
  if (x.dtype() == dtype) return x;
  Ints sizes = x.sizes();
  const auto from = static_cast<int64_t>(dtype_size_bytes(x.dtype())), to = static_cast<int64_t>(dtype_size_bytes(dtype));
  if (!sizes.empty()) sizes.back() = sizes.back() * from / to;
  return x.builder->emit("aten::view.dtype", {x}, dtype, sizes, {Attr::of_dtype("dtype", dtype)});
}

Val unary(const char* op, Val x) {
  Val result = x.builder->emit(op, {cast(x, x.dtype())}, x.dtype(), x.sizes());
  result.weak = x.weak;
  return result;
}

Val arithmetic(const char* op, Val a, Val b) {
  const DType dtype = promote(a, b);
  const bool weak = a.weak && b.weak;
  AttrList attrs;
  if (std::string_view(op) == "aten::add.Tensor") attrs.push_back(Attr::of_int("alpha", 1));
  Val result = a.builder->emit(op, {cast(a, dtype), cast(b, dtype)}, dtype, broadcast(a.sizes(), b.sizes()), std::move(attrs));
  result.weak = weak;
  return result;
}

Val compare(const char* op, Val a, Val b) {
  const DType dtype = promote(a, b);
  return a.builder->emit(op, {cast(a, dtype), cast(b, dtype)}, DType::kBool, broadcast(a.sizes(), b.sizes()));
}

Val neg(Val x) { return unary("aten::neg", x); }
Val abs(Val x) { return unary("aten::abs", x); }
Val sign(Val x) { return unary("aten::sign", x); }
Val floor(Val x) { return unary("aten::floor", x); }
Val ceil(Val x) { return unary("aten::ceil", x); }
Val trunc(Val x) { return unary("aten::trunc", x); }
Val round(Val x) { return unary("aten::round", x); }
Val exp(Val x) { return unary("aten::exp", x); }
Val expm1(Val x) { return unary("aten::expm1", x); }
Val log(Val x) { return unary("aten::log", x); }
Val log1p(Val x) { return unary("aten::log1p", x); }
Val sqrt(Val x) { return unary("aten::sqrt", x); }
Val sin(Val x) { return unary("aten::sin", x); }
Val cos(Val x) { return unary("aten::cos", x); }
Val tan(Val x) { return unary("aten::tan", x); }
Val tanh(Val x) { return unary("aten::tanh", x); }
Val atan(Val x) { return unary("aten::atan", x); }
Val erf(Val x) { return unary("aten::erf", x); }
Val lgamma(Val x) { return unary("aten::lgamma", x); }
Val logical_not(Val x) { return x.dtype() == DType::kBool ? ~x : x == 0; }

Val remainder(Val a, Val b) { return arithmetic("aten::remainder.Tensor", a, b); }
Val fmod(Val a, Val b) { return arithmetic("aten::fmod.Tensor", a, b); }
Val pow(Val a, Val b) { return arithmetic("aten::pow.Tensor_Tensor", a, b); }
Val maximum(Val a, Val b) { return arithmetic("aten::maximum", a, b); }
Val minimum(Val a, Val b) { return arithmetic("aten::minimum", a, b); }
Val atan2(Val a, Val b) { return arithmetic("aten::atan2", a, b); }

Val where(Val condition, Val a, Val b) {
  const DType dtype = promote(a, b);
  const Ints sizes = broadcast(condition.sizes(), broadcast(a.sizes(), b.sizes()));
  return a.builder->emit("aten::where.self", {cast(condition, DType::kBool), cast(a, dtype), cast(b, dtype)}, dtype, sizes);
}

Val reshape(Val x, Ints sizes) {
  const auto open = std::ranges::find(sizes, -1);
  if (open != sizes.end()) *open = x.count() / std::max<int64_t>(-count_of(sizes), 1);
  ensure(count_of(sizes) == x.count(), "a reshape of ", x.count(), " elements to ", count_of(sizes));
  if (sizes == x.sizes()) return x;
  return x.builder->emit("aten::reshape", {x}, x.dtype(), sizes, {Attr::of_ints("shape", sizes)});
}

Val permute(Val x, Ints dims) {
  if (dims == all_dims(x)) return x;
  Ints sizes;
  for (const int64_t dim : dims) sizes.push_back(x.size(dim));
  return x.builder->emit("aten::permute", {x}, x.dtype(), sizes, {Attr::of_ints("dims", dims)});
}

Val expand(Val x, Ints sizes) {
  if (sizes == x.sizes()) return x;
  return x.builder->emit("aten::expand", {x}, x.dtype(), sizes, {Attr::of_ints("size", sizes), flag("implicit", false)});
}

Val slice(Val x, int64_t dim, int64_t begin, int64_t end, int64_t step) {
  dim = x.wrap(dim);
  const int64_t size = x.size(dim);
  begin = std::clamp<int64_t>(begin < 0 ? begin + size : begin, 0, size);
  end = std::clamp<int64_t>(end < 0 ? end + size : end, begin, size);
  if (begin == 0 && end == size && step == 1) return x;
  Ints sizes = x.sizes();
  sizes[static_cast<size_t>(dim)] = (end - begin + step - 1) / step;
  AttrList attrs = {Attr::of_int("dim", dim), Attr::of_int("start", begin), Attr::of_int("end", end), Attr::of_int("step", step)};
  return x.builder->emit("aten::slice.Tensor", {x}, x.dtype(), sizes, std::move(attrs));
}

Val pad(Val x, Ints pad, Val value) {
  return x.builder->emit("aten::constant_pad_nd", {x, value}, x.dtype(), padded(x.sizes(), pad), {Attr::of_ints("pad", pad)});
}

Val pad(Val x, Ints pad, double value) {
  Attr fill{"value", AttrKind::kFloat};
  fill.floats = {value};
  return x.builder->emit("aten::constant_pad_nd", {x}, x.dtype(), padded(x.sizes(), pad), {Attr::of_ints("pad", pad), fill});
}

Val cat(std::vector<Val> parts, int64_t dim) {
  if (parts.size() == 1) return parts[0];
  dim = parts[0].wrap(dim);
  DType dtype = parts[0].dtype();
  Ints sizes = parts[0].sizes();
  for (size_t i = 1; i < parts.size(); ++i) {
    dtype = promote(dtype, parts[i].dtype());
    sizes[static_cast<size_t>(dim)] += parts[i].size(dim);
  }
  for (Val& part : parts) part = cast(part, dtype);
  AttrList attrs = {Attr::of_int("tensors.count", static_cast<int64_t>(parts.size())), Attr::of_int("dim", dim)};
  return parts[0].builder->emit("aten::cat", parts, dtype, sizes, std::move(attrs));
}

Val flip(Val x, Ints dims) {
  if (dims.empty()) return x;
  return x.builder->emit("aten::flip", {x}, x.dtype(), x.sizes(), {Attr::of_ints("dims", wrap_dims(x, dims))});
}

Val as_strided(Val x, Ints sizes, Ints strides, int64_t offset) {
  AttrList attrs = {Attr::of_ints("size", sizes), Attr::of_ints("stride", strides), Attr::of_int("storage_offset", offset)};
  return x.builder->emit("aten::as_strided", {x}, x.dtype(), sizes, std::move(attrs));
}

Val sum(Val x, Ints dims, bool keepdim) {
  return reduce("aten::sum.dim_IntList", x, std::move(dims), keepdim, {Attr::of_dtype("dtype", x.dtype())});
}

Val prod(Val x, int64_t dim, bool keepdim) {
  dim = x.wrap(dim);
  AttrList attrs = {Attr::of_int("dim", dim), flag("keepdim", keepdim), Attr::of_dtype("dtype", x.dtype())};
  return x.builder->emit("aten::prod.dim_int", {x}, x.dtype(), without(x.sizes(), {dim}, keepdim), std::move(attrs));
}

Val amax(Val x, Ints dims, bool keepdim) { return reduce("aten::amax", x, std::move(dims), keepdim, {}); }

Val argmax(Val x, int64_t dim, bool keepdim) {
  dim = x.wrap(dim);
  AttrList attrs = {Attr::of_int("dim", dim), flag("keepdim", keepdim)};
  return x.builder->emit("aten::argmax", {x}, DType::kI64, without(x.sizes(), {dim}, keepdim), std::move(attrs));
}

Val cumsum(Val x, int64_t dim) {
  AttrList attrs = {Attr::of_int("dim", x.wrap(dim)), Attr::of_dtype("dtype", x.dtype())};
  return x.builder->emit("aten::cumsum", {x}, x.dtype(), x.sizes(), std::move(attrs));
}

Val gather(Val x, int64_t dim, Val index) {
  AttrList attrs = {Attr::of_int("dim", x.wrap(dim)), flag("sparse_grad", false)};
  return x.builder->emit("aten::gather", {x, cast(index, DType::kI64)}, x.dtype(), index.sizes(), std::move(attrs));
}

Val scatter(Val x, int64_t dim, Val index, Val from) {
  AttrList attrs = {Attr::of_int("dim", x.wrap(dim))};
  return x.builder->emit("aten::scatter.src", {x, cast(index, DType::kI64), cast(from, x.dtype())}, x.dtype(), x.sizes(),
                         std::move(attrs));
}

Val scatter_add(Val x, int64_t dim, Val index, Val from) {
  AttrList attrs = {Attr::of_int("dim", x.wrap(dim))};
  return x.builder->emit("aten::scatter_add", {x, cast(index, DType::kI64), cast(from, x.dtype())}, x.dtype(), x.sizes(),
                         std::move(attrs));
}

Sorted sort(Val x, int64_t dim, bool descending) {
  AttrList attrs = {flag("stable", true), Attr::of_int("dim", x.wrap(dim)), flag("descending", descending)};
  const TypeId types[] = {intern_contiguous(x.dtype(), x.sizes()), intern_contiguous(DType::kI64, x.sizes())};
  const auto results = x.builder->emit_several("aten::sort.stable", {x}, types, std::move(attrs));
  return {results[0], results[1]};
}

Val bmm(Val a, Val b) { return a.builder->emit("aten::bmm", {a, b}, a.dtype(), {a.size(0), a.size(1), b.size(2)}); }

Val convolution(Val x, Val weight, const Convolution& how) {
  Ints sizes = {x.size(0), how.transposed ? weight.size(1) * how.groups : weight.size(0)};
  for (size_t i = 0; i < how.stride.size(); ++i) {
    const auto dim = static_cast<int64_t>(i + 2);
    const int64_t reach = how.dilation[i] * (weight.size(dim) - 1);
    sizes.push_back(how.transposed ? (x.size(dim) - 1) * how.stride[i] - 2 * how.padding[i] + reach + how.output_padding[i] + 1
                                   : (x.size(dim) + 2 * how.padding[i] - reach - 1) / how.stride[i] + 1);
  }
  AttrList attrs = {Attr::of_ints("stride", how.stride),
                    Attr::of_ints("padding", how.padding),
                    Attr::of_ints("dilation", how.dilation),
                    flag("transposed", how.transposed),
                    Attr::of_ints("output_padding", how.output_padding),
                    Attr::of_int("groups", how.groups)};
  return x.builder->emit("aten::convolution", {x, weight, Val()}, x.dtype(), sizes, std::move(attrs));
}

}  // namespace ltc::decompose
