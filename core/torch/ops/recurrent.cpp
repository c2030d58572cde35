// Recurrent networks. torch.nn.LSTM and torch.nn.GRU are recorded as one op per layer and direction, with a backward of its own
// (recurrent_layers.cpp), packed sequences too. Other calls (projections, autocast, transforms) go on to PyTorch's composite,
// which sends the cells of devices like this one to fused ops that only CUDA has: here they are computed as on the
// CPU.
#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/autocast_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/gru_native.h>
#include <ATen/ops/lstm_native.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <algorithm>

#include "core/ops/batch_sizes.h"
#include "core/torch/dispatch/boxed_kernel.h"
#include "core/torch/tensor/tensor.h"

namespace ltc {
namespace {

using at::Tensor;
using OptTensor = std::optional<Tensor>;
using Tensors = torch::autograd::variable_list;

// ---- Layers. Their arguments in a row: input, states, two weights, two biases or none.

// The order of the steps.
struct Order {
  bool reverse;
  std::vector<int64_t> batch_sizes = {};  // of packed sequences; else empty
  bool is_packed() const { return !batch_sizes.empty(); }
  Tensor sizes() const { return at::tensor(batch_sizes); }
};

struct Lstm {
  static constexpr const char *kForward = "ltc::lstm_layer", *kBackward = "ltc::lstm_layer_backward";
  static constexpr const char *kPacked = "ltc::packed_lstm_layer", *kPackedBackward = "ltc::packed_lstm_layer_backward";
  static constexpr size_t kStates = 2;
  // The same, in the order of time, from ops that can be differentiated again and again: output, then states.
  static Tensors by_cells(const Tensor& input, at::TensorList states, at::TensorList params, const Order& order) {
    const Tensors first = {states[0].unsqueeze(0), states[1].unsqueeze(0)};
    const bool has_biases = params.size() > 2;
    auto [output, hy, cy] = order.is_packed()
                                ? at::native::lstm(input, order.sizes(), first, params, has_biases, /*num_layers=*/1,
                                                   /*dropout=*/0.0, false, /*bidirectional=*/false)
                                : at::native::lstm(input, first, params, has_biases, 1, 0.0, false, false, false);
    return {output, hy.squeeze(0), cy.squeeze(0)};
  }
};

struct Gru {
  static constexpr const char *kForward = "ltc::gru_layer", *kBackward = "ltc::gru_layer_backward";
  static constexpr const char *kPacked = "ltc::packed_gru_layer", *kPackedBackward = "ltc::packed_gru_layer_backward";
  static constexpr size_t kStates = 1;
  static Tensors by_cells(const Tensor& input, at::TensorList states, at::TensorList params, const Order& order) {
    const Tensor first = states[0].unsqueeze(0);
    const bool has_biases = params.size() > 2;
    auto [output, hy] = order.is_packed() ? at::native::gru(input, order.sizes(), first, params, has_biases, /*num_layers=*/1,
                                                            /*dropout=*/0.0, false, /*bidirectional=*/false)
                                          : at::native::gru(input, first, params, has_biases, 1, 0.0, false, false, false);
    return {output, hy.squeeze(0)};
  }
};

// The steps of each sequence in the other order. `x` has a row for each of them.
Tensor turned(const Tensor& x, const Order& order) {
  if (!order.is_packed()) return x.flip(0);
  std::vector<int64_t> first_rows, rows;
  int64_t row = 0;
  for (const int64_t batch : order.batch_sizes) first_rows.push_back(row), row += batch;
  for (size_t step = 0; step < first_rows.size(); ++step) {
    for (int64_t k = 0; k < order.batch_sizes[step]; ++k) {
      const auto steps = std::ranges::partition_point(order.batch_sizes, [k](int64_t batch) { return batch > k; });
      rows.push_back(first_rows[static_cast<size_t>(steps - order.batch_sizes.begin()) - 1 - step] + k);
    }
  }
  return x.index_select(0, at::tensor(rows).to(x.device()));
}

template <typename Cell>
bool has_biases(at::TensorList args) {
  return args.size() == 1 + Cell::kStates + 4;
}

void push(torch::jit::Stack& stack, at::TensorList tensors) { stack.insert(stack.end(), tensors.begin(), tensors.end()); }

template <typename Cell>
void push_arguments(torch::jit::Stack& stack, at::TensorList args) {
  push(stack, args);
  if (!has_biases<Cell>(args)) push(stack, {Tensor(), Tensor()});
}

Tensors pop(torch::jit::Stack& stack) {
  Tensors results;
  for (c10::IValue& value : stack) results.push_back(std::move(value).toTensor());
  return results;
}

// Output, states, reserve.
template <typename Cell>
Tensors forward(at::TensorList args, const Order& order, bool train) {
  static const auto padded = c10::Dispatcher::singleton().findSchemaOrThrow(Cell::kForward, "");
  static const auto packed = c10::Dispatcher::singleton().findSchemaOrThrow(Cell::kPacked, "");
  torch::jit::Stack stack;
  push_arguments<Cell>(stack, args);
  if (order.is_packed()) stack.emplace_back(order.batch_sizes);
  stack.emplace_back(order.reverse), stack.emplace_back(train);
  (order.is_packed() ? packed : padded).callBoxed(&stack);
  return pop(stack);
}

// Gradients of `args`; `results` are the forward's, reserve included.
template <typename Cell>
Tensors backward(at::TensorList gradients, at::TensorList args, at::TensorList results, const Order& order) {
  static const auto padded = c10::Dispatcher::singleton().findSchemaOrThrow(Cell::kBackward, "");
  static const auto packed = c10::Dispatcher::singleton().findSchemaOrThrow(Cell::kPackedBackward, "");
  torch::jit::Stack stack;
  push(stack, gradients), push_arguments<Cell>(stack, args), push(stack, results);
  if (order.is_packed()) stack.emplace_back(order.batch_sizes);
  stack.emplace_back(order.reverse);
  (order.is_packed() ? packed : padded).callBoxed(&stack);
  Tensors of_args = pop(stack);
  of_args.resize(args.size());
  return of_args;
}

// The same where the gradients are to be differentiated themselves.
template <typename Cell>
Tensors backward_by_cells(const Tensors& gradients, const Tensors& args, const Order& order) {
  const at::TensorList states(args.data() + 1, Cell::kStates), all(args);
  Tensors results = Cell::by_cells(order.reverse ? turned(args[0], order) : args[0], states, all.slice(1 + Cell::kStates), order);
  if (order.reverse) results[0] = turned(results[0], order);
  Tensors reached, given, wanted;
  for (size_t i = 0; i < results.size(); ++i) {
    if (gradients[i].defined()) reached.push_back(results[i]), given.push_back(gradients[i]);
  }
  std::ranges::copy_if(args, std::back_inserter(wanted), [](const Tensor& arg) { return arg.requires_grad(); });
  const Tensors found = torch::autograd::grad(reached, wanted, given, true, /*create_graph=*/true, /*allow_unused=*/true);
  Tensors of_args;
  for (size_t i = 0, next = 0; i < args.size(); ++i) of_args.push_back(args[i].requires_grad() ? found[next++] : Tensor());
  return of_args;
}

template <typename Cell>
struct Layer : torch::autograd::Function<Layer<Cell>> {
  static Tensors forward(torch::autograd::AutogradContext* context, at::TensorList args, const Order& order) {
    at::AutoDispatchBelowADInplaceOrView below_autograd;
    Tensors results = ltc::forward<Cell>(args, order, /*train=*/true), saved = args.vec();
    saved.insert(saved.end(), results.begin(), results.end());
    context->save_for_backward(std::move(saved));
    context->saved_data["reverse"] = order.reverse;
    context->saved_data["batch_sizes"] = order.batch_sizes;
    context->set_materialize_grads(false);
    results.pop_back();
    return results;
  }

  static Tensors backward(torch::autograd::AutogradContext* context, Tensors gradients) {
    const Tensors saved = context->get_saved_variables();
    const size_t count = saved.size() - (Cell::kStates + 2);
    const Tensors args(saved.begin(), saved.begin() + static_cast<int64_t>(count));
    const Order order{context->saved_data["reverse"].toBool(), context->saved_data["batch_sizes"].toIntVector()};
    Tensors of_args = c10::GradMode::is_enabled()
                          ? backward_by_cells<Cell>(gradients, args, order)
                          : ltc::backward<Cell>(gradients, args, at::TensorList(saved).slice(count), order);
    of_args.emplace_back();  // of `order`
    return of_args;
  }
};

// Output, then states.
template <typename Cell>
Tensors run_layer(const Tensors& args, const Order& order) {
  const bool train =
      c10::GradMode::is_enabled() && std::ranges::any_of(args, [](const Tensor& arg) { return arg.requires_grad(); });
  if (train) return Layer<Cell>::apply(at::TensorList(args), order);
  Tensors results = forward<Cell>(args, order, false);
  results.pop_back();
  return results;
}

// ---- Networks

struct Options {
  bool has_biases;
  int64_t num_layers;
  double dropout;
  bool train, bidirectional, batch_first = false;
  std::vector<int64_t> batch_sizes = {};  // of packed sequences
};

// Output, then the last states of all layers and directions.
template <typename Cell>
Tensors run_network(const Tensor& input, at::TensorList states, at::TensorList params, const Options& options) {
  const size_t directions = options.bidirectional ? 2 : 1, weights = options.has_biases ? 4 : 2;
  Tensor x = options.batch_first ? input.transpose(0, 1) : input;
  std::vector<Tensors> last(Cell::kStates);
  for (int64_t layer = 0; layer < options.num_layers; ++layer) {
    Tensors outputs;
    for (size_t direction = 0; direction < directions; ++direction) {
      const size_t k = static_cast<size_t>(layer) * directions + direction;
      Tensors args;
      args.push_back(x);
      for (const Tensor& state : states) args.push_back(state[static_cast<int64_t>(k)]);
      std::ranges::copy(params.slice(k * weights, weights), std::back_inserter(args));
      const Tensors results = run_layer<Cell>(args, {direction == 1, options.batch_sizes});
      outputs.push_back(results[0]);
      for (size_t i = 0; i < Cell::kStates; ++i) last[i].push_back(results[1 + i]);
    }
    x = directions == 1 ? outputs[0] : at::cat(outputs, -1);
    if (options.dropout != 0 && options.train && layer + 1 < options.num_layers) x = at::dropout(x, options.dropout, true);
  }
  Tensors results;
  results.push_back(options.batch_first ? x.transpose(0, 1) : x);
  for (const Tensors& state : last) results.push_back(at::stack(state));
  return results;
}

// Whether the layers' ops take these tensors, and nothing between here and the device wants to see smaller ops.
bool takes_whole(c10::DispatchKeySet keys, const Tensor& input, int64_t rank, at::TensorList states, at::TensorList params) {
  const auto fits = [&](const Tensor& tensor) { return is_lazy(tensor) && tensor.scalar_type() == input.scalar_type(); };
  return reaches_device(keys) && input.is_floating_point() && input.dim() == rank && input.numel() != 0 && fits(input) &&
         std::ranges::all_of(states, fits) && std::ranges::all_of(params, fits) && !at::autocast::is_autocast_enabled(kLtc);
}

// Those of packed data, or empty where they do not belong to it, which PyTorch's composite says.
std::vector<int64_t> batch_sizes_of(const Tensor& batch_sizes, const Tensor& data, const Tensor& state) {
  if (!batch_sizes.is_cpu() || batch_sizes.scalar_type() != at::kLong || batch_sizes.dim() != 1 || state.dim() != 3) return {};
  const Tensor dense = batch_sizes.contiguous();
  const int64_t* const first = dense.const_data_ptr<int64_t>();
  std::vector<int64_t> sizes(first, first + dense.numel());
  return are_batch_sizes(sizes, state.size(1), data.size(0)) ? sizes : std::vector<int64_t>();
}

bool same_widths(at::TensorList hx) { return hx.size() == 2 && hx[0].sizes() == hx[1].sizes(); }  // no projection

std::tuple<Tensor, Tensor, Tensor> lstm(c10::DispatchKeySet keys, const Tensor& input, at::TensorList hx, at::TensorList params,
                                        bool has_biases, int64_t num_layers, double dropout, bool train, bool bidirectional,
                                        bool batch_first) {
  const bool fused = input.scalar_type() == at::kFloat && at::globalContext().userEnabledMkldnn() && at::Context::hasMKLDNN();
  if (!fused || !same_widths(hx) || !takes_whole(keys, input, 3, hx, params)) {
    return at::native::lstm(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first);
  }
  Tensors results = run_network<Lstm>(input, hx, params, {has_biases, num_layers, dropout, train, bidirectional, batch_first});
  return {std::move(results[0]), std::move(results[1]), std::move(results[2])};
}

std::tuple<Tensor, Tensor> gru(c10::DispatchKeySet keys, const Tensor& input, const Tensor& hx, at::TensorList params,
                               bool has_biases, int64_t num_layers, double dropout, bool train, bool bidirectional,
                               bool batch_first) {
  if (!takes_whole(keys, input, 3, hx, params)) {
    return at::native::gru(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first);
  }
  Tensors results = run_network<Gru>(input, hx, params, {has_biases, num_layers, dropout, train, bidirectional, batch_first});
  return {std::move(results[0]), std::move(results[1])};
}

std::tuple<Tensor, Tensor, Tensor> packed_lstm(c10::DispatchKeySet keys, const Tensor& data, const Tensor& batch_sizes,
                                               at::TensorList hx, at::TensorList params, bool has_biases, int64_t num_layers,
                                               double dropout, bool train, bool bidirectional) {
  Options options{has_biases, num_layers, dropout, train, bidirectional};
  if (same_widths(hx) && takes_whole(keys, data, 2, hx, params)) options.batch_sizes = batch_sizes_of(batch_sizes, data, hx[0]);
  if (options.batch_sizes.empty()) {
    return at::native::lstm(data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional);
  }
  Tensors results = run_network<Lstm>(data, hx, params, options);
  return {std::move(results[0]), std::move(results[1]), std::move(results[2])};
}

std::tuple<Tensor, Tensor> packed_gru(c10::DispatchKeySet keys, const Tensor& data, const Tensor& batch_sizes, const Tensor& hx,
                                      at::TensorList params, bool has_biases, int64_t num_layers, double dropout, bool train,
                                      bool bidirectional) {
  Options options{has_biases, num_layers, dropout, train, bidirectional};
  if (takes_whole(keys, data, 2, hx, params)) options.batch_sizes = batch_sizes_of(batch_sizes, data, hx);
  if (options.batch_sizes.empty()) {
    return at::native::gru(data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional);
  }
  Tensors results = run_network<Gru>(data, hx, params, options);
  return {std::move(results[0]), std::move(results[1])};
}

// ---- Cells. The last result is a workspace of the fused kernel's own backward: not needed here.

Tensor with_bias(const Tensor& gates, const OptTensor& bias) { return bias && bias->defined() ? gates + *bias : gates; }

std::tuple<Tensor, Tensor, Tensor> lstm_cell(const Tensor& input_gates, const Tensor& hidden_gates, const Tensor& cx,
                                             const OptTensor& input_bias, const OptTensor& hidden_bias) {
  const auto gates = (with_bias(hidden_gates, hidden_bias) + with_bias(input_gates, input_bias)).unsafe_chunk(4, 1);
  const Tensor in = gates[0].sigmoid(), forget = gates[1].sigmoid(), cell = gates[2].tanh(), out = gates[3].sigmoid();
  Tensor cy = forget * cx + in * cell;
  Tensor hy = out * cy.tanh();
  return {std::move(hy), std::move(cy), Tensor()};
}

std::tuple<Tensor, Tensor> gru_cell(const Tensor& input_gates, const Tensor& hidden_gates, const Tensor& hx,
                                    const OptTensor& input_bias, const OptTensor& hidden_bias) {
  const auto input = with_bias(input_gates, input_bias).unsafe_chunk(3, 1);
  const auto hidden = with_bias(hidden_gates, hidden_bias).unsafe_chunk(3, 1);
  const Tensor reset = (hidden[0] + input[0]).sigmoid(), update = (hidden[1] + input[1]).sigmoid();
  const Tensor fresh = (input[2] + hidden[2] * reset).tanh();
  return {(hx - fresh) * update + fresh, Tensor()};
}

// At both keys: without one at the autograd key, PyTorch would look for derivatives of the ops themselves.
void add_ops(torch::Library& m) {
  m.impl("lstm.input", lstm);
  m.impl("lstm.data", packed_lstm);
  m.impl("gru.input", gru);
  m.impl("gru.data", packed_gru);
  m.impl("_thnn_fused_lstm_cell", lstm_cell);
  m.impl("_thnn_fused_gru_cell", gru_cell);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { add_ops(m); }
TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, m) { add_ops(m); }

}  // namespace
}  // namespace ltc
