// Sources through the real compiler: what is compiled runs, what was compiled is found again, what cannot be compiled is said.
#include "host_kernels.h"

#include <gtest/gtest.h>

#include <map>
#include <thread>
#include <vector>

#include "abi/failure.h"

namespace ltc::host_compiler {
namespace {

const std::string kDoubles = R"(
extern "C" void ltc_kernel_0(void* const* args, long begin, long end) {
  float* x = (float*)args[0];
  for (long i = begin; i < end; ++i) x[i] *= 2;
}
)";

// A host that keeps what plugins give it, and their errors.
struct Host {
  std::mutex mutex;
  std::map<std::string, std::string> cache;
  std::vector<std::string> errors;
  int found = 0;
  ltc_host_api api{};

  Host() {
    api.struct_size = sizeof api;
    api.host = this;
    api.log = [](void* host, int32_t level, const char* message, size_t size) {
      Host& self = *static_cast<Host*>(host);
      const std::lock_guard lock(self.mutex);
      if (level >= LTC_LOG_ERROR) self.errors.emplace_back(message, size);
    };
    api.cache_find = [](void* host, ltc_string key, const ltc_sink* value) {
      Host& self = *static_cast<Host*>(host);
      const std::lock_guard lock(self.mutex);
      const auto entry = self.cache.find(std::string(key.data, key.size));
      if (entry == self.cache.end()) return false;
      ++self.found;
      return value->write(value->context, entry->second.data(), entry->second.size());
    };
    api.cache_insert = [](void* host, ltc_string key, ltc_string, ltc_string value) {
      Host& self = *static_cast<Host*>(host);
      const std::lock_guard lock(self.mutex);
      self.cache[std::string(key.data, key.size)] = std::string(value.data, value.size);
    };
  }
};

std::vector<float> run(const HostKernel& kernel) {
  std::vector<float> x{1, 2, 3};
  void* const args[] = {x.data()};
  kernel.function()(args, 1, 3);
  return x;
}

TEST(HostKernels, a_kernel_is_compiled_and_runs) {
  Host host;
  HostKernels kernels(&host.api, "native", When::kWait);
  const auto kernel = kernels.kernel(kDoubles);
  EXPECT_EQ(kernel->function(), nullptr);  // nobody asked yet
  kernels.request(kernel);
  ASSERT_NE(kernel->function(), nullptr);
  EXPECT_EQ(run(*kernel), (std::vector<float>{1, 4, 6}));
  EXPECT_EQ(kernels.kernel(kDoubles), kernel);
}

TEST(HostKernels, nobody_waits_in_the_background) {
  Host host;
  HostKernels kernels(&host.api, "native", When::kBackground);
  const auto kernel = kernels.kernel(kDoubles);
  kernels.request(kernel);
  while (!kernel->function()) std::this_thread::yield();  // the test's time limit ends it
  EXPECT_EQ(run(*kernel), (std::vector<float>{1, 4, 6}));
}

TEST(HostKernels, never_means_never) {
  Host host;
  HostKernels kernels(&host.api, "native", When::kNever);
  const auto kernel = kernels.kernel(kDoubles);
  kernels.request(kernel);
  EXPECT_EQ(kernel->function(), nullptr);
}

TEST(HostKernels, objects_are_kept_by_source_and_machine) {
  Host host;
  for (const char* cpu : {"native", "native", "x86-64"}) {
    HostKernels kernels(&host.api, cpu, When::kWait);
    const auto kernel = kernels.kernel(kDoubles);
    kernels.request(kernel);
    EXPECT_EQ(run(*kernel), (std::vector<float>{1, 4, 6}));
  }
  EXPECT_EQ(host.cache.size(), 2u);
  EXPECT_EQ(host.found, 1);
}

// An object that was kept is not one: another LLVM's, perhaps.
TEST(HostKernels, a_foreign_object_is_an_error_and_no_crash) {
  Host host;
  const auto request = [&] {
    HostKernels kernels(&host.api, "native", When::kWait);
    kernels.request(kernels.kernel(kDoubles));
  };
  request();
  for (auto& [key, value] : host.cache) value = "no object";
  EXPECT_THROW(request(), abi::Failure);
}

TEST(HostKernels, what_does_not_compile_is_said_with_the_line) {
  Host host;
  HostKernels kernels(&host.api, "native", When::kWait);
  const auto kernel = kernels.kernel("extern \"C\" void ltc_kernel_0(void* const*, long, long) { no_such_thing(); }");
  EXPECT_THROW(kernels.request(kernel), abi::Failure);
  EXPECT_EQ(kernel->function(), nullptr);
  ASSERT_EQ(host.errors.size(), 1u);
  EXPECT_NE(host.errors[0].find("no_such_thing"), std::string::npos) << host.errors[0];
  const auto next = kernels.kernel(kDoubles);
  kernels.request(next);
  EXPECT_NE(next->function(), nullptr);
}

TEST(HostKernels, many_threads_ask_for_many_kernels) {
  Host host;
  HostKernels kernels(&host.api, "native", When::kWait);
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 5; ++i) {
        const auto kernel = kernels.kernel("// " + std::to_string(i) + kDoubles);
        kernels.request(kernel);
        right += run(*kernel) == std::vector<float>{1, 4, 6};
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 20);
}

}  // namespace
}  // namespace ltc::host_compiler
