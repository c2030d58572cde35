// Steps of PyTorch's fused optimizers: one op for all parameters, as formulas of each. The plugin fuses them.
//
// The results are what the op writes: parameters, gradients, and the lists of the optimizer's state.
#include "core/decompose/rules/families.h"

namespace ltc::decompose {
namespace {

// Half precisions are computed in float, as PyTorch's fused kernels do.
Val wide(Val x) { return cast(x, math_dtype(x.dtype())); }

// A value that is computed from numbers alone takes the precision of its other operand, as a number does.
Val as_number(Val x) { return {x.builder, x.id, true}; }

// 1 - beta^step, exact for small steps in float too.
Val bias_correction(Val log_beta, Val step) { return -expm1(step * log_beta); }

Val scalar(Val x) { return x ? reshape(x, {}) : x; }

// A step as torch.amp.GradScaler sees it: by what the gradients are scaled, and whether to skip it.
class Scaling {
 public:
  explicit Scaling(const Call& call) : scale_(scalar(call.tensor("grad_scale"))), maximizes_(call.flag("maximize")) {
    if (const Val infinite = scalar(call.tensor("found_inf"))) skip_ = infinite != 0;
  }

  Val unscaled(Val stored) const { return scale_ ? wide(stored) / scale_ : wide(stored); }
  Val downhill(Val gradient) const { return maximizes_ ? -gradient : gradient; }
  Val kept(Val before, Val after) const {
    after = cast(after, before.dtype());
    return skip_ ? where(skip_, before, after) : after;
  }

 private:
  Val scale_, skip_;  // false: not scaled, never skipped
  bool maximizes_;
};

// The lists that the op writes: as they were, and what becomes of them.
class Lists {
 public:
  Lists(const Call& call, const Scaling& scaling, std::initializer_list<const char*> names) : scaling_(scaling) {
    for (const char* name : names) before_.push_back(call.tensors(name));
    after_ = before_;
  }

  size_t size() const { return before_[0].size(); }
  bool has(size_t list) const { return !before_[list].empty(); }
  Val operator()(size_t list, size_t i) const { return before_[list][i]; }
  void write(size_t list, size_t i, Val value) { after_[list][i] = scaling_.kept(before_[list][i], value); }

  // The gradient to follow downhill. The stored one is unscaled.
  Val gradient(const Call& call, size_t i) {
    const Val unscaled = scaling_.unscaled(before_[1][i]);
    if (call.given("grad_scale")) write(1, i, unscaled);
    return scaling_.downhill(unscaled);
  }

  Results results() const {
    std::vector<Val> all;
    for (const auto& list : after_) all.insert(all.end(), list.begin(), list.end());
    return all;
  }

 private:
  const Scaling& scaling_;
  std::vector<std::vector<Val>> before_, after_;
};

// The gradient of a penalty on the parameter, unless there is none.
Val with_penalty(const Call& call, Val gradient, Val param) {
  return call.is_constant("weight_decay", 0) ? gradient : gradient + param * call.number("weight_decay");
}

template <bool kDecoupled>
Results adam(const Call& call) {
  const Scaling scaling(call);
  Lists lists(call, scaling, {"self", "grads", "exp_avgs", "exp_avg_sqs", "max_exp_avg_sqs"});
  const std::vector<Val> steps = call.tensors("state_steps");
  const Val lr = call.number("lr"), beta1 = call.number("beta1"), beta2 = call.number("beta2"), eps = call.number("eps");
  const Val rest1 = as_number(1 - beta1), rest2 = as_number(1 - beta2);
  const Val log1 = as_number(log(beta1)), log2 = as_number(log(beta2));
  const bool amsgrad = call.flag("amsgrad"), decays = !call.is_constant("weight_decay", 0);
  Val shrinks;
  if (kDecoupled && decays) shrinks = 1 - lr * call.number("weight_decay");
  if (shrinks && lr.weak) shrinks = as_number(shrinks);
  for (size_t i = 0; i < lists.size(); ++i) {
    Val param = wide(lists(0, i)), gradient = lists.gradient(call, i);
    if (shrinks) param = param * shrinks;
    if (!kDecoupled) gradient = with_penalty(call, gradient, param);
    const Val mean = wide(lists(2, i)) * beta1 + gradient * rest1;
    const Val square = wide(lists(3, i)) * beta2 + gradient * gradient * rest2;
    const Val peak = amsgrad ? maximum(wide(lists(4, i)), square) : square;
    const Val denominator = sqrt(peak) / sqrt(bias_correction(log2, steps[i])) + eps;
    const Val step_size = reciprocal(bias_correction(log1, steps[i])) * lr;
    lists.write(0, i, param - mean / denominator * step_size);
    lists.write(2, i, mean);
    lists.write(3, i, square);
    if (amsgrad) lists.write(4, i, peak);
  }
  return lists.results();
}

Results sgd(const Call& call) {
  const Scaling scaling(call);
  Lists lists(call, scaling, {"self", "grads", "momentum_buffer_list"});
  const Val lr = call.number("lr"), momentum = call.number("momentum"), rest = as_number(1 - call.number("dampening"));
  const bool is_first_step = call.flag("is_first_step"), nesterov = call.flag("nesterov");
  for (size_t i = 0; i < lists.size(); ++i) {
    const Val param = wide(lists(0, i));
    Val direction = with_penalty(call, lists.gradient(call, i), param);
    if (lists.has(2)) {
      const Val velocity = is_first_step ? direction : wide(lists(2, i)) * momentum + direction * rest;
      lists.write(2, i, velocity);
      direction = nesterov ? direction + velocity * momentum : velocity;
    }
    lists.write(0, i, param - direction * lr);
  }
  return lists.results();
}

// One of the two overloads declares that it writes the steps as well.
template <bool kReturnsSteps>
Results adagrad(const Call& call) {
  const Scaling scaling(call);
  Lists lists(call, scaling, {"self", "grads", "state_sums"});
  const std::vector<Val> steps = call.tensors("state_steps");
  const Val lr = call.number("lr"), lr_decay = call.number("lr_decay"), eps = call.number("eps");
  for (size_t i = 0; i < lists.size(); ++i) {
    const Val param = wide(lists(0, i)), gradient = with_penalty(call, lists.gradient(call, i), param);
    const Val sum = wide(lists(2, i)) + gradient * gradient;
    const Val step_size = reciprocal((steps[i] - 1) * lr_decay + 1) * lr;
    lists.write(0, i, param - gradient / (sqrt(sum) + eps) * step_size);
    lists.write(2, i, sum);
  }
  Results results = lists.results();
  if (kReturnsSteps) results.values.insert(results.values.end(), steps.begin(), steps.end());
  return results;
}

constexpr Decomposition kRules[] = {
    {"aten::_fused_adam_", adam<false>},
    {"aten::_fused_adam_.tensor_lr", adam<false>},
    {"aten::_fused_adamw_", adam<true>},
    {"aten::_fused_adamw_.tensor_lr", adam<true>},
    {"aten::_fused_sgd_", sgd},
    {"aten::_fused_sgd_.tensor_lr", sgd},
    {"aten::_fused_adagrad_", adagrad<true>},
    {"aten::_fused_adagrad_.tensor_lr", adagrad<false>},
};

}  // namespace

std::span<const Decomposition> optimizers() { return kRules; }

}  // namespace ltc::decompose
