// CUDA graphs: made node by node or by capturing a stream. A launch runs the nodes in an order that their edges allow; of those
// that may come next it takes the last, or a random one, so that a missing edge shows.
#include <algorithm>
#include <utility>

#include "cuda/emulator/state.h"

namespace ltc::emulator {
namespace {

using Copies = std::map<CUgraphNode, CUgraphNode>;

CUgraph_st copy_of(const CUgraph_st& graph, Copies& copies) {
  CUgraph_st made;
  for (const auto& node : graph.nodes) {
    auto copy = std::make_unique<CUgraphNode_st>();
    for (const CUgraphNode before : node->after) copy->after.push_back(copies.at(before));
    if (node->kernel) copy->kernel = std::make_unique<KernelCall>(*node->kernel);
    copy->work = node->work;
    if (node->child) copy->child = std::make_unique<CUgraph_st>(copy_of(*node->child, copies));
    copies[node.get()] = copy.get();
    made.nodes.push_back(std::move(copy));
  }
  return made;
}

CUgraphNode add(CUgraph graph, const CUgraphNode* after, size_t count, std::unique_ptr<CUgraphNode_st> node) {
  for (size_t i = 0; i < count; ++i) {
    require(std::ranges::any_of(graph->nodes, [&](const auto& known) { return known.get() == after[i]; }));
    node->after.push_back(after[i]);
  }
  graph->nodes.push_back(std::move(node));
  return graph->nodes.back().get();
}

// Its work as it is now, in the order of one launch.
void append(const CUgraph_st& graph, std::vector<Work>& to) {
  std::vector<CUgraphNode> rest, done;
  for (const auto& node : graph.nodes) rest.push_back(node.get());
  while (!rest.empty()) {
    std::vector<CUgraphNode> ready;
    for (const CUgraphNode node : rest) {
      if (std::ranges::all_of(node->after, [&](CUgraphNode before) { return std::ranges::count(done, before) != 0; })) {
        ready.push_back(node);
      }
    }
    Order& order = state().order;
    const CUgraphNode next = order.is_random() ? ready[order.random() % ready.size()] : ready.back();
    if (next->kernel) to.emplace_back([call = *next->kernel] { state().run_kernel(call); });
    if (next->work) to.push_back(next->work);
    if (next->child) append(*next->child, to);
    std::erase(rest, next);
    done.push_back(next);
  }
}

KernelCall call_of(const CUDA_KERNEL_NODE_PARAMS& params) {
  require(!params.extra);
  return kernel_call(params.func, {params.gridDimX, params.gridDimY, params.gridDimZ},
                     {params.blockDimX, params.blockDimY, params.blockDimZ}, params.sharedMemBytes, params.kernelParams);
}

}  // namespace

LTC_EMULATED cuGraphCreate(CUgraph* graph, unsigned flags) {
  return answer([&] {
    require(flags == 0);
    *graph = new CUgraph_st;
  });
}
LTC_EMULATED cuGraphDestroy(CUgraph graph) {
  return answer([&] { delete graph; });
}
LTC_EMULATED cuGraphAddKernelNode_v2(CUgraphNode* node, CUgraph graph, const CUgraphNode* after, size_t count,
                                     const CUDA_KERNEL_NODE_PARAMS* params) {
  return answer([&] {
    auto made = std::make_unique<CUgraphNode_st>();
    made->kernel = std::make_unique<KernelCall>(call_of(*params));
    *node = add(graph, after, count, std::move(made));
  });
}
LTC_EMULATED cuGraphAddChildGraphNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after, size_t count, CUgraph child) {
  return answer([&] {
    auto made = std::make_unique<CUgraphNode_st>();
    Copies copies;
    made->child = std::make_unique<CUgraph_st>(copy_of(*child, copies));
    *node = add(graph, after, count, std::move(made));
  });
}
LTC_EMULATED cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph, unsigned long long flags) {
  return answer([&] {
    require(flags == 0);
    auto made = std::make_unique<CUgraphExec_st>();
    made->context = &current_context();
    made->graph = copy_of(*graph, made->copies);
    *exec = made.release();
  });
}
LTC_EMULATED cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* params) {
  return answer([&] {
    const auto it = exec->copies.find(node);
    require(it != exec->copies.end() && it->second->kernel);
    ++state().uses["cuGraphExecKernelNodeSetParams"];
    *it->second->kernel = call_of(*params);
  });
}
LTC_EMULATED cuGraphExecDestroy(CUgraphExec exec) {
  return answer([&] { delete exec; });
}
LTC_EMULATED cuGraphLaunch(CUgraphExec exec, CUstream stream) {
  return answer([&] {
    require(exec->context == stream->stream->context, CUDA_ERROR_INVALID_CONTEXT);
    ++state().uses["cuGraphLaunch"];
    std::vector<Work> work;
    append(exec->graph, work);
    for (Work& one : work) state().submit(stream->stream, std::move(one));
  });
}

LTC_EMULATED cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode) {
  return answer([&] {
    check_context(*stream->stream->context);
    require(!stream->stream->capture, CUDA_ERROR_ILLEGAL_STATE);
    stream->stream->capture = new CUgraph_st;
  });
}
LTC_EMULATED cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  return answer([&] {
    require(stream->stream->capture != nullptr, CUDA_ERROR_ILLEGAL_STATE);
    *graph = std::exchange(stream->stream->capture, nullptr);
  });
}

}  // namespace ltc::emulator
