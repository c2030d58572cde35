// Padding with what is there, and windows laid out as columns, with their gradients.
#include <algorithm>

#include "core/decompose/rules/families.h"
#include "core/decompose/support/pooling_windows.h"

namespace ltc::decompose {
namespace {

// Which element of the input each one of the padded dim shows.
using Mirror = Val (*)(Val place, int64_t size);
Val reflected(Val place, int64_t size) { return (size - 1) - abs((size - 1) - abs(place)); }
Val replicated(Val place, int64_t size) { return minimum(maximum(place, 0), size - 1); }

struct Side {
  int64_t dim, before, after;
};
std::vector<Side> sides(const Ints& amounts, int64_t rank) {
  std::vector<Side> result;
  for (size_t i = 0; i < amounts.size(); i += 2) {
    if (amounts[i] || amounts[i + 1]) result.push_back({rank - 1 - static_cast<int64_t>(i / 2), amounts[i], amounts[i + 1]});
  }
  return result;
}

Val source_of(Builder& b, const Side& side, int64_t size, Mirror mirror) {
  return mirror(iota(b, size + side.before + side.after) - side.before, size);
}

template <Mirror kMirror>
Results pad_with_own(const Call& call) {
  Val x = call.tensor("self");
  for (const Side& side : sides(call.ints("padding"), x.rank())) {
    x = take_along(x, side.dim, source_of(call.builder(), side, x.size(side.dim), kMirror));
  }
  return x;
}

template <Mirror kMirror>
Results pad_with_own_backward(const Call& call) {
  Val g = call.math("grad_output");
  const Val x = call.tensor("self");
  if (g.count() == 0) return zeros_like(x);
  for (const Side& side : sides(call.ints("padding"), x.rank())) {
    g = put_along(g, side.dim, source_of(call.builder(), side, x.size(side.dim), kMirror), x.size(side.dim));
  }
  return g;
}

// ---- windows as columns

Windows columns_of(const Call& call, const Ints& image) {
  Windows w = windows_of(call, image, image, 2);
  w.dilation = per_dim(call.ints("dilation"), 2, 1);
  for (size_t i = 0; i < 2; ++i) {
    w.output[i] = (w.input[i] + 2 * w.padding[i] - w.dilation[i] * (w.kernel[i] - 1) - 1) / w.stride[i] + 1;
  }
  return w;
}

Results image_to_columns(const Call& call) {
  const Val x = call.tensor("self");
  const Windows w = columns_of(call, x.sizes());
  const Val wide = padded(x, w, 0);
  const int64_t channels = x.size(-3), n = x.rank() == 4 ? x.size(0) : 1, windows = w.output[0] * w.output[1];
  std::vector<Val> parts;
  for_each_place(w, [&](const Ints& place) { parts.push_back(reshape(at_place(wide, w, place), {n, channels, 1, windows})); });
  return reshape(cat(parts, 2), call.result().sizes);
}

Results columns_to_image(const Call& call) {
  const Val x = call.math("self");
  const Windows w = columns_of(call, call.ints("output_size"));
  const int64_t n = x.rank() == 3 ? x.size(0) : 1, channels = x.size(-2) / w.places();
  const Val columns = reshape(x, {n, channels, w.places(), w.output[0], w.output[1]});
  Val total;
  for_each_place(w, [&](const Ints& place) {
    const Val placed = from_place(select(columns, 2, place[0] * w.kernel[1] + place[1]), w, place);
    total = total ? total + placed : placed;
  });
  for (int64_t i = 0; i < 2; ++i) {
    const auto at = static_cast<size_t>(i);
    total = slice(total, i + 2, w.padding[at], w.padding[at] + w.input[at]);
  }
  return reshape(total, call.result().sizes);
}

// Each window's gradient goes back to the places that it showed.
Results unfold_backward(const Call& call) {
  const Val g = call.math("grad_in");
  const Ints sizes = call.ints("input_sizes");
  if (sizes.empty() || g.count() == 0) return reshape(g.count() ? g : full(call.builder(), g.dtype(), sizes, int64_t{0}), sizes);
  const auto rank = static_cast<int64_t>(sizes.size());
  const int64_t dim = call.integer("dim") < 0 ? call.integer("dim") + rank : call.integer("dim");
  Ints order;
  for (int64_t i = 0; i <= dim; ++i) order.push_back(i);
  order.push_back(rank);
  for (int64_t i = dim + 1; i < rank; ++i) order.push_back(i);
  const int64_t windows = g.size(dim), size = call.integer("size");
  Ints joined = sizes;
  joined[static_cast<size_t>(dim)] = windows * size;
  Builder& b = call.builder();
  const Val starts = reshape(iota(b, windows) * call.integer("step"), {windows, 1});
  const Val places = reshape(starts + reshape(iota(b, size), {1, size}), {-1});
  return put_along(reshape(permute(g, order), joined), dim, places, sizes[static_cast<size_t>(dim)]);
}

constexpr Decomposition kRules[] = {
    {"aten::reflection_pad1d", pad_with_own<reflected>},
    {"aten::reflection_pad2d", pad_with_own<reflected>},
    {"aten::reflection_pad3d", pad_with_own<reflected>},
    {"aten::replication_pad1d", pad_with_own<replicated>},
    {"aten::replication_pad2d", pad_with_own<replicated>},
    {"aten::replication_pad3d", pad_with_own<replicated>},
    {"aten::reflection_pad1d_backward", pad_with_own_backward<reflected>},
    {"aten::reflection_pad2d_backward", pad_with_own_backward<reflected>},
    {"aten::reflection_pad3d_backward", pad_with_own_backward<reflected>},
    {"aten::replication_pad1d_backward", pad_with_own_backward<replicated>},
    {"aten::replication_pad2d_backward", pad_with_own_backward<replicated>},
    {"aten::replication_pad3d_backward", pad_with_own_backward<replicated>},
    {"aten::im2col", image_to_columns},
    {"aten::col2im", columns_to_image},
    {"aten::unfold_backward", unfold_backward},
};

}  // namespace

std::span<const Decomposition> padding() { return kRules; }

}  // namespace ltc::decompose
