// The cache tier: executables that are saved and loaded.
#include <atomic>
#include <cmath>
#include <random>
#include <thread>

#include "conformance/kit/guarded_struct.h"
#include "conformance/kit/heap.h"
#include "conformance/kit/in_threads.h"
#include "conformance/kit/late_sink.h"
#include "conformance/kit/process_end.h"
#include "conformance/tiers/abi_fixture.h"
#include "conformance/tiers/cache_fixture.h"

namespace ltc::conformance {
namespace {

TEST_F(Cache, a_saved_executable_loads_and_runs) {
  LTC_SAVED(bytes, device().build(kAdd4));
  Executable executable;
  ASSERT_OK(load(bytes, executable));
  EXPECT_EQ(sum(device(), executable), kSum);
}

TEST_F(Cache, a_loaded_executable_gives_the_results_of_the_original_to_the_bit) {
  const Executable original = device().build(
      "graph(%0: f32[1000], %1: f32[1000]) { %2: f32[1000] = aten::mul.Tensor(%0, %1) %3: f32[1000] = aten::exp(%2) %4: "
      "f32[1000] "
      "= aten::add.Tensor(%3, %0) {alpha=1} %5: f32[] = aten::sum.dim_IntList(%4) {dim=[0],keepdim=false,dtype=f32} return %4, "
      "%5 }");
  LTC_SAVED(bytes, original);
  Executable copy;
  ASSERT_OK(load(bytes, copy));
  std::mt19937 random(5);
  Floats values(1000);
  for (float& value : values) value = std::ldexp(static_cast<float>(random() % 20001) - 10000.0f, -13);
  const Buffer a = device().upload(Array::floats(values));
  std::ranges::reverse(values);
  const Buffer b = device().upload(Array::floats(values));
  const auto expected = device().run({original, {a.get(), b.get()}, 2}), got = device().run({copy, {a.get(), b.get()}, 2});
  EXPECT_EQ(device().download(got[0], DType::kF32, {1000}).bytes, device().download(expected[0], DType::kF32, {1000}).bytes);
  EXPECT_EQ(device().download(got[1], DType::kF32, {}).bytes, device().download(expected[1], DType::kF32, {}).bytes);
}

TEST_F(Cache, an_executable_is_saved_twice) {
  const Executable original = device().build(kAdd4);
  LTC_SAVED(first, original);
  LTC_SAVED(second, original);
  for (const std::string& bytes : {first, second}) {
    Executable executable;
    ASSERT_OK(load(bytes, executable));
    EXPECT_EQ(sum(device(), executable), kSum);
  }
}

TEST_F(Cache, saving_leaves_the_executable_as_it_was) {
  const Executable original = device().build(kAdd4);
  LTC_SAVED(bytes, original);
  EXPECT_EQ(sum(device(), original), kSum);
}

TEST_F(Cache, an_executable_that_ran_is_saved) {
  const Executable original = device().build(kAdd4);
  EXPECT_EQ(sum(device(), original), kSum);
  LTC_SAVED(bytes, original);
  Executable executable;
  ASSERT_OK(load(bytes, executable));
  EXPECT_EQ(sum(device(), executable), kSum);
}

TEST_F(Cache, the_program_may_be_destroyed_before_its_executable_is_saved) {
  Program program = device().lower(kAdd4);
  const Executable original = device().compile(program);
  program.reset();
  LTC_SAVED(bytes, original);
  Executable executable;
  ASSERT_OK(load(bytes, executable));
  EXPECT_EQ(sum(device(), executable), kSum);
}

TEST_F(Cache, the_original_may_be_destroyed_before_its_copy_runs) {
  Executable original = device().build(kAdd4);
  LTC_SAVED(bytes, original);
  Executable executable;
  ASSERT_OK(load(bytes, executable));
  original.reset();
  EXPECT_EQ(sum(device(), executable), kSum);
}

TEST_F(Cache, each_load_makes_an_executable_of_its_own) {
  const Executable original = device().build(kAdd4);
  LTC_SAVED(bytes, original);
  Executable first, second;
  ASSERT_OK(load(bytes, first));
  ASSERT_OK(load(bytes, second));
  ASSERT_NE(first.get(), second.get()) << "a handle is handed out once";
  ASSERT_NE(first.get(), original.get()) << "a handle is handed out once";
  first.reset();
  EXPECT_EQ(sum(device(), second), kSum);
}

TEST_F(Cache, a_loaded_executable_is_saved_again) {
  LTC_SAVED(bytes, device().build(kAdd4));
  Executable copy, copy_of_copy;
  ASSERT_OK(load(bytes, copy));
  LTC_SAVED(again, copy);
  ASSERT_OK(load(again, copy_of_copy));
  EXPECT_EQ(sum(device(), copy_of_copy), kSum);
}

TEST_F(Cache, the_bytes_may_go_when_executable_load_returns) {
  LTC_SAVED(bytes, device().build(kAdd4));
  LoadBytes memory(bytes);
  Executable executable;
  ASSERT_OK(load(device(), memory.args(), executable));
  memory.scribble();
  EXPECT_EQ(sum(device(), executable), kSum) << "what a function is given is borrowed until it returns";
}

// ---- other devices and instances

TEST_F(Cache, a_second_device_of_the_ordinal_loads) {
  LTC_NEEDS_SECOND_OPEN();
  LTC_SAVED(bytes, device().build(kAdd4));
  Device second(instance());
  Executable executable;
  ASSERT_OK(load(second, bytes, executable));
  EXPECT_EQ(sum(second, executable), kSum);
}

TEST_F(Cache, a_device_that_is_opened_again_loads) {
  LTC_SAVED(bytes, device().build(kAdd4));
  device_.reset();
  device_ = std::make_unique<Device>(instance());
  Executable executable;
  ASSERT_OK(load(bytes, executable));
  EXPECT_EQ(sum(device(), executable), kSum);
}

TEST_F(Cache, a_fresh_instance_loads) {
  LTC_SAVED(bytes, device().build(kAdd4));
  device_.reset();
  instance_ = std::make_unique<Instance>();
  device_ = std::make_unique<Device>(instance());
  Executable executable;
  ASSERT_OK(load(bytes, executable));
  EXPECT_EQ(sum(device(), executable), kSum);
}

TEST_F(Cache, a_device_may_close_before_what_was_saved_on_it_runs) {
  LTC_NEEDS_SECOND_OPEN();
  std::string bytes;
  {
    Device second(instance());
    bytes = save(second.build(kAdd4));
  }
  if (bytes.empty()) LTC_UNSUPPORTED_BY_PLUGIN("this executable cannot be saved");
  Executable executable;
  ASSERT_OK(load(bytes, executable));
  EXPECT_EQ(sum(device(), executable), kSum);
}

TEST_F(Cache, the_fingerprint_is_the_same_for_each_open) {
  const std::string first = text(device().info().fingerprint);
  device_.reset();
  device_ = std::make_unique<Device>(instance());
  EXPECT_EQ(text(device().info().fingerprint), first) << "what was saved is loaded on a device of the same fingerprint only";
}

TEST_F(Cache, the_fingerprint_is_the_same_for_each_instance) {
  const std::string first = text(device().info().fingerprint);
  device_.reset();
  instance_ = std::make_unique<Instance>();
  device_ = std::make_unique<Device>(instance());
  EXPECT_EQ(text(device().info().fingerprint), first) << "another process must find what this one saved";
}

TEST_F(Cache, the_fingerprint_does_not_depend_on_what_ran) {
  const std::string first = text(device().info().fingerprint);
  EXPECT_EQ(sum(device(), device().build(kAdd4)), kSum);
  EXPECT_EQ(text(device().info().fingerprint), first);
}

// ---- all that a graph has

TEST_F(Cache, counts_and_types_are_saved) {
  LTC_SAVED(bytes, device().build(kAdd4));
  Executable executable;
  ASSERT_OK(load(bytes, executable));
  const Buffer a = four(), small = device().upload(Array::floats({1, 2}));
  EXPECT_EQ(code_text(device().submit({executable, {a.get()}}).submitted.code), "INVALID_ARGUMENT") << "1 input of 2";
  EXPECT_EQ(code_text(device().submit({executable, {a.get(), small.get()}}).submitted.code), "INVALID_ARGUMENT")
      << "f32[2] for f32[4]";
}

TEST_F(Cache, scalar_params_are_saved) {
  const std::string graph = "graph(%0: f64 scalar) { %1: f32[4] = aten::full(%0) {size=[4],dtype=f32} return %1 }";
  if (claims(graph)[0] == 0) LTC_UNSUPPORTED_BY_PLUGIN("not claimed: ", graph);
  LTC_SAVED(bytes, device().build(graph));
  Executable executable;
  ASSERT_OK(load(bytes, executable));
  for (const float value : {2.5f, -1.0f})
    EXPECT_EQ(read(device().run({executable, {}, 1, {number(value)}})[0]), Floats(4, value));
}

TEST_F(Cache, the_order_of_outputs_is_saved) {
  LTC_SAVED(bytes, device().build("graph(%0: f32[4]) { %1: f32[4] = aten::neg(%0) %2: f32[4] = aten::neg(%1) return %2, %1 }"));
  Executable executable;
  ASSERT_OK(load(bytes, executable));
  const Buffer input = four();
  const auto outputs = device().run({executable, {input.get()}, 2});
  EXPECT_EQ(read(outputs[0]), (Floats{1, 2, 3, 4}));
  EXPECT_EQ(read(outputs[1]), (Floats{-1, -2, -3, -4}));
}

TEST_F(Cache, donations_are_saved) {
  LTC_SAVED(bytes,
            device().build("graph(%0: f32[4] -> 0, %1: f32[4]) { %2: f32[4] = aten::add.Tensor(%0, %1) {alpha=1} return %2 }"));
  Executable executable;
  ASSERT_OK(load(bytes, executable));
  Buffer value = four();
  const Buffer one = device().upload(Array::floats({1, 1, 1, 1}));
  for (int i = 0; i < 20; ++i) {
    auto outputs = device().run({executable, {value.get(), one.get()}, 1, {}, {1, 0}});
    (void)value.release();
    value = std::move(outputs[0]);
  }
  EXPECT_EQ(read(value), (Floats{21, 22, 23, 24}));
}

TEST_F(Cache, an_executable_of_each_effort_is_saved) {
  const Program program = device().lower(kAdd4);
  for (uint32_t effort = 0; effort <= 3; ++effort) {
    LTC_SAVED(bytes, device().compile(program, effort));
    Executable executable;
    ASSERT_OK(load(bytes, executable)) << "effort " << effort;
    EXPECT_EQ(sum(device(), executable), kSum) << "effort " << effort;
  }
}

TEST_F(Cache, values_of_no_elements_are_saved) {
  LTC_SAVED(bytes, device().build("graph(%0: f32[0,3]) { %1: f32[0,3] = aten::neg(%0) return %1 }"));
  Executable executable;
  ASSERT_OK(load(bytes, executable));
  const Buffer input = device().upload(Array(DType::kF32, {0, 3}));
  EXPECT_TRUE(floats(device().run({executable, {input.get()}})[0], {0, 3}).empty());
}

// ---- args of another date, sinks

TEST_F(Cache, executable_load_reads_only_the_fields_it_knows) {
  LTC_SAVED(bytes, device().build(kAdd4));
  const LoadBytes memory(bytes);
  Guarded<ltc_load_args> args;
  *args.get() = memory.args();
  args.grow();
  Executable executable;
  EXPECT_OK(load(device(), *args.get(), executable));
}

TEST_F(Cache, executable_load_skips_an_unknown_extension) {
  LTC_SAVED(bytes, device().build(kAdd4));
  const LoadBytes memory(bytes);
  for (const ltc_extension* ext : {&kUnknown, &kMarked}) {
    ltc_load_args args = memory.args();
    args.ext = ext;
    Executable executable;
    EXPECT_OK(load(device(), args, executable));
  }
}

TEST_F(Cache, saving_ends_when_the_sink_takes_no_more) {
  const Executable executable = device().build(kAdd4);
  LTC_SAVED(bytes, executable);
  int calls = 0;
  const ltc_sink sink{&calls, [](void* count, const void*, size_t) {
                        ++*static_cast<int*>(count);
                        return false;
                      }};
  EXPECT_OK(save(executable, sink)) << "the contract: give up and return NULL when write answers false";
  EXPECT_EQ(calls, 1) << "write answered false and was called again";
}

TEST_F(Cache, the_sink_is_called_by_the_thread_that_gave_it) {
  struct Caller {
    std::thread::id thread = std::this_thread::get_id();
    bool other = false;
  } caller;
  const ltc_sink sink{&caller, [](void* context, const void*, size_t) {
                        auto& saw = *static_cast<Caller*>(context);
                        saw.other |= std::this_thread::get_id() != saw.thread;
                        return true;
                      }};
  (void)save(device().build(kAdd4), sink);
  EXPECT_FALSE(caller.other) << "the contract: called only by the thread of the call that was given the sink";
}

TEST_F(Cache, the_sink_is_left_alone_when_saving_has_returned) {
  const Executable executable = device().build(kAdd4);
  LateSink late;
  (void)save(executable, late.sink());
  late.end();
  (void)save(executable);
  EXPECT_EQ(sum(device(), executable), kSum);
  EXPECT_FALSE(late.was_late()) << LateSink::kClause;
}

TEST_F(Cache, another_process_loads_what_was_saved) {
  LTC_SAVED(bytes, device().build(kAdd4));
  device_.reset();  // the other process opens it
  expect_end("load", bytes);
}

// ---- while other calls run

TEST_F(Cache, loads_run_side_by_side) {
  LTC_NEEDS_THREADS();
  LTC_SAVED(bytes, device().build(kAdd4));
  std::vector<Executable> executables(8);
  in_threads(8, [&](int i) {
    for (int round = 0; round < 5; ++round) EXPECT_OK(load(bytes, executables[size_t(i)]));
  });
  for (const Executable& executable : executables) EXPECT_EQ(sum(device(), executable), kSum);
}

TEST_F(Cache, an_executable_is_saved_by_several_threads) {
  LTC_NEEDS_THREADS();
  const Executable original = device().build(kAdd4);
  LTC_SAVED(bytes, original);
  std::vector<std::string> saved(4);
  in_threads(4, [&](int i) { saved[size_t(i)] = save(original); });
  for (const std::string& one : saved) {
    Executable executable;
    ASSERT_OK(load(one, executable));
    EXPECT_EQ(sum(device(), executable), kSum);
  }
}

TEST_F(Cache, loads_and_saves_go_on_while_the_executable_runs) {
  LTC_NEEDS_THREADS();
  const Executable original = device().build(kAdd4);
  LTC_SAVED(bytes, original);
  std::jthread other([&] {
    for (int i = 0; i < 20; ++i) {
      Executable copy;
      EXPECT_OK(load(save(original), copy));
    }
  });
  for (int i = 0; i < 50; ++i) EXPECT_EQ(sum(device(), original), kSum);
}

TEST_F(Cache, an_executable_is_loaded_while_a_run_is_pending) {
  const Executable original = device().build(kAdd4);
  LTC_SAVED(bytes, original);
  const Buffer a = four();
  std::vector<Device::Run> runs;
  for (int i = 0; i < 50; ++i) runs.push_back(device().submit({original, {a.get(), a.get()}}));
  Executable copy;
  ASSERT_OK(load(bytes, copy));
  EXPECT_EQ(sum(device(), copy), kSum);
  for (const Device::Run& run : runs) EXPECT_OK(device().finish(run.done));
}

TEST_F(Cache, a_loaded_executable_may_be_destroyed_while_its_run_is_pending) {
  LTC_SAVED(bytes, device().build(kAdd4));
  const Buffer a = four();
  std::vector<Device::Run> runs;
  for (int i = 0; i < 20; ++i) {
    Executable copy;
    ASSERT_OK(load(bytes, copy));
    runs.push_back(device().submit({copy, {a.get(), a.get()}}));
  }
  for (const Device::Run& run : runs) EXPECT_EQ(read(run.outputs[0]), (Floats{2, 4, 6, 8}));
}

// ---- leaks

TEST_F(Cache, saving_leaves_nothing_behind) {
  const Executable executable = device().build(kAdd4);
  LTC_SAVED(bytes, executable);
  const auto growth = growth_per_time(
      100, [&] { (void)save(executable); }, kCompilerLeakBytes);
  if (!growth) LTC_NOT_APPLICABLE("the allocator does not count");
  EXPECT_LT(*growth, kCompilerLeakBytes) << "bytes of host memory lost with each executable that was saved";
}

TEST_F(Cache, loading_leaves_nothing_behind) {
  LTC_SAVED(bytes, device().build(kAdd4));
  const auto growth = growth_per_time(
      100,
      [&] {
        {
          Executable executable;
          EXPECT_OK(load(bytes, executable));
        }
        (void)four();  // executable_destroy takes effect in queue order
      },
      kCompilerLeakBytes);
  if (!growth) LTC_NOT_APPLICABLE("the allocator does not count");
  EXPECT_LT(*growth, kCompilerLeakBytes) << "bytes of host memory lost with each executable that was loaded and destroyed";
}

// ---- the host's cache

class CacheHost : public Execute {
 protected:
  // A sum in a fresh instance, whose host keeps what it is given.
  static Floats sum_in_a_fresh_instance(HostCache* cache) {
    Instance instance(cache);
    Device device(instance);
    const Executable executable = device.build(kAdd4);
    const Buffer a = device.upload(Array::floats({1, 2, 3, 4}));
    return device.download(device.run({executable, {a.get(), a.get()}})[0], DType::kF32, {4}).values<float>();
  }
};

TEST_F(CacheHost, a_second_instance_works_with_what_the_first_kept) {
  device_.reset();
  HostCache cache;
  EXPECT_EQ(sum_in_a_fresh_instance(&cache), (Floats{2, 4, 6, 8}));
  if (cache.size() == 0) LTC_NOT_APPLICABLE("the plugin keeps nothing in the host's cache");
  EXPECT_EQ(sum_in_a_fresh_instance(&cache), (Floats{2, 4, 6, 8})) << "with " << cache.size() << " entries of the first";
}

TEST_F(CacheHost, what_was_kept_may_be_forgotten) {
  device_.reset();
  HostCache cache;
  (void)sum_in_a_fresh_instance(&cache);
  if (cache.size() == 0) LTC_NOT_APPLICABLE("the plugin keeps nothing in the host's cache");
  cache.clear();
  EXPECT_EQ(sum_in_a_fresh_instance(&cache), (Floats{2, 4, 6, 8})) << "the host forgets what was not used for long";
}

TEST_F(CacheHost, a_cache_that_keeps_nothing_is_no_error) {
  device_.reset();
  EXPECT_EQ(sum_in_a_fresh_instance(nullptr), (Floats{2, 4, 6, 8}));
}

TEST_F(CacheHost, what_is_kept_is_found_under_its_key) {
  device_.reset();
  HostCache cache;
  (void)sum_in_a_fresh_instance(&cache);
  if (cache.size() == 0) LTC_NOT_APPLICABLE("the plugin keeps nothing in the host's cache");
  const size_t kept = cache.size();
  (void)sum_in_a_fresh_instance(&cache);
  EXPECT_EQ(cache.size(), kept) << "the same work kept other keys: a key holds what the bytes depend on, and no more";
}

}  // namespace
}  // namespace ltc::conformance
