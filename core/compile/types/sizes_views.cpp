// Ops that move elements.
#include <algorithm>
#include <numeric>

#include "core/compile/types/rules.h"

namespace ltc::types {
namespace {

using Shapes = std::vector<Dims>;

const Dims& self(const Arguments& call) { return call.sizes("self"); }

bool give(Shapes& shapes, Dims sizes) { return shapes.push_back(std::move(sizes)), true; }

// ---- types

bool conversion(const Arguments& call, Shapes& shapes) { return give(shapes, call.first() ? call.first()->sizes : Dims()); }

// The bytes stay: with another element size the last dim shrinks or grows.
bool bitcast(const Arguments& call, Shapes& shapes) {
  const Type &from = *call.tensor("self"), &to = call.graph().type(call.node().outputs[0]);
  const auto old_size = static_cast<int64_t>(dtype_size_bytes(from.dtype)),
             size = static_cast<int64_t>(dtype_size_bytes(to.dtype));
  const auto asked = static_cast<DType>(call.integer("dtype"));
  if (to.dtype != asked) return false;
  Dims sizes = from.sizes;
  if (old_size == size) return give(shapes, sizes);
  if (sizes.empty() || sizes.back() > INT64_MAX / old_size || sizes.back() * old_size % size != 0) return false;
  sizes.back() = sizes.back() * old_size / size;
  return give(shapes, sizes);
}

// ---- sizes

bool reshape(const Arguments& call, Shapes& shapes) {
  const Type &from = *call.tensor("self"), &to = call.graph().type(call.node().outputs[0]);
  const auto fits = [](int64_t asked, int64_t size) { return asked == size || asked == -1; };
  const bool asks = std::ranges::equal(call.ints(call.row().name == "aten::reshape" ? "shape" : "size"), to.sizes, fits);
  return asks && from.element_count == to.element_count && give(shapes, to.sizes);
}

bool permute(const Arguments& call, Shapes& shapes) {
  const Dims &from = self(call), dims = call.ints("dims");
  if (dims.size() != from.size()) return false;
  std::vector<bool> seen(from.size(), false);
  Dims sizes;
  for (const int64_t number : dims) {
    const auto dim = dim_of(number, from.size());
    if (!dim || seen[*dim]) return false;
    seen[*dim] = true;
    sizes.push_back(from[*dim]);
  }
  return give(shapes, sizes);
}

bool transpose(const Arguments& call, Shapes& shapes) {
  Dims sizes = self(call);
  const auto a = dim_of(call.integer("dim0"), sizes.size()), b = dim_of(call.integer("dim1"), sizes.size());
  if (!a || !b) return false;
  if (!sizes.empty()) std::swap(sizes[*a], sizes[*b]);
  return give(shapes, sizes);
}

bool expand(const Arguments& call, Shapes& shapes) {
  const Dims& from = self(call);
  Dims sizes = call.ints("size");
  if (sizes.size() < from.size()) return false;
  const size_t more = sizes.size() - from.size();
  for (size_t i = more; i < sizes.size(); ++i) {
    if (sizes[i] == -1) sizes[i] = from[i - more];
  }
  return broadcasts_to(from, sizes) && give(shapes, sizes);
}

bool squeeze(const Arguments& call, Shapes& shapes) {
  const Dims& from = self(call);
  std::vector<bool> goes(std::max<size_t>(from.size(), 1), call.row().name == "aten::squeeze_copy");
  for (const int64_t number : call.ints("dim")) {
    const auto dim = dim_of(number, from.size());
    if (!dim) return false;
    goes[*dim] = true;
  }
  Dims sizes;
  for (size_t i = 0; i < from.size(); ++i) {
    if (!goes[i] || from[i] != 1) sizes.push_back(from[i]);
  }
  return give(shapes, sizes);
}

bool unsqueeze(const Arguments& call, Shapes& shapes) {
  Dims sizes = self(call);
  const auto dim = dim_of(call.integer("dim"), sizes.size() + 1);
  if (!dim) return false;
  sizes.insert(sizes.begin() + static_cast<int64_t>(*dim), 1);
  return give(shapes, sizes);
}

// ---- parts

// The sizes of the part of `sizes` that the node names; none if there is no such part.
using Part = std::optional<Dims> (*)(const Arguments& call, Dims sizes);

std::optional<Dims> slice(const Arguments& call, Dims sizes) {
  const auto dim = dim_of(call.integer("dim"), sizes.size());
  const int64_t step = call.integer("step");
  if (!dim || sizes.empty() || step < 1) return std::nullopt;
  const int64_t size = sizes[*dim];
  const auto place = [&](const char* name, int64_t otherwise) {
    const int64_t given = call.given(name) ? call.integer(name) : otherwise;
    return std::clamp<int64_t>(given < 0 ? given + size : given, 0, size);
  };
  const int64_t start = place("start", 0), end = std::max(start, place("end", size));
  sizes[*dim] = (end - start) / step + ((end - start) % step != 0);
  return sizes;
}

std::optional<Dims> select(const Arguments& call, Dims sizes) {
  const auto dim = dim_of(call.integer("dim"), sizes.size());
  if (!dim || sizes.empty()) return std::nullopt;
  const int64_t index = call.integer("index"), size = sizes[*dim];
  if (index < -size || index >= size) return std::nullopt;
  sizes.erase(sizes.begin() + static_cast<int64_t>(*dim));
  return sizes;
}

std::optional<Dims> narrow(const Arguments& call, Dims sizes) {
  const auto dim = dim_of(call.integer("dim"), sizes.size());
  if (!dim || sizes.empty()) return std::nullopt;
  const int64_t size = sizes[*dim], given = call.integer("start"), length = call.integer("length");
  const int64_t start = given < 0 ? given + size : given;
  if (start < 0 || start > size || length < 0 || length > size - start) return std::nullopt;
  sizes[*dim] = length;
  return sizes;
}

std::optional<Dims> unfold(const Arguments& call, Dims sizes) {
  const auto dim = dim_of(call.integer(call.row().name == "aten::unfold_copy" ? "dimension" : "dim"), sizes.size());
  const int64_t size = call.integer("size"), step = call.integer("step");
  if (!dim || size < 0 || step < 1 || size > (sizes.empty() ? 1 : sizes[*dim])) return std::nullopt;
  if (!sizes.empty()) sizes[*dim] = (sizes[*dim] - size) / step + 1;
  sizes.push_back(size);
  return sizes;
}

std::optional<Dims> diagonal(const Arguments& call, Dims sizes) {
  const auto a = dim_of(call.integer("dim1"), sizes.size()), b = dim_of(call.integer("dim2"), sizes.size());
  const int64_t offset = call.integer("offset");
  if (!a || !b || *a == *b || sizes.size() < 2 || !is_moderate(offset)) return std::nullopt;
  const int64_t length = offset >= 0 ? std::min(sizes[*a], sizes[*b] - offset) : std::min(sizes[*a] + offset, sizes[*b]);
  for (const size_t dim : {std::max(*a, *b), std::min(*a, *b)}) sizes.erase(sizes.begin() + static_cast<int64_t>(dim));
  sizes.push_back(std::max<int64_t>(length, 0));
  return sizes;
}

template <Part kPart>
bool read(const Arguments& call, Shapes& shapes) {
  const auto sizes = kPart(call, self(call));
  return sizes && give(shapes, *sizes);
}

// The first operand, with another in the part's place.
template <Part kPart>
bool write(const Arguments& call, Shapes& /*shapes*/) {
  const auto sizes = kPart(call, self(call));
  return sizes && call.sizes("src") == *sizes;
}

// Zeros of `input_sizes`, with the gradient in the part's place.
template <Part kPart>
bool scatter_into_zeros(const Arguments& call, Shapes& shapes) {
  const Dims whole = call.ints("input_sizes");
  const auto sizes = kPart(call, whole);
  return sizes && call.first()->sizes == *sizes && give(shapes, whole);
}

// Whether the geometry that the node names lies within `count` elements.
bool lies_within(const Arguments& call, int64_t count) {
  const Dims sizes = call.ints("size"), strides = call.ints("stride");
  int64_t last =
      call.constant("storage_offset") ? call.integer("storage_offset") : 0;  // a number by value is checked when it runs
  if (sizes.size() != strides.size() || last < 0) return false;
  if (std::ranges::count(sizes, 0)) return true;
  for (size_t i = 0; i < sizes.size(); ++i) {
    int64_t reach = 0;
    if (strides[i] < 0 || __builtin_mul_overflow(sizes[i] - 1, strides[i], &reach) || __builtin_add_overflow(last, reach, &last))
      return false;
  }
  return last < count;
}

bool strided_read(const Arguments& call, Shapes& shapes) {
  return lies_within(call, call.tensor("self")->element_count) && give(shapes, call.ints("size"));
}

bool strided_write(const Arguments& call, Shapes& /*shapes*/) {
  return lies_within(call, call.tensor("self")->element_count) && call.sizes("src") == call.ints("size");
}

// ---- several

bool cat(const Arguments& call, Shapes& shapes) {
  std::optional<Dims> sizes;
  std::optional<size_t> dim;
  for (const ValueId value : call.tensors("tensors")) {
    const Dims& each = call.graph().type(value).sizes;
    if (each == Dims{0} && call.tensors("tensors").size() > 1) continue;  // PyTorch passes it over
    if (!sizes) {
      dim = dim_of(call.integer("dim"), each.size());
      if (!dim || each.empty()) return false;
      sizes = each;
      continue;
    }
    if (each.size() != sizes->size()) return false;
    for (size_t i = 0; i < each.size(); ++i) {
      if (i != *dim && each[i] != (*sizes)[i]) return false;
    }
    if (__builtin_add_overflow((*sizes)[*dim], each[*dim], &(*sizes)[*dim])) return false;
  }
  return !call.tensors("tensors").empty() && give(shapes, sizes.value_or(Dims{0}));
}

bool stack(const Arguments& call, Shapes& shapes) {
  if (call.tensors("tensors").empty()) return false;
  Dims sizes = call.first()->sizes;
  const auto dim = dim_of(call.integer("dim"), sizes.size() + 1);
  if (!dim) return false;
  sizes.insert(sizes.begin() + static_cast<int64_t>(*dim), static_cast<int64_t>(call.tensors("tensors").size()));
  return give(shapes, sizes);
}

bool repeat(const Arguments& call, Shapes& shapes) {
  const Dims& from = self(call);
  Dims sizes = call.ints("repeats");
  if (sizes.size() < from.size()) return false;
  for (size_t i = 1; i <= from.size(); ++i) {
    int64_t& size = sizes[sizes.size() - i];
    if (size < 0 || __builtin_mul_overflow(size, from[from.size() - i], &size)) return false;
  }
  return give(shapes, sizes);
}

bool diag_embed(const Arguments& call, Shapes& shapes) {
  Dims sizes = self(call);
  const auto a = dim_of(call.integer("dim1"), sizes.size() + 1), b = dim_of(call.integer("dim2"), sizes.size() + 1);
  const int64_t offset = call.integer("offset");
  if (sizes.empty() || !a || !b || *a == *b || !is_moderate(offset) || !is_moderate(sizes.back())) return false;
  const int64_t edge = sizes.back() + std::abs(offset);
  sizes.pop_back();
  for (const size_t dim : {std::min(*a, *b), std::max(*a, *b)}) sizes.insert(sizes.begin() + static_cast<int64_t>(dim), edge);
  return give(shapes, sizes);
}

// One factor for both dims of a picture; channels come from them, or go there.
bool pixel_shuffle(const Arguments& call, Shapes& shapes) {
  Dims sizes = self(call);
  const bool grows = call.row().name == "aten::pixel_shuffle";
  const int64_t factor = call.integer(grows ? "upscale_factor" : "downscale_factor");
  if (sizes.size() < 3 || factor < 1 || factor > 1 << 10 || !are_moderate(sizes)) return false;
  int64_t &channels = sizes.end()[-3], &height = sizes.end()[-2], &width = sizes.end()[-1];
  if (grows) {
    if (channels % (factor * factor) != 0) return false;
    channels /= factor * factor, height *= factor, width *= factor;
  } else {
    if (height % factor != 0 || width % factor != 0) return false;
    channels *= factor * factor, height /= factor, width /= factor;
  }
  return give(shapes, sizes);
}

bool channel_shuffle(const Arguments& call, Shapes& /*shapes*/) {
  const int64_t groups = call.integer("groups");
  return self(call).size() > 2 && groups > 0 && self(call)[1] % groups == 0;
}

}  // namespace

std::vector<NamedFunction> view_functions() {
  return {{"conversion", conversion},
          {"bitcast", bitcast},
          {"reshape", reshape},
          {"permute", permute},
          {"transpose", transpose},
          {"expand", expand},
          {"squeeze", squeeze},
          {"unsqueeze", unsqueeze},
          {"slice", read<slice>},
          {"slice_scatter", write<slice>},
          {"slice_backward", scatter_into_zeros<slice>},
          {"select", read<select>},
          {"select_scatter", write<select>},
          {"select_backward", scatter_into_zeros<select>},
          {"narrow", read<narrow>},
          {"unfold", read<unfold>},
          {"unfold_backward", scatter_into_zeros<unfold>},
          {"diagonal", read<diagonal>},
          {"diagonal_scatter", write<diagonal>},
          {"diag_embed", diag_embed},
          {"strided_read", strided_read},
          {"strided_write", strided_write},
          {"cat", cat},
          {"stack", stack},
          {"repeat", repeat},
          {"pixel_shuffle", pixel_shuffle},
          {"channel_shuffle", channel_shuffle}};
}

}  // namespace ltc::types
