// What the parts of a step cost, without PyTorch: recording an op, the barrier, finding a program, the way through the C ABI, an
// event, a transfer. The plugin is LTC_BACKEND's (default: minimal).
#include <benchmark/benchmark.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <vector>

#include "core/host/registry.h"
#include "core/ir/op.h"
#include "core/run/lazy_device.h"

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

// A marker in the queue's order, asked for and waited on: an event of the device where that is asynchronous.
void event(benchmark::State& state) {
  Chain chain;
  for (auto _ : state) chain.device().queue().mark()->wait();
}
BENCHMARK(event)->UseRealTime();

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
