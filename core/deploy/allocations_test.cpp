// Calls of a function allocate nothing in the steady state: neither in the runtime nor in the host below it. Memory that the
// plugin allocates for its buffers is its own, and counted apart.
#include <dlfcn.h>
#include <execinfo.h>
#include <gmock/gmock.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <new>
#include <optional>

#include "core/deploy/testing/sample_archive.h"
#include "ltc/runtime.hpp"

namespace {

std::atomic<long> g_allocations = 0, g_of_plugin = 0;
std::atomic<bool> g_counts = false;
thread_local bool g_is_counting = false;

// Whether a function of the plugin is being called.
bool is_in_plugin() {
  std::array<void*, 64> frames{};
  const int count = backtrace(frames.data(), frames.size());
  for (int i = 0; i < count; ++i) {
    Dl_info info{};
    if (dladdr(frames[static_cast<size_t>(i)], &info) &&
        std::string_view(info.dli_fname).find("libltc_minimal") != std::string::npos)
      return true;
  }
  return false;
}

void count_allocation() {
  if (!g_counts || g_is_counting) return;
  g_is_counting = true;
  ++(is_in_plugin() ? g_of_plugin : g_allocations);
  g_is_counting = false;
}

}  // namespace

// Not inlined: GCC 12 would take malloc() and free() for what is called, and warn of mixing them with new and delete.
[[gnu::noinline]] void* operator new(size_t size) {
  count_allocation();
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace ltc::runtime {
namespace {

// With the layer that checks each call of the plugin it would be the layer that allocates.
const bool g_alone = setenv("LTC_VALIDATE", "0", 1) == 0;

// An archive as a file, loaded, and a session.
class Allocations : public ::testing::Test {
 protected:
  void load(const deploy::testing::Entries& entries) {
    ASSERT_TRUE(g_alone);
    is_in_plugin();  // the first backtrace loads a library
    std::ofstream(path_, std::ios::binary) << entries.bytes();
    g_allocations = 0, g_counts = true;
    model_.emplace(path_, LTC_TEST_PLUGIN);
    g_counts = false;
    EXPECT_GT(g_allocations, 100);  // those of the runtime's library are seen
    session_.emplace(*model_);
  }
  void TearDown() override { std::filesystem::remove(path_); }

  // Allocations of 100 calls, after some that make what is kept.
  static long count(const std::function<void()>& call) {
    for (int i = 0; i < 10; ++i) call();
    g_allocations = 0, g_counts = true;
    for (int i = 0; i < 100; ++i) call();
    g_counts = false;
    return g_allocations;
  }
  void run(const ltcr_tensor& input, const ltcr_tensor& result) {
    check(ltcr_session_run(session_->get(), 0, &input, 1, &result, 1));
  }

  const std::string path_ = std::filesystem::temp_directory_path() / ("ltc_allocations_" + std::to_string(getpid()) + ".ltc");
  std::optional<Model> model_;
  std::optional<Session> session_;
};

TEST_F(Allocations, OfCallsInTheSteadyState) {
  load(deploy::testing::Entries());
  std::array<float, 6> x{}, doubled{}, sum{};
  const ltcr_tensor input = tensor(model_->input(0, 0), x.data()), result = tensor(model_->result(0, 0), doubled.data());
  EXPECT_EQ(count([&] { run(input, result); }), 0);
  session_->get_state(0, tensor(model_->state_info(0), sum.data()));
  EXPECT_EQ(sum[0], 1);
  EXPECT_EQ(doubled[0], 2);  // it did run
}

TEST_F(Allocations, OfCallsOfSizesThatWereThere) {
  load(deploy::testing::sized_entries());
  const std::vector<float> x(7 * 3, 1.0f);
  std::vector<float> scaled(x.size());
  constexpr int64_t kSizes[][2] = {{2, 3}, {5, 3}, {7, 3}};
  size_t calls = 0;
  const auto call = [&] {
    const auto& sizes = kSizes[calls++ % std::size(kSizes)];
    const size_t bytes = static_cast<size_t>(sizes[0] * sizes[1]) * sizeof(float);
    run({LTC_F32, 2, sizes, const_cast<float*>(x.data()), bytes}, {LTC_F32, 2, sizes, scaled.data(), bytes});
    if (scaled[0] != static_cast<float>(sizes[0])) throw std::runtime_error("another result");
  };
  EXPECT_EQ(count(call), 0);
}

}  // namespace
}  // namespace ltc::runtime
