// Recurrent networks. torch.nn.LSTM, torch.nn.GRU and torch.nn.RNN are recorded as one op per layer and direction, with a
// backward of its own (recurrent_layers.cpp), packed sequences too; the cells, torch.nn.LSTMCell and the like, are layers of one
// step. Other calls (autocast, transforms) go on to PyTorch's composites, which send the cells of devices like this one to fused
// ops that only CUDA has: here they are computed as on the CPU.
#include <ATen/TensorOperators.h>
#include <ATen/autocast_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <algorithm>

#include "core/ops/batch_sizes.h"
#include "core/torch/dispatch/boxed_kernel.h"
#include "core/torch/ops/recurrent_kinds.h"
#include "core/torch/tensor/tensor.h"

namespace ltc {
namespace {

using namespace recurrent;
using OptTensor = std::optional<Tensor>;

// ---- Layers. Their arguments in a row: input, states, two weights, two biases or none, the weight of a projection or none.

// The order of the steps.
struct Order {
  bool reverse;
  std::vector<int64_t> batch_sizes = {};  // of packed sequences; else empty
  bool is_packed() const { return !batch_sizes.empty(); }
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

template <typename Kind>
const c10::OperatorHandle& op_of(const Order& order, bool is_backward) {
  static const auto ops = [] {
    std::vector<std::optional<c10::OperatorHandle>> found;
    for (const char* form : {"ltc::", "ltc::packed_"}) {
      for (const char* direction : {"", "_backward"}) {
        found.push_back(c10::Dispatcher::singleton().findSchema({std::string(form) + Kind::kLayer + direction, ""}));
      }
    }
    return found;
  }();
  return *ops[(order.is_packed() ? 2 : 0) + (is_backward ? 1 : 0)];
}

void push(torch::jit::Stack& stack, at::TensorList tensors) { stack.insert(stack.end(), tensors.begin(), tensors.end()); }

// The places of arguments among the op's: biases may be missing in between.
template <typename Kind>
std::vector<size_t> places_of(size_t count) {
  const size_t fixed = 1 + Kind::kStates + 2, others = count - fixed;  // 0 or 2, 1 or 3 with a projection
  std::vector<size_t> places;
  for (size_t i = 0; i < count; ++i) places.push_back(others == 1 && i == fixed ? i + 2 : i);
  return places;
}

template <typename Kind>
void push_arguments(torch::jit::Stack& stack, at::TensorList args, const Order& order) {
  const bool may_project = Kind::kStates == 2 && order.is_packed();
  Tensors all(1 + Kind::kStates + 4 + (may_project ? 1 : 0));
  const std::vector<size_t> places = places_of<Kind>(args.size());
  for (size_t i = 0; i < args.size(); ++i) all[places[i]] = args[i];
  push(stack, all);
}

template <typename Kind>
void push_order(torch::jit::Stack& stack, const Order& order) {
  if (Kind::kNonlinearity) stack.emplace_back(Kind::kNonlinearity);
  if (order.is_packed()) stack.emplace_back(order.batch_sizes);
  stack.emplace_back(order.reverse);
}

Tensors pop(torch::jit::Stack& stack) {
  Tensors results;
  for (c10::IValue& value : stack) results.push_back(std::move(value).toTensor());
  return results;
}

// Output, states and, where the kind has one, the reserve.
template <typename Kind>
Tensors forward(at::TensorList args, const Order& order, bool train) {
  torch::jit::Stack stack;
  push_arguments<Kind>(stack, args, order), push_order<Kind>(stack, order);
  if (Kind::kHasReserve) stack.emplace_back(train);
  op_of<Kind>(order, false).callBoxed(&stack);
  return pop(stack);
}

// Gradients of `args`; `results` are the forward's, reserve included.
template <typename Kind>
Tensors backward(at::TensorList gradients, at::TensorList args, at::TensorList results, const Order& order) {
  torch::jit::Stack stack;
  push(stack, gradients), push_arguments<Kind>(stack, args, order);
  push(stack, Kind::kHasReserve ? results : results.slice(0, 1));  // without one, the output is enough
  push_order<Kind>(stack, order);
  op_of<Kind>(order, true).callBoxed(&stack);
  const Tensors all = pop(stack);
  Tensors of_args;
  for (const size_t place : places_of<Kind>(args.size())) of_args.push_back(all[place]);
  return of_args;
}

// The layer in the order of time, from ops that can be differentiated again and again: output, then states.
template <typename Kind>
Tensors by_cells(const Tensor& input, at::TensorList states, at::TensorList params, const Order& order) {
  Tensors first;
  for (const Tensor& state : states) first.push_back(state.unsqueeze(0));
  const bool has_biases = params.size() > 3;
  Tensors results =
      vector_of(order.is_packed() ? Kind::composite(input, at::tensor(order.batch_sizes), hx_of<Kind>(first), params, has_biases,
                                                    /*num_layers=*/1, /*dropout=*/0.0, /*train=*/false,
                                                    /*bidirectional=*/false)
                                  : Kind::composite(input, hx_of<Kind>(first), params, has_biases, 1, 0.0, false, false,
                                                    /*batch_first=*/false));
  for (size_t i = 1; i < results.size(); ++i) results[i] = results[i].squeeze(0);
  return results;
}

// `backward` where the gradients are to be differentiated themselves.
template <typename Kind>
Tensors backward_by_cells(const Tensors& gradients, const Tensors& args, const Order& order) {
  const at::TensorList states(args.data() + 1, Kind::kStates), params = at::TensorList(args).slice(1 + Kind::kStates);
  Tensors results = by_cells<Kind>(order.reverse ? turned(args[0], order) : args[0], states, params, order);
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

template <typename Kind>
struct Layer : torch::autograd::Function<Layer<Kind>> {
  static Tensors forward(torch::autograd::AutogradContext* context, at::TensorList args, const Order& order) {
    at::AutoDispatchBelowADInplaceOrView below_autograd;
    Tensors results = ltc::forward<Kind>(args, order, /*train=*/true), saved = args.vec();
    saved.insert(saved.end(), results.begin(), results.end());
    context->save_for_backward(std::move(saved));
    context->saved_data["reverse"] = order.reverse;
    context->saved_data["batch_sizes"] = order.batch_sizes;
    context->set_materialize_grads(false);
    results.resize(1 + Kind::kStates);
    return results;
  }

  static Tensors backward(torch::autograd::AutogradContext* context, Tensors gradients) {
    const Tensors saved = context->get_saved_variables();
    const size_t count = saved.size() - (1 + Kind::kStates + (Kind::kHasReserve ? 1 : 0));
    const Tensors args(saved.begin(), saved.begin() + static_cast<int64_t>(count));
    const Order order{context->saved_data["reverse"].toBool(), context->saved_data["batch_sizes"].toIntVector()};
    Tensors of_args = c10::GradMode::is_enabled()
                          ? backward_by_cells<Kind>(gradients, args, order)
                          : ltc::backward<Kind>(gradients, args, at::TensorList(saved).slice(count), order);
    of_args.emplace_back();  // of `order`
    return of_args;
  }
};

// Output, then states.
template <typename Kind>
Tensors run_layer(const Tensors& args, const Order& order) {
  const bool train =
      c10::GradMode::is_enabled() && std::ranges::any_of(args, [](const Tensor& arg) { return arg.requires_grad(); });
  if (train) return Layer<Kind>::apply(at::TensorList(args), order);
  Tensors results = forward<Kind>(args, order, false);
  results.resize(1 + Kind::kStates);
  return results;
}

// ---- Networks

struct Options {
  int64_t num_layers;
  double dropout;
  bool train, bidirectional;
  std::vector<int64_t> batch_sizes = {};  // of packed sequences
};

// Output, then the last states of all layers and directions.
template <typename Kind>
Tensors run_network(const Tensor& input, at::TensorList states, at::TensorList params, const Options& options) {
  const size_t directions = options.bidirectional ? 2 : 1;
  const size_t weights = params.size() / (static_cast<size_t>(options.num_layers) * directions);
  Tensor x = input;
  std::vector<Tensors> last(Kind::kStates);
  for (int64_t layer = 0; layer < options.num_layers; ++layer) {
    Tensors outputs;
    for (size_t direction = 0; direction < directions; ++direction) {
      const size_t k = static_cast<size_t>(layer) * directions + direction;
      Tensors args;
      args.push_back(x);
      for (const Tensor& state : states) args.push_back(state[static_cast<int64_t>(k)]);
      std::ranges::copy(params.slice(k * weights, weights), std::back_inserter(args));
      const Tensors results = run_layer<Kind>(args, {direction == 1, options.batch_sizes});
      outputs.push_back(results[0]);
      for (size_t i = 0; i < Kind::kStates; ++i) last[i].push_back(results[1 + i]);
    }
    x = directions == 1 ? outputs[0] : at::cat(outputs, -1);
    if (options.dropout != 0 && options.train && layer + 1 < options.num_layers) x = at::dropout(x, options.dropout, true);
  }
  Tensors results;
  results.push_back(x);
  for (const Tensors& state : last) results.push_back(at::stack(state));
  return results;
}

// `input`: [steps, batch, features].
template <typename Kind>
Tensors run_padded(const Tensor& input, at::TensorList states, at::TensorList params, Options options) {
  if (Kind::takes_steps(input, is_projected(states))) return run_network<Kind>(input, states, params, options);
  const int64_t steps = input.size(0), batch = input.size(1);
  options.batch_sizes.assign(static_cast<size_t>(steps), batch);
  Tensors results = run_network<Kind>(input.flatten(0, 1), states, params, options);
  results[0] = results[0].unflatten(0, {steps, batch});
  return results;
}

// Whether the layers' ops take these tensors, and nothing between here and the device wants to see smaller ops.
bool takes_whole(c10::DispatchKeySet keys, const Tensor& input, int64_t rank, at::TensorList states, at::TensorList params) {
  const auto fits = [&](const Tensor& tensor) { return is_lazy(tensor) && tensor.scalar_type() == input.scalar_type(); };
  return reaches_device(keys) && input.is_floating_point() && input.dim() == rank && input.numel() != 0 && fits(input) &&
         std::ranges::all_of(states, fits) && std::ranges::all_of(params, fits) && !at::autocast::is_autocast_enabled(kLtc);
}

// Whether each layer and direction has its states and params.
bool are_complete(at::TensorList states, at::TensorList params, bool has_biases, const Options& options) {
  const int64_t layers = options.num_layers * (options.bidirectional ? 2 : 1);
  const auto has_all = [&](const Tensor& state) { return state.dim() == 3 && state.size(0) == layers; };
  return std::ranges::all_of(states, has_all) &&
         static_cast<int64_t>(params.size()) == layers * ((has_biases ? 4 : 2) + (is_projected(states) ? 1 : 0));
}

// Those of packed data, or empty where they do not belong to it, which PyTorch's composite says.
std::vector<int64_t> batch_sizes_of(const Tensor& batch_sizes, const Tensor& data, const Tensor& state) {
  if (!batch_sizes.is_cpu() || batch_sizes.scalar_type() != at::kLong || batch_sizes.dim() != 1) return {};
  const Tensor dense = batch_sizes.contiguous();
  const int64_t* const first = dense.const_data_ptr<int64_t>();
  std::vector<int64_t> sizes(first, first + dense.numel());
  return are_batch_sizes(sizes, state.size(1), data.size(0)) ? sizes : std::vector<int64_t>();
}

template <typename Kind>
typename Kind::Results padded(c10::DispatchKeySet keys, const Tensor& input, typename Kind::Hx hx, at::TensorList params,
                              bool has_biases, int64_t num_layers, double dropout, bool train, bool bidirectional,
                              bool batch_first) {
  const Options options{num_layers, dropout, train, bidirectional};
  const at::TensorList states = list_of(hx);
  if (!takes_whole(keys, input, 3, states, params) || !are_complete(states, params, has_biases, options) ||
      states[0].size(1) != input.size(batch_first ? 0 : 1)) {
    return Kind::composite(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first);
  }
  Tensors results = run_padded<Kind>(batch_first ? input.transpose(0, 1) : input, states, params, options);
  if (batch_first) results[0] = results[0].transpose(0, 1);
  return tuple_of<Kind>(results);
}

template <typename Kind>
typename Kind::Results packed(c10::DispatchKeySet keys, const Tensor& data, const Tensor& batch_sizes, typename Kind::Hx hx,
                              at::TensorList params, bool has_biases, int64_t num_layers, double dropout, bool train,
                              bool bidirectional) {
  Options options{num_layers, dropout, train, bidirectional};
  const at::TensorList states = list_of(hx);
  if (takes_whole(keys, data, 2, states, params) && are_complete(states, params, has_biases, options)) {
    options.batch_sizes = batch_sizes_of(batch_sizes, data, states[0]);
  }
  if (options.batch_sizes.empty()) {
    return Kind::composite(data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional);
  }
  return tuple_of<Kind>(run_network<Kind>(data, states, params, options));
}

// ---- Cells

// Whether PyTorch's composite would find nothing wrong.
bool are_sizes_of_cell(const Tensor& input, at::TensorList states, at::TensorList params) {
  return params[0].dim() == 2 && params[1].dim() == 2 && input.size(1) == params[0].size(1) && params.size() != 3 &&
         std::ranges::all_of(states, [&](const Tensor& state) {
           return state.dim() == 2 && state.size(0) == input.size(0) && state.size(1) == params[1].size(1);
         });
}

// A layer of one step.
template <typename Kind>
auto cell(c10::DispatchKeySet keys, const Tensor& input, typename Kind::Hx hx, const Tensor& w_ih, const Tensor& w_hh,
          const OptTensor& b_ih, const OptTensor& b_hh) {
  const at::TensorList states = list_of(hx);
  Tensors args{input};
  args.insert(args.end(), states.begin(), states.end());
  for (const OptTensor& param : {OptTensor(w_ih), OptTensor(w_hh), b_ih, b_hh}) {
    if (param && param->defined()) args.push_back(*param);
  }
  const at::TensorList params = at::TensorList(args).slice(1 + states.size());
  if (states.size() != Kind::kStates || !takes_whole(keys, input, 2, states, params) ||
      !are_sizes_of_cell(input, states, params)) {
    return Kind::composite_cell(input, hx, w_ih, w_hh, b_ih, b_hh);
  }
  const Tensors results = run_layer<Kind>(args, {false, {input.size(0)}});
  if constexpr (Kind::kStates == 1) {
    return results[1];
  } else {
    return std::tuple(results[1], results[2]);
  }
}

// ---- Cells of the composites. The last result is a workspace of the fused kernel's own backward: not needed here.

Tensor with_bias(const Tensor& gates, const OptTensor& bias) { return bias && bias->defined() ? gates + *bias : gates; }

std::tuple<Tensor, Tensor, Tensor> fused_lstm_cell(const Tensor& input_gates, const Tensor& hidden_gates, const Tensor& cx,
                                                   const OptTensor& input_bias, const OptTensor& hidden_bias) {
  const auto gates = (with_bias(hidden_gates, hidden_bias) + with_bias(input_gates, input_bias)).unsafe_chunk(4, 1);
  const Tensor in = gates[0].sigmoid(), forget = gates[1].sigmoid(), cell = gates[2].tanh(), out = gates[3].sigmoid();
  Tensor cy = forget * cx + in * cell;
  Tensor hy = out * cy.tanh();
  return {std::move(hy), std::move(cy), Tensor()};
}

std::tuple<Tensor, Tensor> fused_gru_cell(const Tensor& input_gates, const Tensor& hidden_gates, const Tensor& hx,
                                          const OptTensor& input_bias, const OptTensor& hidden_bias) {
  const auto input = with_bias(input_gates, input_bias).unsafe_chunk(3, 1);
  const auto hidden = with_bias(hidden_gates, hidden_bias).unsafe_chunk(3, 1);
  const Tensor reset = (hidden[0] + input[0]).sigmoid(), update = (hidden[1] + input[1]).sigmoid();
  const Tensor fresh = (input[2] + hidden[2] * reset).tanh();
  return {(hx - fresh) * update + fresh, Tensor()};
}

// At both keys: without one at the autograd key, PyTorch would look for derivatives of the ops themselves.
void add_ops(torch::Library& m) {
  m.impl("lstm.input", padded<Lstm>), m.impl("lstm.data", packed<Lstm>), m.impl("lstm_cell", cell<Lstm>);
  m.impl("gru.input", padded<Gru>), m.impl("gru.data", packed<Gru>), m.impl("gru_cell", cell<Gru>);
  m.impl("rnn_tanh.input", padded<RnnTanh>), m.impl("rnn_tanh.data", packed<RnnTanh>), m.impl("rnn_tanh_cell", cell<RnnTanh>);
  m.impl("rnn_relu.input", padded<RnnRelu>), m.impl("rnn_relu.data", packed<RnnRelu>), m.impl("rnn_relu_cell", cell<RnnRelu>);
  m.impl("_thnn_fused_lstm_cell", fused_lstm_cell);
  m.impl("_thnn_fused_gru_cell", fused_gru_cell);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { add_ops(m); }
TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, m) { add_ops(m); }

}  // namespace
}  // namespace ltc
