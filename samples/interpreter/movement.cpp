// Ops that move elements: each is a copy between two views.
#include <algorithm>

#include "convert.h"
#include "strided.h"

namespace interpreter {
namespace {

void copy_from(const Call& call, const View& from) {
  copy(call.out[0].sizes(), element_bytes(call.out[0].dtype()), dense(call.out[0]), from);
}

void reshape(const Call& call) { copy_all(call.out[0], call.in[0]); }
void expand(const Call& call) { copy_from(call, broadcast(call.in[0], call.out[0].sizes())); }

void permute(const Call& call) {
  View from = dense(call.in[0]);
  const Sizes strides = from.strides;
  const Sizes& dims = call.integers("dims");
  for (size_t i = 0; i < dims.size(); ++i) from.strides[i] = strides[dim_of(dims[i], strides.size())];
  copy_from(call, from);
}

void slice(const Call& call) {
  View from = dense(call.in[0]);
  const size_t dim = dim_of(call.integer("dim", 0), from.strides.size());
  const int64_t start = call.integer("start", 0), size = call.in[0].sizes()[dim];
  from.data += std::clamp(start < 0 ? start + size : start, int64_t{0}, size) * from.strides[dim];
  const int64_t step = call.integer("step", 1);
  from.strides[dim] = step < size ? from.strides[dim] * step : 0;  // one element at most
  copy_from(call, from);
}

void flip(const Call& call) {
  View from = dense(call.in[0]);
  for (const int64_t given : call.integers("dims")) {
    if (from.strides.empty()) break;
    int64_t& stride = from.strides[dim_of(given, from.strides.size())];
    from.data += stride * std::max<int64_t>(call.in[0].sizes()[dim_of(given, from.strides.size())] - 1, 0);
    stride = -stride;
  }
  copy_from(call, from);
}

void cat(const Call& call) {
  View to = dense(call.out[0]);
  const size_t dim = dim_of(call.integer("dim", 0), to.strides.size());
  for (const Array& in : call.in) {
    if (in.count() == 0) continue;
    copy(in.sizes(), element_bytes(in.dtype()), to, dense(in));
    to.data += in.sizes()[dim] * to.strides[dim];
  }
}

// ---- by strides

View strided(const Call& call, const Array& array) {
  View view{array.data, call.integers("stride")};
  const auto bytes = static_cast<int64_t>(element_bytes(array.dtype()));
  for (int64_t& stride : view.strides) stride *= bytes;
  view.data += call.integer("storage_offset", 0) * bytes;
  return view;
}

void as_strided(const Call& call) { copy_from(call, strided(call, call.in[0])); }

void as_strided_scatter(const Call& call) {
  copy_all(call.out[0], call.in[0]);
  const Array& source = call.in[1];
  copy(source.sizes(), element_bytes(source.dtype()), strided(call, call.out[0]), dense(source));
}

// ---- padding

void pad(const Call& call) {
  size_t input = 1;
  const Array &in = call.in[0], &out = call.out[0];
  const uint64_t bytes = element_bytes(out.dtype());
  uint64_t element = 0;
  store(number_of(call, "value", input), out.dtype(), reinterpret_cast<char*>(&element));
  copy_from(call, {reinterpret_cast<char*>(&element), Sizes(out.sizes().size(), 0)});
  View to = dense(out);
  const Sizes& amounts = call.integers("pad");
  for (size_t i = 0; i < amounts.size() / 2; ++i) to.data += amounts[2 * i] * to.strides[to.strides.size() - 1 - i];
  copy(in.sizes(), bytes, to, dense(in));
}

// Negative amounts crop: the host does that.
bool only_pads(const Node& node) {
  const auto amounts = node.get<std::span<const int64_t>>("pad", {});
  return numbers_are_real(node) && std::ranges::all_of(amounts, [](int64_t amount) { return amount >= 0; });
}

bool steps_forward(const Node& node) { return node.get<int64_t>("step", 1) > 0 && node.input(0).rank > 0; }

}  // namespace

const Table movement_ops{
    {"aten::reshape", {"T:T", moves(reshape)}},
    {"aten::permute", {"T:T", moves(permute)}},
    {"aten::expand", {"T:T", moves(expand)}},
    {"aten::slice.Tensor", {"T:T", moves(slice)}, steps_forward},
    {"aten::flip", {"T:T", moves(flip)}},
    {"aten::cat", {"+:T", moves(cat)}},
    {"aten::constant_pad_nd", {"Ts:T", moves(pad)}, only_pads},
    {"aten::as_strided", {"T:T", moves(as_strided)}},
    {"aten::as_strided_scatter", {"TT:T", moves(as_strided_scatter)}},
};

}  // namespace interpreter
