// Losses and their gradients. `reduction`: 0 none, 1 mean, 2 sum, as in ATen.
#include "core/decompose/rules/families.h"

namespace ltc::decompose {
namespace {

constexpr int64_t kUnreduced = 0, kMean = 1;

Val reduced(Val loss, int64_t reduction) {
  if (reduction == kUnreduced) return loss;
  return reduction == kMean ? mean(loss, {}) : sum(loss, {});
}

// The gradient of each element's loss, given that of the reduced one.
Val spread(const Call& call, const Val& x) {
  const Val g = call.math("grad_output");
  return call.integer("reduction") == kMean ? g / static_cast<double>(x.count()) : g;
}

using Formula = Val (*)(const Call& call, Val x, Val target);

template <Formula kFormula>
Results loss(const Call& call) {
  return reduced(kFormula(call, call.math("self"), call.math("target")), call.integer("reduction"));
}
template <Formula kSlope>
Results loss_backward(const Call& call) {
  const Val x = call.math("self"), target = call.math("target"), slope = kSlope(call, x, target);
  return spread(call, slope) * slope;
}

Val squared(const Call&, Val x, Val target) { return square(x - target); }
Val squared_slope(const Call&, Val x, Val target) { return (x - target) * 2; }

Val smooth(const Call& call, Val x, Val target) {
  const Val z = abs(x - target), beta = call.number("beta");
  return where(z < beta, z * z * 0.5 / beta, z - beta * 0.5);
}
Val smooth_slope(const Call& call, Val x, Val target) {
  const Val z = x - target, beta = call.number("beta");
  return where(z <= -beta, full_like(z, -1), where(z >= beta, ones_like(z), z / beta));
}

Val huber(const Call& call, Val x, Val target) {
  const Val z = abs(x - target), delta = call.number("delta");
  return where(z <= delta, z * z * 0.5, delta * (z - delta * 0.5));
}
Val huber_slope(const Call& call, Val x, Val target) {
  const Val z = x - target, delta = call.number("delta");
  return where(z <= -delta, expand(cast(-delta, z.dtype()), z.sizes()),
               where(z >= delta, expand(cast(delta, z.dtype()), z.sizes()), z));
}

Val soft_margin(const Call&, Val x, Val target) { return log1p(exp(-target * x)); }
Val soft_margin_slope(const Call&, Val x, Val target) {
  const Val e = exp(-target * x);
  return -target * e / (e + 1);
}

// Logarithms are cut off at -100, as PyTorch does.
Results binary_cross_entropy(const Call& call) {
  const Val x = call.math("self"), target = call.math("target"), weight = call.math("weight");
  Val value = (target - 1) * maximum(log1p(-x), -100) - target * maximum(log(x), -100);
  if (weight) value = value * weight;
  return reduced(value, call.integer("reduction"));
}
Results binary_cross_entropy_backward(const Call& call) {
  const Val x = call.math("self"), target = call.math("target"), weight = call.math("weight");
  Val slope = (x - target) / maximum((1 - x) * x, 1e-12);
  if (weight) slope = slope * weight;
  return spread(call, slope) * slope;
}

// Classes along dim 1 (0 of a vector), targets of the other dims.
struct Picked {
  Val target;  // with the class dim, of size 1
  Val counts;  // where the target is not ignored
  Val weight;  // of each target; 0 where ignored
  int64_t dim;
};
Picked pick(const Call& call, const Val& x) {
  const int64_t dim = x.rank() == 1 ? 0 : 1;
  const Val given = cast(call.tensor("target"), DType::kI64);
  const Val target = x.rank() == 1 ? reshape(given, {1}) : unsqueeze(given, dim);
  const Val counts = target != call.integer("ignore_index"), safe = where(counts, target, zeros_like(target));
  Val weight = cast(counts, x.dtype());
  if (const Val given_weight = call.math("weight")) {
    weight = where(counts, reshape(gather(given_weight, 0, reshape(safe, {-1})), safe.sizes()), zeros_like(weight));
  }
  return {safe, counts, weight, dim};
}

Results nll_loss(const Call& call) {
  const Val x = call.math("self");
  if (call.tensor("target").count() == 0) return nothing();
  const Picked p = pick(call, x);
  const Val each = where(p.counts, -gather(x, p.dim, p.target) * p.weight, zeros_like(p.weight));
  const Val total = sum(p.weight, {});
  const int64_t reduction = call.integer("reduction");
  if (reduction == kUnreduced) return {reshape(each, call.tensor("target").sizes()), zeros_like(total)};
  return {reduction == kMean ? sum(each, {}) / total : sum(each, {}), total};
}
Results nll_loss_backward(const Call& call) {
  const Val x = call.math("self"), g = call.math("grad_output");
  if (call.tensor("target").count() == 0) return nothing();
  const Picked p = pick(call, x);
  const int64_t reduction = call.integer("reduction");
  Val each = reduction == kUnreduced ? reshape(g, p.weight.sizes())
                                     : expand(reshape(g, Ints(static_cast<size_t>(x.rank()), 1)), p.weight.sizes());
  if (reduction == kMean) each = each / call.math("total_weight");
  return scatter(zeros_like(x), p.dim, p.target, -each * p.weight);
}

// x as [rows, classes]: a vector is one row.
Val as_rows(Val x) { return x.rank() == 2 ? x : reshape(x, {1, x.count()}); }

// How much each class comes short of the margin by, for each row; 0 at the target itself.
struct Shortage {
  Val target, by, counts;
};
Shortage shortage(const Call& call, Val x) {
  const Val target = reshape(cast(call.tensor("target"), DType::kI64), {x.size(0), 1});
  const Val by = cast(call.number("margin"), x.dtype()) - gather(x, 1, target) + x;
  return {target, by, (by > 0) & (iota(call.builder(), x.size(1)) != target)};
}
Val class_weight(const Call& call, Val by, Val target) {
  const Val weight = call.math("weight");
  return weight ? by * reshape(gather(weight, 0, reshape(target, {-1})), target.sizes()) : by;
}
Results multi_margin_loss(const Call& call) {
  const Val x = as_rows(call.math("self"));
  if (x.count() == 0) return nothing();
  const Shortage s = shortage(call, x);
  const Val each = class_weight(call, call.is_constant("p", 1) ? s.by : square(s.by), s.target);
  const Val loss = sum(where(s.counts, each, zeros_like(each)), {1}) / static_cast<double>(x.size(1));
  return reshape(reduced(loss, call.integer("reduction")), call.result().sizes);
}

// The gradient of each row's loss, given that of the reduced one.
Val spread_rows(const Call& call, int64_t rows) {
  Val g = call.math("grad_output");
  if (call.integer("reduction") == kMean) g = g / static_cast<double>(rows);
  return call.integer("reduction") == kUnreduced ? reshape(g, {rows, 1}) : reshape(g, {1, 1});
}
Results multi_margin_loss_backward(const Call& call) {
  const Val x = as_rows(call.math("self"));
  if (x.count() == 0) return nothing();
  const Shortage s = shortage(call, x);
  const Val slope = class_weight(call, call.is_constant("p", 1) ? ones_like(s.by) : s.by * 2, s.target);
  const Val others = where(s.counts, slope, zeros_like(slope)) / static_cast<double>(x.size(1));
  const Val all = scatter_add(others, 1, s.target, -sum(others, {1}, true));
  return reshape(all * spread_rows(call, x.size(0)), call.result().sizes);
}

// Targets of a row up to the first negative one: [rows, targets].
struct Labels {
  Val places, counts;
};
// PyTorch refuses what is no label behind that one too.
Labels labels_of(Val target, int64_t classes) {
  const Val counts = cumsum(cast(target < 0, DType::kI64), 1) == 0, bad = (target < -1) | (target >= classes);
  return {where(counts | bad, target, zeros_like(target)), counts};
}
// For each pair of a label and a class that is none: [rows, labels, classes].
Val pairs_short(Val x, const Labels& labels, Val is_target) {
  const Val by = 1 - unsqueeze(gather(x, 1, labels.places), 2) + unsqueeze(x, 1);
  return where(unsqueeze(labels.counts, 2) & unsqueeze(is_target == 0, 1), by, zeros_like(by));
}
Results multilabel_margin_loss(const Call& call) {
  const Val x = as_rows(call.math("self"));
  if (x.count() == 0) return nothing();
  const Labels labels = labels_of(as_rows(cast(call.tensor("target"), DType::kI64)), x.size(1));
  const Val is_target = cast(scatter_add(zeros_like(x), 1, labels.places, cast(labels.counts, x.dtype())) > 0, x.dtype());
  const Val loss = sum(maximum(pairs_short(x, labels, is_target), 0), {1, 2}) / static_cast<double>(x.size(1));
  return {in_shape_of(call, 0, reduced(loss, call.integer("reduction"))), in_shape_of(call, 1, is_target)};
}
Results multilabel_margin_loss_backward(const Call& call) {
  const Val x = as_rows(call.math("self"));
  if (x.count() == 0) return nothing();
  const Labels labels = labels_of(as_rows(cast(call.tensor("target"), DType::kI64)), x.size(1));
  const Val counts = cast(pairs_short(x, labels, as_rows(call.math("is_target"))) > 0, x.dtype());
  const Val all = scatter_add(sum(counts, {1}), 1, labels.places, -sum(counts, {2}));
  return reshape(all / static_cast<double>(x.size(1)) * spread_rows(call, x.size(0)), call.result().sizes);
}

constexpr Decomposition kRules[] = {
    {"aten::multi_margin_loss", multi_margin_loss},
    {"aten::multi_margin_loss_backward", multi_margin_loss_backward},
    {"aten::multilabel_margin_loss_forward", multilabel_margin_loss},
    {"aten::multilabel_margin_loss_backward", multilabel_margin_loss_backward},
    {"aten::mse_loss", loss<squared>},
    {"aten::mse_loss_backward", loss_backward<squared_slope>},
    {"aten::smooth_l1_loss", loss<smooth>},
    {"aten::smooth_l1_loss_backward", loss_backward<smooth_slope>},
    {"aten::huber_loss", loss<huber>},
    {"aten::huber_loss_backward", loss_backward<huber_slope>},
    {"aten::soft_margin_loss", loss<soft_margin>},
    {"aten::soft_margin_loss_backward", loss_backward<soft_margin_slope>},
    {"aten::binary_cross_entropy", binary_cross_entropy},
    {"aten::binary_cross_entropy_backward", binary_cross_entropy_backward},
    {"aten::nll_loss_forward", nll_loss},
    {"aten::nll_loss_backward", nll_loss_backward},
    {"aten::nll_loss2d_forward", nll_loss},
    {"aten::nll_loss2d_backward", nll_loss_backward},
};

}  // namespace

std::span<const Decomposition> losses() { return kRules; }

}  // namespace ltc::decompose
