// Sampling at the places of a grid. Along each dim a place is a few taps of the input, each with a weight: what is sampled is the
// sum over all combinations of taps of the product of their weights and the input there.
#include <array>

#include "core/decompose/rules/families.h"
#include "core/decompose/support/series.h"

namespace ltc::decompose {
namespace {

constexpr int64_t kLinear = 0, kNearest = 1;  // else cubic
constexpr int64_t kZeros = 0, kBorder = 1;    // else reflection

struct Tap {
  Val index, inside;  // within the input; whether it was before it was brought there
  Val weight, slope;  // the weight's derivative by the grid's number; false where it is none
};

// A place and its derivative.
struct Place {
  Val at, slope;
};

struct Axis {
  int64_t size, padding;
  bool corners;      // -1 and 1 are the middles of the first and last elements, not their outer edges
  bool nan_is_last;  // what is no number is brought to the last element, not to the first

  double last() const { return static_cast<double>(size - 1); }
};

Place scaled(const Axis& axis, Val x) {
  const double half = (axis.corners ? axis.last() : static_cast<double>(axis.size)) / 2;
  return {axis.corners ? (x + 1) * half : ((x + 1) * static_cast<double>(axis.size) - 1) / 2, full_like(x, half)};
}

Place clipped(const Axis& axis, Place p) {
  const Val above = p.at > 0, below = p.at < axis.last(), first = zeros_like(p.at), last = full_like(p.at, axis.last());
  const Val at = axis.nan_is_last ? where(below, where(above, p.at, first), last) : where(above, where(below, p.at, last), first);
  return {at, where(above & below, p.slope, first)};
}

// Back and forth between the outermost middles, or edges.
Place reflected(const Axis& axis, Place p) {
  const double low = axis.corners ? 0 : -0.5, span = axis.corners ? axis.last() : static_cast<double>(axis.size);
  if (span == 0) return {zeros_like(p.at), zeros_like(p.slope)};
  const Val shifted = p.at - low, distance = abs(shifted), flips = floor(distance / span),
            rest = fmod(distance, full_like(distance, span));
  const Val is_odd = remainder(flips, full_like(flips, 2)) == 1, turned = shifted < 0;
  return {where(is_odd, span - rest, rest) + low, where(is_odd ^ turned, -p.slope, p.slope)};
}

Place within(const Axis& axis, Place p) {
  if (axis.padding == kZeros) return p;
  return clipped(axis, axis.padding == kBorder ? p : reflected(axis, p));
}

// An element as a tap; NaN and what is far out lies nowhere.
Tap tap_at(const Axis& axis, Val whole, Val weight, Val slope) {
  const Val inside = (whole >= 0) & (whole <= axis.last());
  return {cast(where(inside, whole, zeros_like(whole)), DType::kI64), inside, weight, slope};
}

// The factor of cubic_near and cubic_far.
constexpr double kA = -0.75;
Val near_slope(Val x) { return (x * (3 * (kA + 2)) - 2 * (kA + 3)) * x; }
Val far_slope(Val x) { return (x * (3 * kA) - 10 * kA) * x + 8 * kA; }

std::vector<Tap> taps_of(const Axis& axis, Val x, int64_t mode) {
  const Place p = scaled(axis, x);
  if (mode == kNearest) return {tap_at(axis, round(within(axis, p).at), ones_like(x), {})};
  if (mode == kLinear) {
    const Place q = within(axis, p);
    const Val base = floor(q.at), share = q.at - base;
    return {tap_at(axis, base, 1 - share, -q.slope), tap_at(axis, base + 1, share, q.slope)};
  }
  const Val base = floor(p.at), t = p.at - base;
  const std::array weights = {cubic_far(t + 1, kA), cubic_near(t, kA), cubic_near(1 - t, kA), cubic_far(2 - t, kA)};
  const std::array slopes = {far_slope(t + 1), near_slope(t), -near_slope(1 - t), -far_slope(2 - t)};
  std::vector<Tap> taps;
  for (size_t i = 0; i < weights.size(); ++i) {
    const Val whole = within(axis, {base + (static_cast<double>(i) - 1), p.slope}).at;
    taps.push_back(tap_at(axis, whole, weights[i], slopes[i] * p.slope));
  }
  return taps;
}

// A combination of taps, one of each dim; for all places at once: [batch, 1, places].
struct Combination {
  Val index, inside, weight;
  std::vector<Val> slopes;  // by dim, of the weight
};

struct Sampler {
  Val input, flat;  // [batch, channels, elements]
  int64_t batch, channels, places;
  std::vector<Combination> combinations;
};

Combination combined(const std::vector<const Tap*>& taps, const Ints& sizes) {
  Combination c;
  for (size_t i = 0; i < taps.size(); ++i) {
    const Tap& tap = *taps[i];
    c.index = c.index ? c.index * sizes[i] + tap.index : tap.index;
    c.inside = c.inside ? c.inside & tap.inside : tap.inside;
    c.weight = c.weight ? c.weight * tap.weight : tap.weight;
    Val slope = tap.slope;
    for (size_t j = 0; slope && j < taps.size(); ++j) slope = j == i ? slope : slope * taps[j]->weight;
    c.slopes.push_back(slope);
  }
  return c;
}

// The grid's last dim holds the place in the input's dims, the last first.
//
// A place that is no number follows PyTorch's kernels. In two dims an element that lies nowhere counts as 0 times its weight, so
// that a weight of NaN spreads; in three it does not count.
template <size_t kDims>
Sampler sampler_of(const Call& call) {
  const Val input = call.math("input"), grid = call.math("grid");
  Sampler s{input, {}, input.size(0), input.size(1), 0, {}};
  s.places = grid.count() / (s.batch * static_cast<int64_t>(kDims));
  s.flat = reshape(input, {s.batch, s.channels, input.count() / (s.batch * s.channels)});
  const Ints sizes(input.sizes().begin() + 2, input.sizes().end());
  const Val places = reshape(grid, {s.batch, 1, s.places, static_cast<int64_t>(kDims)});
  std::vector<std::vector<Tap>> taps;
  for (size_t i = 0; i < kDims; ++i) {
    const Axis axis{sizes[i], call.integer("padding_mode"), call.flag("align_corners"), kDims == 3};
    taps.push_back(taps_of(axis, select(places, -1, static_cast<int64_t>(kDims - 1 - i)), call.integer("interpolation_mode")));
  }
  size_t count = 1;
  for (const auto& along : taps) count *= along.size();
  for (size_t n = 0; n < count; ++n) {
    std::vector<const Tap*> chosen(kDims);
    for (size_t i = kDims, rest = n; i-- > 0; rest /= taps[i].size()) chosen[i] = &taps[i][rest % taps[i].size()];
    Combination& c = s.combinations.emplace_back(combined(chosen, sizes));
    if (kDims == 2) continue;
    c.weight = where(c.inside, c.weight, zeros_like(c.weight));
    for (Val& slope : c.slopes) slope = slope ? where(c.inside, slope, zeros_like(slope)) : slope;
  }
  return s;
}

Val wide_index(const Sampler& s, const Combination& c) { return expand(c.index, {s.batch, s.channels, s.places}); }

template <size_t kDims>
Results sample(const Call& call) {
  if (call.result().element_count == 0 || call.tensor("input").count() == 0) return zeros_of(call);
  const Sampler s = sampler_of<kDims>(call);
  Val total;
  for (const Combination& c : s.combinations) {
    const Val value = gather(s.flat, 2, wide_index(s, c)), part = where(c.inside, value, zeros_like(value)) * c.weight;
    total = total ? total + part : part;
  }
  return reshape(total, call.result().sizes);
}

template <size_t kDims>
Results sample_backward(const Call& call) {
  if (call.tensor("grad_output").count() == 0 || call.tensor("input").count() == 0) return zeros_of(call);
  const Sampler s = sampler_of<kDims>(call);
  const Val g = reshape(call.math("grad_output"), {s.batch, s.channels, s.places});
  Val of_input = zeros_like(s.flat);
  std::vector<Val> of_place(kDims);
  for (const Combination& c : s.combinations) {
    if (call.wants(0)) of_input = scatter_add(of_input, 2, wide_index(s, c), where(c.inside, g * c.weight, zeros_like(g)));
    if (!call.wants(1) || !c.slopes[0]) continue;
    const Val along = sum(g * gather(s.flat, 2, wide_index(s, c)), {1}, true);
    for (size_t i = 0; i < kDims; ++i) {
      const Val part = where(c.inside, along, zeros_like(along)) * c.slopes[i];
      of_place[i] = of_place[i] ? of_place[i] + part : part;
    }
  }
  Results results = zeros_of(call);
  if (call.wants(0)) results.values[0] = reshape(of_input, s.input.sizes());
  if (of_place[0]) {
    std::vector<Val> parts;
    for (size_t i = kDims; i-- > 0;) parts.push_back(unsqueeze(of_place[i], -1));
    results.values[1] = in_shape_of(call, 1, cat(parts, -1));
  }
  return results;
}

constexpr Decomposition kRules[] = {
    {"aten::grid_sampler_2d", sample<2>},
    {"aten::grid_sampler_2d_backward", sample_backward<2>},
    {"aten::grid_sampler_3d", sample<3>},
    {"aten::grid_sampler_3d_backward", sample_backward<3>},
};

}  // namespace

std::span<const Decomposition> sampling() { return kRules; }

}  // namespace ltc::decompose
