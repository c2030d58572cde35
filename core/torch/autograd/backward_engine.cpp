#include "core/torch/autograd/backward_engine.h"

#include <ATen/record_function.h>
#include <c10/core/AutogradState.h>
#include <c10/core/StreamGuard.h>
#include <c10/util/ScopeExit.h>
#include <torch/csrc/autograd/engine.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>
#include <typeinfo>
#include <unordered_map>

#include "core/base/error.h"
#include "core/report/metrics.h"
#include "core/torch/dispatch/gradient_node.h"

namespace ltc {
namespace {

using torch::autograd::Edge;
using torch::autograd::Engine;
using torch::autograd::GraphTask;
using torch::autograd::InputBuffer;
using torch::autograd::Node;
using torch::autograd::variable_list;

// ---- Nodes that need nothing around them

bool is_of_plain_class(const Node& node) {
  const auto begins = [name = typeid(node).name()](std::string_view text) {
    return !std::strncmp(name, text.data(), text.size());
  };
  return begins("N5torch8autograd9generated") || begins("N5torch8autograd14AccumulateGradE") ||
         begins("N5torch8autograd9GraphRootE") || begins("N5torch8autograd7CppNodeIN3ltc");
}

// No Python runs for it, except hooks of its saved tensors: those cannot be seen from here.
bool is_plain(Node& node) {
  return is_of_plain_class(node) && node.pre_hooks().empty() && node.post_hooks().empty() && node.retains_grad_hooks().empty() &&
         node.tensor_pre_hooks().empty() && !node.tensor_post_acc_grad_hooks();
}

// The thread's state that such a hook may leave changed. PyTorch restores it before the next node.
struct State {
  bool operator==(const State&) const = default;
  static State of_this_thread(const c10::AutogradState& autograd) {
    const auto keys = c10::impl::tls_local_dispatch_key_set();
    return {keys.included_.raw_repr(),     keys.excluded_.raw_repr(),   autograd.get_grad_mode(),
            autograd.get_inference_mode(), autograd.get_fw_grad_mode(), autograd.get_multithreading_enabled()};
  }

  uint64_t included, excluded;
  bool grad_mode, inference_mode, forward_mode, multithreading;
};

// ---- The nodes of a backward as one node

// PyTorch makes the thread wait for leaves on other streams at the end of a backward.
bool is_of_caller(const GraphTask& graph_task, const c10::Stream& stream) {
  return graph_task.caller_current_streams_[static_cast<size_t>(stream.device_index())] == stream;
}

// Evaluates the nodes of a backward in the order in which PyTorch's queue would give them, as long as they are plain, and leaves
// the others to it. It needs none of the locks and events of a queue for several threads and streams.
class Evaluation {
 public:
  Evaluation(const std::shared_ptr<GraphTask>& graph_task, Node& root, variable_list&& gradients) : graph_task_(graph_task) {
    ready_.push_back({&root, std::move(gradients)});
  }

  // The next node, if it is plain.
  Node* next() const { return ready_.empty() || !is_plain(*ready_.front().node) ? nullptr : ready_.front().node; }

  void evaluate_next() {
    std::pop_heap(ready_.begin(), ready_.end(), &is_after);
    Ready task = std::move(ready_.back());
    ready_.pop_back();
    Node& node = *task.node;
    const std::optional<c10::Stream> stream = node.stream();
    const c10::OptionalStreamGuard guard(stream);
    variable_list results = call(node, std::move(task.gradients));
    if (results.empty() && stream && !is_of_caller(*graph_task_, *stream)) graph_task_->leaf_streams.insert(*stream);
    for (size_t i = 0; i < results.size(); ++i) {
      if (node.next_edge(i).is_valid()) pass_on(node.next_edge(i), std::move(results[i]));
    }
  }

  // Leaves the rest to PyTorch's loop: the nodes become `from`'s edges, and their gradients are returned for these edges.
  variable_list leave(Node& from) {
    variable_list results;
    const auto add = [&](Node& node, variable_list& gradients) {
      graph_task_->dependencies_[&node] += static_cast<int>(gradients.size());
      for (uint32_t i = 0; i < gradients.size(); ++i) {
        from.add_next_edge(Edge(node.getptr(), i));
        results.push_back(std::move(gradients[i]));
      }
    };
    for (Ready& task : ready_) add(*task.node, task.gradients);
    for (auto& [node, gradients] : waiting_) add(*node, gradients);
    return results;
  }

 private:
  struct Ready {
    Node* node;  // alive as long as the root
    variable_list gradients;
  };
  static bool is_after(const Ready& a, const Ready& b) { return a.node->sequence_nr() < b.node->sequence_nr(); }

  variable_list call(Node& node, variable_list&& gradients) const {
    if (!graph_task_->keep_graph_) node.will_release_variables();
    variable_list results = node(std::move(gradients));
    torch::autograd::validate_outputs(node.next_edges(), results, [&](const std::string& message) {
      return cat("Function ", node.name(), " returned an ", message);
    });
    if (!graph_task_->keep_graph_) node.release_variables();
    return results;
  }

  void pass_on(const Edge& edge, at::Tensor&& gradient) {
    Node& node = *edge.function;
    const auto dependency = graph_task_->dependencies_.find(&node);
    ensure(dependency != graph_task_->dependencies_.end(), "a node of a backward is not of its graph");
    const bool is_ready = --dependency->second == 0;
    if (is_ready) graph_task_->dependencies_.erase(dependency);

    const auto waiting = waiting_.find(&node);
    variable_list gradients = waiting == waiting_.end() ? variable_list(node.num_inputs()) : std::move(waiting->second);
    add(node, gradients[edge.input_nr], std::move(gradient));
    if (!is_ready) {
      waiting_.insert_or_assign(&node, std::move(gradients));
      return;
    }
    if (waiting != waiting_.end()) waiting_.erase(waiting);
    ready_.push_back({&node, std::move(gradients)});
    std::push_heap(ready_.begin(), ready_.end(), &is_after);
  }

  static void add(Node& node, at::Tensor& sum, at::Tensor&& gradient) {
    if (!sum.defined() || !gradient.defined()) {
      if (gradient.defined()) sum = std::move(gradient);
      return;
    }
    InputBuffer buffer(size_t{1});  // PyTorch has rules of when to add in place
    const std::optional<c10::Stream> stream = node.stream();
    buffer.add(0, std::move(sum), stream, stream, &node);
    buffer.add(0, std::move(gradient), stream, stream, &node);
    sum = std::move(buffer.buffer[0]);
  }

  const std::shared_ptr<GraphTask>& graph_task_;
  std::vector<Ready> ready_;                          // a heap
  std::unordered_map<Node*, variable_list> waiting_;  // for more gradients
};

class InlinedBackward : public Node {
 public:
  InlinedBackward(std::shared_ptr<GraphTask> graph_task, GradientNode root, InputBuffer&& gradients)
      : Node(/*sequence_nr=*/UINT64_MAX),
        graph_task_(std::move(graph_task)),
        root_(std::move(root)),
        gradients_(std::move(gradients.buffer)) {}

  // A caller that asks for the node under evaluation finds this one.
  std::string name() const override { return current_ ? current_->name() : Node::name(); }

 protected:
  variable_list apply(variable_list&&) override {
    const auto graph_task = std::move(graph_task_);
    if (!graph_task) return {};  // called by somebody who found it
    const GradientNode root = std::move(root_);
    const auto end = c10::make_scope_exit([&] { current_ = nullptr; });
    Evaluation evaluation(graph_task, *root, std::move(gradients_));
    evaluate(evaluation, *graph_task);
    variable_list left = evaluation.leave(*this);
    if (left.empty()) complete(*graph_task);
    return left;
  }

 private:
  void evaluate(Evaluation& evaluation, const GraphTask& graph_task) {
    const c10::AutogradState& autograd = c10::AutogradState::get_tls_state();
    const State state = State::of_this_thread(autograd);
    int64_t count = 0;
    while ((current_ = evaluation.next()) && !graph_task.has_error_) {
      sequence_nr_ = current_->sequence_nr();
      thread_id_ = current_->thread_id();
      evaluation.evaluate_next();
      ++count;
      if (State::of_this_thread(autograd) != state) break;
    }
    static metrics::Counter& nodes = metrics::counter(metrics::kInlinedBackwardNodes);
    nodes += count;
  }

  // PyTorch swaps the thread's state once more to run the callbacks of a backward. Done here where there are none.
  static void complete(GraphTask& graph_task) {
    const bool is_last = graph_task.outstanding_tasks_ == 1;  // this one
    if (!is_last || graph_task.has_error_ || !graph_task.final_callbacks_.empty()) return;
    for (const c10::Stream& stream : graph_task.leaf_streams)
      if (!is_of_caller(graph_task, stream)) return;
    if (graph_task.future_completed_.exchange(true)) return;
    graph_task.future_result_->markCompleted(std::exchange(graph_task.captured_vars_, {}));
  }

  std::shared_ptr<GraphTask> graph_task_;  // until it is evaluated
  GradientNode root_;
  variable_list gradients_;
  Node* current_ = nullptr;
};

// Hands PyTorch's engine, which drives the backward, one node instead of the first.
class BackwardEngine : public Engine {
 public:
  c10::intrusive_ptr<at::ivalue::Future> execute_with_graph_task(const std::shared_ptr<GraphTask>& graph_task, GradientNode root,
                                                                 InputBuffer&& gradients) override {
    Engine& engine = get_default_engine();
    if (!is_plain(*root) || !graph_task->exec_info_.empty())
      return engine.execute_with_graph_task(graph_task, std::move(root), std::move(gradients));
    GradientNode all = make_node<InlinedBackward>(graph_task, std::move(root), std::move(gradients));
    return engine.execute_with_graph_task(graph_task, std::move(all), InputBuffer(size_t{0}));
  }
};

}  // namespace

bool nothing_intercepts_backward() {
  constexpr c10::DispatchKeySet usual = c10::default_included_set | c10::autocast_dispatch_keyset;
  return (c10::impl::tls_local_dispatch_key_set().included_ - usual).empty() && !at::hasCallbacks() &&
         !torch::autograd::AnomalyMode::is_enabled() && !c10::AutogradState::get_tls_state().get_multithreading_enabled();
}

void run_backward(const std::vector<torch::autograd::Edge>& roots, const variable_list& gradients, bool keep_graph,
                  bool create_graph) {
  static BackwardEngine& engine = *new BackwardEngine;  // has no threads: those that run nodes are the default engine's
  engine.execute(roots, gradients, keep_graph, create_graph, /*accumulate_grad=*/true);
}

}  // namespace ltc
