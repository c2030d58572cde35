// A step that is found in the cache allocates a bounded number of times, whatever its length: what it returns, and nothing per
// op.
#include <array>
#include <atomic>
#include <cstdlib>
#include <new>

#include "core/run/testing/test_support.h"

namespace {
std::atomic<long> g_allocations = 0;
}

// Not inlined: GCC 12 would take malloc() and free() for what is called, and warn of mixing them with new and delete.
[[gnu::noinline]] void* operator new(size_t size) {
  ++g_allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace ltc {
namespace {

using namespace ltc::testing;  // NOLINT: the helpers of test_support.h

class AllocationsTest : public RunTest {
  const Unvalidated alone_;
};

// Allocations of a step of that many ops in the steady state, the device idle before and after.
long allocations_of_step(LazyDevice& device, LazyStorage& x, int ops) {
  const OpId neg = intern_op("aten::neg");
  const auto step = [&] {
    for (int i = 0; i < ops; ++i) {
      Recorder recorder(device);
      const std::array inputs = {recorder.read(x)};
      recorder.bind(x, recorder.node(neg, recorder.type(x), kNoAttrs, inputs), recorder.type(x));
    }
    device.sync(metrics::kMarkStep);
    device.wait();
  };
  for (int i = 0; i < 10; ++i) step();
  constexpr int kSteps = 50;
  const long before = g_allocations;
  for (int i = 0; i < kSteps; ++i) step();
  return (g_allocations - before) / kSteps;
}

TEST_F(AllocationsTest, DoNotGrowWithTheStep) {
  LazyDevice device(0, open_device("test"));
  LazyStorage x(device);
  BufferRef buffer = device.queue().upload(host_value({1, 2}));
  const TypeId type = buffer->type;
  Recorder(device).bind(x, std::move(buffer), type);
  const long of_few = allocations_of_step(device, x, 2);
  EXPECT_EQ(allocations_of_step(device, x, 200), of_few);
  EXPECT_LE(of_few, 16);  // a run's buffers, events and task, the plugin's share included
}

}  // namespace
}  // namespace ltc
