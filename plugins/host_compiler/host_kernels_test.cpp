// Sources through the real compiler: what is compiled runs, what was compiled is found again, what cannot be compiled is said.
#include "host_compiler/host_kernels.h"

#include <gtest/gtest.h>

#include <map>
#include <thread>
#include <vector>

#include "core/testing/refused_threads.h"
#include "ltc/plugin.hpp"

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
    api.cache_find = [](void* host, const ltc_string* key, const ltc_sink* value) {
      Host& self = *static_cast<Host*>(host);
      const std::lock_guard lock(self.mutex);
      const auto entry = self.cache.find(std::string(key->data, key->size));
      if (entry == self.cache.end()) return false;
      ++self.found;
      return value->write(value->context, entry->second.data(), entry->second.size());
    };
    api.cache_insert = [](void* host, const ltc_string* key, const ltc_string*, const ltc_string* value) {
      Host& self = *static_cast<Host*>(host);
      const std::lock_guard lock(self.mutex);
      self.cache[std::string(key->data, key->size)] = std::string(value->data, value->size);
    };
  }
};

std::vector<float> run(const HostModule& module) {
  std::vector<float> x{1, 2, 3};
  void* const args[] = {x.data()};
  module.function(0)(args, 1, 3);
  return x;
}

void request(HostKernels& kernels, const std::shared_ptr<HostModule>& module) { kernels.request({&module, 1}); }

TEST(HostKernels, a_kernel_is_compiled_and_runs) {
  Host host;
  HostKernels kernels(&host.api, "native", CompileMode::kSync);
  const auto module = kernels.module(kDoubles, 1);
  EXPECT_EQ(module->function(0), nullptr);  // nobody asked yet
  request(kernels, module);
  ASSERT_NE(module->function(0), nullptr);
  EXPECT_EQ(run(*module), (std::vector<float>{1, 4, 6}));
  EXPECT_EQ(kernels.module(kDoubles, 1), module);
}

TEST(HostKernels, nobody_waits_in_the_background) {
  Host host;
  HostKernels kernels(&host.api, "native", CompileMode::kAsync);
  const auto module = kernels.module(kDoubles, 1);
  request(kernels, module);
  while (!module->function(0)) std::this_thread::yield();  // the test's time limit ends it
  EXPECT_EQ(run(*module), (std::vector<float>{1, 4, 6}));
}

TEST(HostKernels, never_means_never) {
  Host host;
  HostKernels kernels(&host.api, "native", CompileMode::kOff);
  const auto module = kernels.module(kDoubles, 1);
  request(kernels, module);
  EXPECT_EQ(module->function(0), nullptr);
}

TEST(HostKernels, objects_are_kept_by_source_and_machine) {
  Host host;
  for (const char* cpu : {"native", "native", "x86-64"}) {
    HostKernels kernels(&host.api, cpu, CompileMode::kSync);
    const auto module = kernels.module(kDoubles, 1);
    request(kernels, module);
    EXPECT_EQ(run(*module), (std::vector<float>{1, 4, 6}));
  }
  EXPECT_EQ(host.cache.size(), 2u);
  EXPECT_EQ(host.found, 1);
}

// An object that was kept is not one: another LLVM's, perhaps.
TEST(HostKernels, a_foreign_object_is_an_error_and_no_crash) {
  Host host;
  const auto run = [&] {
    HostKernels kernels(&host.api, "native", CompileMode::kSync);
    request(kernels, kernels.module(kDoubles, 1));
  };
  run();
  for (auto& [key, value] : host.cache) value = "no object";
  EXPECT_THROW(run(), plugin::Failure);
}

TEST(HostKernels, what_does_not_compile_is_said_with_the_line) {
  Host host;
  HostKernels kernels(&host.api, "native", CompileMode::kSync);
  const auto module = kernels.module("extern \"C\" void ltc_kernel_0(void* const*, long, long) { no_such_thing(); }", 1);
  EXPECT_THROW(request(kernels, module), plugin::Failure);
  EXPECT_EQ(module->function(0), nullptr);
  ASSERT_EQ(host.errors.size(), 1u);
  EXPECT_NE(host.errors[0].find("no_such_thing"), std::string::npos) << host.errors[0];
  const auto next = kernels.module(kDoubles, 1);
  request(kernels, next);
  EXPECT_NE(next->function(0), nullptr);
}

TEST(HostKernels, kernels_of_one_source_are_ready_together) {
  Host host;
  HostKernels kernels(&host.api, "native", CompileMode::kSync);
  std::string halves = kDoubles;
  halves.replace(halves.find("_0"), 2, "_1").replace(halves.find("*= 2"), 4, "/= 2");
  const auto module = kernels.module(kDoubles + halves, 2);
  request(kernels, module);
  std::vector<float> x = run(*module);
  void* const args[] = {x.data()};
  module->function(1)(args, 0, 2);
  EXPECT_EQ(x, (std::vector<float>{0.5, 2, 6}));
  EXPECT_EQ(host.cache.size(), 1u);
  EXPECT_THROW(request(kernels, kernels.module(kDoubles, 2)), plugin::Failure);
}

// A function that is called often is not copied to each place; what it does is the same.
TEST(HostKernels, large_functions_that_are_called_often_stay_functions) {
  Host host;
  HostKernels kernels(&host.api, "native", CompileMode::kSync);
  std::string steps, calls;
  for (int i = 0; i < 50; ++i) steps += "x = x * x - " + std::to_string(i) + ".5f;";
  for (int i = 0; i < 10; ++i) calls += "x[i] = f(x[i]);";
  const std::string one = "static float f(float x) {" + steps + "return x > 1 ? 1 : x < 0 ? 0 : x; }", kernel = kDoubles;
  std::string often = one + kernel, once = often;
  often.replace(often.find("x[i] *= 2;"), 10, "{" + calls + "}");
  once.replace(once.find("x[i] *= 2;"), 10, "x[i] = f(x[i]);");
  for (const std::string& source : {often, once}) request(kernels, kernels.module(source, 1));
  std::map<size_t, size_t> sizes;  // of objects, by the source's length
  for (const auto& [key, object] : host.cache) sizes[key.size()] = object.size();
  ASSERT_EQ(sizes.size(), 2u);
  EXPECT_LT(sizes.rbegin()->second, 2 * sizes.begin()->second);
}

TEST(HostKernels, modules_asked_for_together_are_compiled_by_several_threads) {
  for (const CompileMode mode : {CompileMode::kSync, CompileMode::kAsync}) {
    Host host;
    HostKernels kernels(&host.api, "native", mode);
    std::vector<std::shared_ptr<HostModule>> modules;
    for (int i = 0; i < 12; ++i) modules.push_back(kernels.module("// " + std::to_string(i) + kDoubles, 1));
    kernels.request(modules);
    for (const auto& module : modules) {
      while (mode == CompileMode::kAsync && !module->function(0)) std::this_thread::yield();
      EXPECT_EQ(run(*module), (std::vector<float>{1, 4, 6}));
    }
    EXPECT_EQ(host.cache.size(), modules.size());
  }
}

TEST(HostKernels, one_of_several_that_does_not_compile_does_not_keep_the_others) {
  Host host;
  HostKernels kernels(&host.api, "native", CompileMode::kSync);
  const std::shared_ptr<HostModule> modules[] = {kernels.module("no source", 1), kernels.module(kDoubles, 1)};
  EXPECT_THROW(kernels.request(modules), plugin::Failure);
  EXPECT_EQ(run(*modules[1]), (std::vector<float>{1, 4, 6}));
}

TEST(HostKernels, without_a_thread_nobody_waits_for_ever) {
  using testing::threads_left;
  Host host;
  HostKernels waiting(&host.api, "native", CompileMode::kSync), background(&host.api, "native", CompileMode::kAsync);
  const auto module = waiting.module(kDoubles, 1), later = background.module(kDoubles, 1);
  threads_left = 0;
  EXPECT_THROW(request(waiting, module), plugin::Failure);
  EXPECT_THROW(request(waiting, module), plugin::Failure);
  request(background, later);  // is interpreted meanwhile
  threads_left = testing::kAnyThreads;
  request(waiting, module);
  EXPECT_EQ(run(*module), (std::vector<float>{1, 4, 6}));
  request(background, background.module("// another" + kDoubles, 1));
  while (!later->function(0)) std::this_thread::yield();  // the test's time limit ends it
}

TEST(HostKernels, many_threads_ask_for_many_kernels) {
  Host host;
  HostKernels kernels(&host.api, "native", CompileMode::kSync);
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 5; ++i) {
        const auto module = kernels.module("// " + std::to_string(i) + kDoubles, 1);
        request(kernels, module);
        right += run(*module) == std::vector<float>{1, 4, 6};
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 20);
}

}  // namespace
}  // namespace ltc::host_compiler
