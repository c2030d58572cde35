#include "core/torch/backward_engine.h"

#include <ATen/record_function.h>
#include <c10/core/AutogradState.h>
#include <c10/util/ScopeExit.h>
#include <torch/csrc/autograd/engine.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>
#include <typeinfo>

#include "core/run/metrics.h"
#include "core/torch/gradient_node.h"

namespace ltc {
namespace {

using torch::autograd::Engine;
using torch::autograd::GraphTask;
using torch::autograd::InputBuffer;
using torch::autograd::Node;
using torch::autograd::NodeTask;
using torch::autograd::ReadyQueue;
using torch::autograd::variable_list;

// ---- PyTorch's queue of ready nodes. Its pop() is not exported, and would wait.

std::vector<NodeTask>& heap_of(ReadyQueue& queue);
std::mutex& mutex_of(ReadyQueue& queue);

template <typename Queue>
std::vector<NodeTask>& container(Queue& queue) {
  struct Opened : Queue {
    static auto member() { return &Opened::c; }
  };
  return queue.*Opened::member();
}

// An explicit instantiation may name what is private.
template <auto kHeap, auto kMutex>
struct OpenQueue {
  friend std::vector<NodeTask>& heap_of(ReadyQueue& queue) { return container(queue.*kHeap); }
  friend std::mutex& mutex_of(ReadyQueue& queue) { return queue.*kMutex; }
};
template struct OpenQueue<&ReadyQueue::heap_, &ReadyQueue::mutex_>;

int depth_of(const NodeTask& task) {
  const auto graph_task = task.base_.lock();
  return graph_task ? graph_task->reentrant_depth_ : 0;
}

// The order of PyTorch's queue.
bool is_after(const NodeTask& a, const NodeTask& b) {
  if (b.isShutdownTask_) return true;
  if (!a.fn_ || a.isShutdownTask_) return false;
  if (!b.fn_) return true;
  const bool same = !a.base_.owner_before(b.base_) && !b.base_.owner_before(a.base_);
  const int depth_a = same ? 0 : depth_of(a), depth_b = same ? 0 : depth_of(b);
  return depth_a == depth_b ? a.fn_->sequence_nr() < b.fn_->sequence_nr() : depth_a < depth_b;
}

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

// What of the thread's state such a hook may leave changed: PyTorch puts it right before the next node.
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

class AllNodes : public Node {
 public:
  AllNodes(std::shared_ptr<GraphTask> graph_task, GradientNode root, InputBuffer&& gradients)
      : Node(/*sequence_nr=*/UINT64_MAX),
        graph_task_(std::move(graph_task)),
        root_(std::move(root)),
        gradients_(std::move(gradients)) {}

  // Who asks for the node that is being evaluated finds this one.
  std::string name() const override { return current_ ? current_->name() : Node::name(); }

 protected:
  variable_list apply(variable_list&&) override {
    auto graph_task = std::move(graph_task_);
    if (!graph_task) return {};  // called by somebody who found it
    int64_t count = 1;
    const c10::AutogradState& autograd = c10::AutogradState::get_tls_state();
    const State state = State::of_this_thread(autograd);
    const auto end = c10::make_scope_exit([&] { current_ = nullptr; });
    evaluate(graph_task, *std::exchange(root_, nullptr), gradients_);
    for (; State::of_this_thread(autograd) == state && !graph_task->has_error_; ++count) {
      std::optional<NodeTask> task = pop(graph_task);
      if (!task) break;
      const auto done = c10::make_scope_exit([&] { --graph_task->outstanding_tasks_; });
      evaluate(graph_task, *task->fn_, task->inputs_);
    }
    static metrics::Counter& nodes = metrics::counter(metrics::kStraightNodes);
    nodes += count;
    complete(*graph_task);
    return {};
  }

 private:
  void evaluate(std::shared_ptr<GraphTask>& graph_task, Node& node, InputBuffer& gradients) {
    current_ = &node;
    sequence_nr_ = node.sequence_nr();
    thread_id_ = node.thread_id();
    Engine::get_default_engine().evaluate_function(graph_task, &node, gradients, graph_task->cpu_ready_queue_);
  }

  // The next node, if it is a plain one of this backward: inside another's, the queue has that one's nodes too, and after an
  // error in one those that were left.
  static std::optional<NodeTask> pop(const std::shared_ptr<GraphTask>& graph_task) {
    ReadyQueue& queue = *graph_task->cpu_ready_queue_;
    std::vector<NodeTask>& heap = heap_of(queue);
    const std::lock_guard lock(mutex_of(queue));
    if (heap.empty()) return {};
    const NodeTask& next = heap.front();
    const bool is_own = !next.base_.owner_before(graph_task) && !graph_task.owner_before(next.base_);
    if (!is_own || !next.fn_ || !is_plain(*next.fn_)) return {};
    std::pop_heap(heap.begin(), heap.end(), &is_after);
    std::optional<NodeTask> result = std::move(heap.back());
    heap.pop_back();
    return result;
  }

  // PyTorch swaps the thread's state once more to run the callbacks of a backward. Done here where there are none.
  static void complete(GraphTask& graph_task) {
    const bool is_last = graph_task.outstanding_tasks_ == 1;  // this one
    if (!is_last || graph_task.has_error_ || !graph_task.not_ready_.empty() || !graph_task.final_callbacks_.empty()) return;
    for (const c10::Stream& stream : graph_task.leaf_streams)
      if (graph_task.caller_current_streams_[static_cast<size_t>(stream.device_index())] != stream) return;
    if (graph_task.future_completed_.exchange(true)) return;
    graph_task.future_result_->markCompleted(std::exchange(graph_task.captured_vars_, {}));
  }

  std::shared_ptr<GraphTask> graph_task_;  // until it is evaluated
  GradientNode root_;
  InputBuffer gradients_;
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
    GradientNode all = make_node<AllNodes>(graph_task, std::move(root), std::move(gradients));
    return engine.execute_with_graph_task(graph_task, std::move(all), InputBuffer(size_t{0}));
  }
};

}  // namespace

bool is_plain_backward() {
  constexpr c10::DispatchKeySet usual = c10::default_included_set | c10::autocast_dispatch_keyset;
  return (c10::impl::tls_local_dispatch_key_set().included_ - usual).empty() && !at::hasCallbacks() &&
         !torch::autograd::AnomalyMode::is_enabled() && !c10::AutogradState::get_tls_state().get_multithreading_enabled();
}

void run_backward(const torch::autograd::edge_list& roots, const variable_list& gradients, bool keep_graph, bool create_graph) {
  static BackwardEngine& engine = *new BackwardEngine;  // has no threads: those that run nodes are the default engine's
  engine.execute(roots, gradients, keep_graph, create_graph, /*accumulate_grad=*/true);
}

}  // namespace ltc
