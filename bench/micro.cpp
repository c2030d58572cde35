// The costs of the parts of a step, without PyTorch: recording an op, the barrier, finding a program, the way through the C ABI,
// an event, a transfer. The plugin is LTC_BACKEND's (default: minimal).
#include <benchmark/benchmark.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "core/compile/lowering/abi_graph.h"
#include "core/host/registry.h"
#include "core/host/sized.h"
#include "core/ir/op.h"
#include "core/ir/text.h"
#include "core/run/device/lazy_device.h"
#include "core/run/device/recorder.h"

namespace ltc {
namespace {

constexpr int kOpsPerStep = 200;

// A device with one value, and a chain of ops on it.
class Chain {
 public:
  explicit Chain(int64_t elements = 16)
      : device_(0, host::Registry::instance().open(0)),
        neg_(intern_op("aten::neg")),
        type_(intern_contiguous(DType::kF32, std::array{elements})) {
    BufferRef buffer = device_.queue().upload(zeros());
    Recorder(device_).bind(x_, std::move(buffer), type_);
  }

  void record(int ops) {
    for (int i = 0; i < ops; ++i) {
      Recorder recorder(device_);
      const std::array inputs = {recorder.read(x_)};
      recorder.bind(x_, recorder.node(neg_, type_, kNoAttrs, inputs), type_);
    }
  }
  void sync() { device_.sync(metrics::kMarkStep); }
  void wait() { device_.wait(); }
  HostValue zeros() const { return allocate_host_value(type_); }
  LazyDevice& device() { return device_; }
  BufferRef value() { return device_.computed(x_, metrics::kReadBarrier); }

 private:
  LazyDevice device_;
  LazyStorage x_{device_};
  const OpId neg_;
  const TypeId type_;
};

void record(benchmark::State& state) {
  Chain chain;
  for (auto _ : state) {
    chain.record(kOpsPerStep);
    state.PauseTiming();
    chain.sync();
    chain.wait();
    state.ResumeTiming();
  }
  state.SetItemsProcessed(state.iterations() * kOpsPerStep);
}
BENCHMARK(record);

// Cutting the trace, comparing it with the step that is expected and binding its buffers; then the run is queued.
void barrier(benchmark::State& state) {
  Chain chain;
  const int ops = static_cast<int>(state.range(0));
  for (auto _ : state) {
    state.PauseTiming();
    chain.record(ops);
    state.ResumeTiming();
    chain.sync();
    state.PauseTiming();
    chain.wait();
    state.ResumeTiming();
  }
  state.SetItemsProcessed(state.iterations() * ops);
}
BENCHMARK(barrier)->Arg(1)->Arg(20)->Arg(200)->Arg(2000);

// Two steps in turns: the expected one never is the next, so that the cache is asked.
void cache_hit(benchmark::State& state) {
  Chain chain;
  int ops = kOpsPerStep;
  for (auto _ : state) {
    state.PauseTiming();
    chain.record(ops ^= 1);
    state.ResumeTiming();
    chain.sync();
    state.PauseTiming();
    chain.wait();
    state.ResumeTiming();
  }
}
BENCHMARK(cache_hit);

// A step of one op from its recording to its end: two threads, or one where the step is short.
void step_of_one_op(benchmark::State& state) {
  Chain chain;
  for (auto _ : state) {
    chain.record(1);
    chain.sync();
    chain.wait();
  }
}
BENCHMARK(step_of_one_op)->UseRealTime();

// A fence in the queue's order, asked for and waited on: an event of the device where that is asynchronous.
void event(benchmark::State& state) {
  Chain chain;
  for (auto _ : state) chain.device().queue().add_fence()->wait();
}
BENCHMARK(event)->UseRealTime();

// A program of kernels that no plugin fuses, at the C ABI: execute, and with `state.range(0)` until it is done. The CPU column is
// this thread's time alone.
void launches(benchmark::State& state) {
  constexpr int kKernels = 50;
  std::string text = "graph(%0: f32[64,16]) {\n";
  for (int i = 0; i < kKernels; ++i) {
    text += "%" + std::to_string(i + 1) + ": f32[64,16] = aten::cumsum(%" + std::to_string(i) + ") {dim=1,dtype=f32}\n";
  }
  const Graph graph = parse(text + "return %" + std::to_string(kKernels) + " }");
  const auto device = host::Registry::instance().open(0);
  ltc_program* program = device->lower(*AbiGraph(graph).get());
  ltc_executable* executable = device->compile(program, 1);
  const std::array<int64_t, 2> sizes = {64, 16};
  auto type = host::sized<ltc_type>();
  type.dtype = LTC_F32;
  type.rank = sizes.size();
  type.sizes = sizes.data();
  ltc_buffer* input = device->create_buffer(type);
  const auto run = [&] {
    auto args = host::sized<ltc_execute_args>();
    args.executable = executable;
    args.input_count = 1;
    args.inputs = &input;
    args.output_count = 1;
    ltc_buffer* output = nullptr;
    ltc_event* event = device->execute(args, &output);
    return std::pair(event, output);
  };
  const auto finish = [&](std::pair<ltc_event*, ltc_buffer*> started) {
    if (started.first) device->wait(started.first);
    if (started.first) device->destroy_event(started.first);
    device->destroy_buffer(started.second);
  };
  finish(run());
  for (auto _ : state) {
    const auto started = run();
    if (!state.range(0)) state.PauseTiming();
    finish(started);
    if (!state.range(0)) state.ResumeTiming();
  }
  state.counters["per_kernel"] =
      benchmark::Counter(kKernels, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
  device->destroy_buffer(input);
  device->destroy_executable(executable);
  device->destroy_program(program);
}
BENCHMARK(launches)->ArgName("wait")->Arg(0)->Arg(1);

void to_device(benchmark::State& state) {
  Chain chain(state.range(0));
  for (auto _ : state) {
    const BufferRef buffer = chain.device().queue().upload(chain.zeros());
    chain.wait();
    benchmark::DoNotOptimize(buffer.get());
  }
  state.SetBytesProcessed(state.iterations() * state.range(0) * 4);
}
BENCHMARK(to_device)->Arg(16)->Arg(1 << 20)->UseRealTime();

void from_device(benchmark::State& state) {
  Chain chain(state.range(0));
  const BufferRef buffer = chain.value();
  const HostValue to = chain.zeros();
  for (auto _ : state) chain.device().queue().download(buffer, to.data.get());
  state.SetBytesProcessed(state.iterations() * state.range(0) * 4);
}
BENCHMARK(from_device)->Arg(16)->Arg(1 << 20)->UseRealTime();

}  // namespace
}  // namespace ltc

int main(int argc, char** argv) {
  setenv("LTC_BACKEND", "minimal", 0);
  setenv("LTC_CACHE", "0", 0);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
}
