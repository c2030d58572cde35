#include "cuda/emulator/state.h"

#include <algorithm>
#include <cstring>

namespace ltc::emulator {
// NVRTC has no architecture 9.9, so that the plugin gives PTX of the one before.
State::State()
    : contexts(environment_number("CUDA_EMULATOR_DEVICES", 1)),
      capability(static_cast<int>(environment_number("CUDA_EMULATOR_CAPABILITY", 99))) {
  for (size_t i = 0; i < contexts.size(); ++i) contexts[i].device = static_cast<int>(i);
}

State& state() {
  static State* const made = new State;  // other libraries may call when the process ends
  return *made;
}

namespace {

void count_launch(CUctx_st& context) {
  Loss& loss = context.loss;
  if (loss.error == CUDA_SUCCESS || loss.launches-- > 0) return;
  loss.has_happened = true;
  throw Fault{loss.error, "device " + std::to_string(context.device) + " is lost"};
}

}  // namespace

void check_context(const CUctx_st& context) {
  if (context.error != CUDA_SUCCESS) throw Fault{context.error, {}};
}

void State::add(const StreamRef& stream) {
  std::erase_if(streams, [](const std::weak_ptr<Stream>& known) { return known.expired(); });
  streams.push_back(stream);
}

void State::submit(const StreamRef& stream, Work work) {
  check_context(*stream->context);
  if (stream->capture) {
    std::vector<std::unique_ptr<CUgraphNode_st>>& nodes = stream->capture->nodes;
    auto node = std::make_unique<CUgraphNode_st>();
    if (!nodes.empty()) node->after.push_back(nodes.back().get());
    node->work = std::move(work);
    nodes.push_back(std::move(node));
    return;
  }
  stream->queue.push_back(std::move(work));
  ++stream->submitted;
  if (order.is_random() && order.random() % 4 == 0) run_something();
}

// Where the order is random, streams go on now and then without anybody who waits.
void State::run_something() {
  const StreamRef stream = streams.empty() ? nullptr : streams[order.random() % streams.size()].lock();
  if (stream && stream->done < stream->submitted) run(*stream, stream->done + 1);
}

void State::run(Stream& stream, uint64_t until) {
  while (stream.done < std::min(until, stream.submitted)) run_one(stream);
}

// After an error nothing runs any more.
void State::run_one(Stream& stream) {
  const Work work = std::move(stream.queue.front());
  stream.queue.pop_front();
  ++stream.done;
  if (stream.context->error != CUDA_SUCCESS) return;
  try {
    work();
  } catch (const Fault& fault) {
    std::fprintf(stderr, "emulator: %s\n", fault.text.c_str());
    stream.context->error = fault.code;
  }
}

void State::run_kernel(const KernelCall& call) {
  count_launch(*call.function->module->context);
  Launch launch;
  launch.module = call.function->module->module.get();
  launch.kernel = call.function->function;
  launch.grid = call.grid;
  launch.block = call.block;
  launch.params = call.params;
  launch.dynamic_shared_bytes = call.shared_bytes;
  launch.device = call.function->module->context->device;
  launch.memory = &memory;
  launch.shadow = &shadow;
  launch.order = &order;
  launch.run(segments);
}

bool State::is_pinned(const void* memory, uint64_t bytes) const {
  const auto address = reinterpret_cast<uint64_t>(memory);
  const auto after = pinned.upper_bound(address);
  return after != pinned.begin() && address + bytes <= std::prev(after)->first + std::prev(after)->second;
}

KernelCall kernel_call(CUfunction function, Dimensions grid, Dimensions block, uint32_t shared_bytes, void** params) {
  require(function != nullptr, CUDA_ERROR_INVALID_HANDLE);
  const Function& kernel = *function->function;
  require(grid.count() > 0 && block.count() > 0 && block.count() <= kernel.most_threads);
  require(grid.x <= INT32_MAX && grid.y <= UINT16_MAX && grid.z <= UINT16_MAX && block.z <= 64);
  require(function->module->module->shared_bytes + shared_bytes <= kMostSharedBytes);
  KernelCall call{function, grid, block, shared_bytes, {}};
  for (size_t i = 0; i < kernel.params.size(); ++i) {
    const Param& param = kernel.params[i];
    call.params.resize(std::max<size_t>(call.params.size(), param.offset + param.bytes));
    std::memcpy(call.params.data() + param.offset, params[i], param.bytes);
  }
  return call;
}

}  // namespace ltc::emulator
