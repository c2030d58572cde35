#include "cuda/loaded_plan.h"

#include <algorithm>
#include <cstring>

namespace ltc::cuda {
namespace {

using device::Launch;

// Graphs kept per executable and part of its runs. Where inputs are donated, outputs take the blocks of the inputs before them,
// so that a training step meets the same few sets of addresses again and again.
constexpr size_t kMostGraphs = 4;
// Fewer launches are as quick one by one.
constexpr size_t kFewestLaunches = 3;
// Two operands, a result, and what an epilogue has besides.
constexpr size_t kMostLibraryBuffers = 6;

CUdeviceptr address(device::Memory memory) { return reinterpret_cast<CUdeviceptr>(memory); }

// The bits of a scalar param as the kernel takes it.
uint64_t scalar_bits(ltc_dtype dtype, const ltc_scalar& scalar) {
  uint64_t bits = 0;
  const auto f32 = static_cast<float>(scalar.f);
  switch (dtype) {
    case LTC_F32: std::memcpy(&bits, &f32, sizeof f32); return bits;
    case LTC_BOOL: return scalar.i != 0;
    default: return scalar.u;
  }
}

}  // namespace

Arguments::Arguments(const Launch& launch) {
  values_.resize(launch.buffers.size() + launch.scalars.size());
  for (const int64_t integer : launch.integers) {
    uint64_t bits = 0;
    const auto narrow = static_cast<int32_t>(integer);
    launch.long_index ? std::memcpy(&bits, &integer, sizeof integer) : std::memcpy(&bits, &narrow, sizeof narrow);
    values_.push_back(bits);
  }
  for (uint64_t& value : values_) pointers_.push_back(&value);
}

void Arguments::set_buffers(const Launch& launch, const device::Run& run) {
  for (size_t i = 0; i < launch.buffers.size(); ++i) values_[i] = address(run.at(launch.buffers[i]));
}

bool Arguments::set_scalars(const Launch& launch, const device::Run& run) {
  bool changed = false;
  for (size_t i = 0; i < launch.scalars.size(); ++i) {
    const uint64_t bits = scalar_bits(launch.scalars[i].dtype, run.scalar(launch, launch.scalars[i]));
    changed |= std::exchange(values_[launch.buffers.size() + i], bits) != bits;
  }
  return changed;
}

LoadedPlan::LoadedPlan(Driver& driver, std::shared_ptr<const device::CompiledPlan> compiled_plan,
                       std::span<const std::string> binaries)
    : driver_(driver),
      compiled_plan_(std::move(compiled_plan)),
      most_graphs_(compiled_plan_->checks.empty() ? kMostGraphs : 2 * kMostGraphs) {
  for (size_t i = 0; i < compiled_plan_->sources.size(); ++i) {
    modules_.push_back(driver_.module(compiled_plan_->sources[i], binaries.empty() ? "" : binaries[i]));
  }
  for (const device::LibraryWork& work : compiled_plan_->library) {
    calls_.push_back(driver_.library_call(work));
    const auto* collective = std::get_if<kernels::Collective>(&work);
    if (collective && std::ranges::find(members_of_, collective->group) == members_of_.end())
      members_of_.push_back(collective->group);
  }
  for (const Launch& launch : compiled_plan_->launches) arguments_.emplace_back(launch);
}

LoadedPlan::~LoadedPlan() {
  const Current current(driver_.api(), driver_.queue().context, std::nothrow);
  for (const ExecGraph& graph : graphs_) driver_.retire(graph.executable);
}

std::vector<std::string> LoadedPlan::binaries() const {
  std::vector<std::string> binaries;
  for (const ModuleRef& module : modules_) binaries.push_back(module->binary);
  return binaries;
}

device::EventRef LoadedPlan::submit(const device::Run& run) {
  const Current current(driver_.api(), driver_.queue().context);
  if (ExecGraph* graph = graph_for(run)) {
    launch_graph(*graph, run);
  } else {
    launch_each(run);
  }
  if (run.fault_word) driver_.copy_to_host(run.fault_word, run.faults, 0, sizeof *run.fault_word);
  const size_t end = end_of(run), count = end - std::min(run.begin, end);
  return recorded("run " + std::to_string(run.id) + " (" + std::to_string(count) + " launches" +
                  (count == 0 ? "" : ", the last " + compiled_plan_->launches[end - 1].label) + ")");
}

// An event of the whole run, with the errors of its collectives.
device::EventRef LoadedPlan::recorded(std::string what) {
  device::EventRef event = driver_.record(std::move(what));
  std::vector<std::shared_ptr<Communicator>> groups;
  for (const int64_t number : members_of_) {
    if (auto group = driver_.communicators().find(number)) groups.push_back(std::move(group));
  }
  return groups.empty() ? event : std::make_shared<CollectiveEvent>(std::move(event), std::move(groups));
}

// ---- one by one

void LoadedPlan::launch_each(const device::Run& run) {
  for (size_t i = run.begin; i < end_of(run); ++i) launch(i, run);
}

void LoadedPlan::launch(size_t i, const device::Run& run) {
  const Launch& launch = compiled_plan_->launches[i];
  const DriverApi& api = driver_.api();
  CUresult result = CUDA_SUCCESS;
  if (launch.library != LTC_NONE) {
    result = launch_library_now(i, run);
  } else {
    Arguments& arguments = arguments_[i];
    arguments.set_buffers(launch, run);
    arguments.set_scalars(launch, run);
    result = api.cuLaunchKernel(modules_[launch.source]->kernel, blocks(launch), 1, 1, static_cast<uint32_t>(launch.local_size),
                                1, 1, 0, driver_.queue().stream, arguments.pointers(), nullptr);
  }
  if (result == CUDA_SUCCESS) return;
  throw Failure(code_of(result),
                "launch " + std::to_string(i) + " of run " + std::to_string(run.id) + ", " + launch.label +
                    (driver_.blocks_launches() ? ", failed: " : ", or work before it failed: ") + api.error_text(result),
                launch.node);
}

// Libraries do not tell an error of the device, which is sticky, from their own.
CUresult LoadedPlan::launch_library_now(size_t i, const device::Run& run) const {
  const DriverApi& api = driver_.api();
  const CUstream stream = driver_.queue().stream;
  try {
    launch_library(i, run, stream);
  } catch (const Failure&) {
    const CUresult result = api.cuStreamSynchronize(stream);
    if (result == CUDA_SUCCESS) throw;
    return result;
  }
  return driver_.blocks_launches() ? api.cuStreamSynchronize(stream) : CUDA_SUCCESS;
}

uint32_t LoadedPlan::blocks(const Launch& launch) const {
  const uint64_t blocks = (static_cast<uint64_t>(launch.integers[0]) + launch.local_size - 1) / launch.local_size;
  if (blocks <= INT32_MAX) return static_cast<uint32_t>(blocks);
  throw Failure(LTC_UNSUPPORTED, launch.label + " has " + std::to_string(launch.integers[0]) + " work items, more than a launch",
                launch.node);
}

void LoadedPlan::launch_library(size_t i, const device::Run& run, CUstream stream) const {
  const Launch& launch = compiled_plan_->launches[i];
  CUdeviceptr buffers[kMostLibraryBuffers];
  std::ranges::transform(launch.buffers, buffers, [&](const device::Binding& binding) { return address(run.at(binding)); });
  calls_[launch.library]->launch({buffers, launch.buffers.size()}, stream);
}

// ---- as a graph

LoadedPlan::ExecGraph* LoadedPlan::graph_for(const device::Run& run) {
  Part part{run.begin, end_of(run), {}};
  if (part.begin + kFewestLaunches > part.end || driver_.blocks_launches() || !members_of_.empty()) return nullptr;
  part.memory.reserve(run.inputs.size() + run.outputs.size() + run.slots.size());
  for (const auto& memory : {run.inputs, run.outputs, run.slots}) {
    part.memory.insert(part.memory.end(), memory.begin(), memory.end());
  }
  const auto known = std::ranges::find(graphs_, part, &ExecGraph::part);
  if (known != graphs_.end()) {
    graphs_.splice(graphs_.begin(), graphs_, known);
    return &graphs_.front();
  }
  const auto again = std::ranges::find(seen_, part);
  if (again == seen_.end()) {
    seen_.push_front(std::move(part));
    if (seen_.size() > most_graphs_) seen_.pop_back();
    return nullptr;
  }
  make_graph(std::move(part), run);
  seen_.erase(again);
  return &graphs_.front();
}

// A chain: each launch after the one before, as in the stream.
void LoadedPlan::make_graph(Part part, const device::Run& run) {
  const DriverApi& api = driver_.api();
  CUgraph chain = nullptr;
  api.check(api.cuGraphCreate(&chain, 0), "cuGraphCreate");
  ExecGraph made{std::move(part), Graph(chain, api.cuGraphDestroy), nullptr, {}, {}};
  CUgraphNode last = nullptr;
  for (size_t i = made.part.begin; i < made.part.end; ++i) {
    const Launch& launch = compiled_plan_->launches[i];
    Arguments& arguments = made.arguments.emplace_back(launch);
    if (launch.library != LTC_NONE) {
      last = add_library(chain, last ? &last : nullptr, i, run);
      made.nodes.push_back(nullptr);
    } else {
      arguments.set_buffers(launch, run);
      arguments.set_scalars(launch, run);
      last = add_kernel(chain, last ? &last : nullptr, i, arguments);
      made.nodes.push_back(last);
    }
  }
  api.check(api.cuGraphInstantiateWithFlags(&made.executable, chain, 0), "cuGraphInstantiate");
  graphs_.push_front(std::move(made));
  if (graphs_.size() <= most_graphs_) return;
  driver_.retire(graphs_.back().executable);
  graphs_.pop_back();
}

CUDA_KERNEL_NODE_PARAMS LoadedPlan::node_params(size_t i, Arguments& arguments) const {
  const Launch& launch = compiled_plan_->launches[i];
  CUDA_KERNEL_NODE_PARAMS params{};
  params.func = modules_[launch.source]->kernel;
  params.gridDimX = blocks(launch);
  params.blockDimX = static_cast<uint32_t>(launch.local_size);
  params.gridDimY = params.gridDimZ = params.blockDimY = params.blockDimZ = 1;
  params.kernelParams = arguments.pointers();
  return params;
}

CUgraphNode LoadedPlan::add_kernel(CUgraph graph, const CUgraphNode* after, size_t i, Arguments& arguments) const {
  const CUDA_KERNEL_NODE_PARAMS params = node_params(i, arguments);
  CUgraphNode node = nullptr;
  driver_.api().check(driver_.api().cuGraphAddKernelNode_v2(&node, graph, after, after ? 1 : 0, &params), "cuGraphAddKernelNode");
  return node;
}

// The library's own launches are only known by capturing them.
CUgraphNode LoadedPlan::add_library(CUgraph graph, const CUgraphNode* after, size_t i, const device::Run& run) const {
  const DriverApi& api = driver_.api();
  const CUstream stream = driver_.queue().capture_stream;
  api.check(api.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED), "cuStreamBeginCapture");
  CUgraph captured = nullptr;
  try {
    launch_library(i, run, stream);
  } catch (...) {
    api.cuStreamEndCapture(stream, &captured);
    if (captured) api.cuGraphDestroy(captured);
    throw;
  }
  api.check(api.cuStreamEndCapture(stream, &captured), "cuStreamEndCapture");
  const Graph owned(captured, api.cuGraphDestroy);
  CUgraphNode node = nullptr;
  api.check(api.cuGraphAddChildGraphNode(&node, graph, after, after ? 1 : 0, captured), "cuGraphAddChildGraphNode");
  return node;
}

// Memory is what the graph was made for; scalars change from run to run.
void LoadedPlan::launch_graph(ExecGraph& graph, const device::Run& run) {
  const DriverApi& api = driver_.api();
  for (size_t k = 0; k < graph.arguments.size(); ++k) {
    const size_t i = graph.part.begin + k;
    const Launch& launch = compiled_plan_->launches[i];
    if (launch.scalars.empty() || !graph.arguments[k].set_scalars(launch, run)) continue;
    const CUDA_KERNEL_NODE_PARAMS params = node_params(i, graph.arguments[k]);
    api.check(api.cuGraphExecKernelNodeSetParams_v2(graph.executable, graph.nodes[k], &params), "cuGraphExecKernelNodeSetParams");
  }
  api.check(api.cuGraphLaunch(graph.executable, driver_.queue().stream), "cuGraphLaunch");
}

}  // namespace ltc::cuda
