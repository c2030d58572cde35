// Layers of recurrent networks (core/torch/ops/recurrent_layers.cpp). A dry run would be a whole layer.
#include <array>

#include "core/ops/batch_sizes.h"
#include "core/torch/dispatch/shape_rule_support.h"

namespace ltc::shape_rules {
namespace {

// The kinds of layers: blocks of rows in the weights, states, and the values that the reserve has for each row and hidden value.
struct Lstm {
  static constexpr int64_t kGates = 4, kReserve = 5;
  static constexpr size_t kStates = 2;
};
struct Gru {
  static constexpr int64_t kGates = 3, kReserve = 4;
  static constexpr size_t kStates = 1;
};
struct Rnn {
  static constexpr int64_t kGates = 1, kReserve = 0;
  static constexpr size_t kStates = 1;
};

// The operands of a layer: input, states, two weights, two biases and, of a packed LSTM, the weight of a projection.
template <typename Kind, bool packed>
struct Operands {
  static constexpr bool kProjects = Kind::kStates == 2 && packed;
  static constexpr bool kIsByOneDnn = Kind::kStates == 2 && !packed;  // in f32 alone; it alone knows how much it keeps
  static constexpr size_t kCount = 1 + Kind::kStates + 4 + (kProjects ? 1 : 0);
  std::array<const at::Tensor*, kCount> all;

  explicit Operands(const c10::IValue* args) {
    for (size_t i = 0; i < kCount; ++i) all[i] = tensor(args[i]);
  }
  const at::Tensor& input() const { return *all[0]; }
  const at::Tensor& hx() const { return *all[1]; }
  const at::Tensor& weight(size_t k) const { return *all[1 + Kind::kStates + k]; }
  const at::Tensor* bias(size_t k) const { return all[1 + Kind::kStates + 2 + k]; }
  const at::Tensor* projection() const { return kProjects ? all.back() : nullptr; }
  int64_t hidden() const { return all[Kind::kStates]->size(1); }

  std::vector<int64_t> with_columns(int64_t columns) const {
    std::vector<int64_t> sizes = input().sizes().vec();
    sizes.back() = columns;
    return sizes;
  }

  // Whether all sizes belong together; `batch_sizes`: of a packed layer.
  bool fit(const c10::IValue* batch_sizes) const {
    for (size_t i = 0; i < 1 + Kind::kStates + 2; ++i) {
      if (!all[i] || all[i]->dim() != (i == 0 && !packed ? 3 : 2)) return false;
    }
    const auto same = [&](const at::Tensor* one) { return !one || one->scalar_type() == input().scalar_type(); };
    if (!input().is_floating_point() || input().numel() == 0 || !std::ranges::all_of(all, same)) return false;
    if (kIsByOneDnn && input().scalar_type() != at::kFloat) return false;
    const int64_t batch = hx().size(0), state = hx().size(1), rows = Kind::kGates * hidden();
    const auto is = [](const at::Tensor& one, std::initializer_list<int64_t> sizes) {
      return std::ranges::equal(one.sizes(), sizes);
    };
    if (!is(weight(0), {rows, input().size(-1)}) || !is(weight(1), {rows, state}) || hidden() == 0) return false;
    if (!bias(0) != !bias(1) || (bias(0) && (!is(*bias(0), {rows}) || !is(*bias(1), {rows})))) return false;
    if (all[Kind::kStates]->size(0) != batch) return false;
    if (projection() ? !is(*projection(), {state, hidden()}) : state != hidden()) return false;
    return packed ? are_batch_sizes(batch_sizes->toIntVector(), batch, input().size(0)) : input().size(1) == batch;
  }
};

// Whether the nonlinearity of an RNN, in front of `options`, is one.
template <typename Kind>
bool has_function(const c10::IValue* options) {
  return Kind::kReserve != 0 || options[-1].toStringRef() == "tanh" || options[-1].toStringRef() == "relu";
}

// (operands, nonlinearity of an RNN, batch_sizes of a packed layer, reverse, train of one with a reserve)
template <typename Kind, bool packed>
std::optional<Types> forward(const c10::IValue* args) {
  const Operands<Kind, packed> layer(args);
  const c10::IValue* options = args + layer.kCount + (Kind::kReserve == 0 ? 1 : 0);
  if (!layer.fit(options) || !has_function<Kind>(options)) return std::nullopt;
  const bool train = Kind::kReserve != 0 && options[packed ? 2 : 1].toBool();
  Types types = {dense_type(layer.input(), layer.with_columns(layer.hx().size(1)))};
  for (size_t i = 1; i <= Kind::kStates; ++i) types.push_back(dense_type(layer.input(), layer.all[i]->sizes()));
  if (Kind::kReserve == 0) return types;
  if (layer.kIsByOneDnn && train) return std::nullopt;
  types.push_back(train ? dense_type(layer.input(), layer.with_columns(Kind::kReserve * layer.hidden())) : kNoType);
  return types;
}

// (gradients of output and states, operands, output, states and reserve of a kind with one, nonlinearity of an RNN, batch_sizes
// of a packed layer, reverse)
template <typename Kind, bool packed>
std::optional<Types> backward(const c10::IValue* args) {
  constexpr size_t kResults = 1 + Kind::kStates;
  const Operands<Kind, packed> layer(args + kResults);
  const c10::IValue *results = args + kResults + layer.kCount, *options = results + (Kind::kReserve == 0 ? 2 : kResults + 1);
  if (!layer.fit(options) || !has_function<Kind>(options)) return std::nullopt;
  for (size_t i = 0; i < kResults; ++i) {
    const std::vector<int64_t> sizes = i == 0 ? layer.with_columns(layer.hx().size(1)) : layer.all[i]->sizes().vec();
    const bool is_given = i == 0 || Kind::kReserve != 0;
    for (const at::Tensor* one : {tensor(args[i]), is_given ? tensor(results[i]) : nullptr}) {
      if (one && (one->sizes() != sizes || !same_type(layer.input(), {one}))) return std::nullopt;
    }
  }
  if (Kind::kReserve != 0 && !layer.kIsByOneDnn &&
      results[kResults].toTensor().sizes() != layer.with_columns(Kind::kReserve * layer.hidden())) {
    return std::nullopt;
  }
  Types types;
  for (const at::Tensor* one : layer.all) types.push_back(one ? dense_type(*one, one->sizes()) : kNoType);
  return types;
}

}  // namespace

std::vector<NamedRule> recurrent() {
  return {{"ltc::lstm_layer", forward<Lstm, false>},       {"ltc::lstm_layer_backward", backward<Lstm, false>},
          {"ltc::gru_layer", forward<Gru, false>},         {"ltc::gru_layer_backward", backward<Gru, false>},
          {"ltc::packed_lstm_layer", forward<Lstm, true>}, {"ltc::packed_lstm_layer_backward", backward<Lstm, true>},
          {"ltc::packed_gru_layer", forward<Gru, true>},   {"ltc::packed_gru_layer_backward", backward<Gru, true>},
          {"ltc::packed_rnn_layer", forward<Rnn, true>},   {"ltc::packed_rnn_layer_backward", backward<Rnn, true>}};
}

}  // namespace ltc::shape_rules
