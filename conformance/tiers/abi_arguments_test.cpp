// The abi tier: out parameters after errors, structs inside of graphs from newer hosts, what a device says, and threads that
// compute floating-point numbers in another way.
#include <cfenv>
#include <thread>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "conformance/tiers/abi_fixture.h"
#include "core/base/utf8.h"
#include "core/compile/lowering/abi_graph.h"
#include "core/ir/text.h"

namespace ltc::conformance {
namespace {

using Floats = std::vector<float>;

// ---- after an error every out parameter is unchanged: each holds a mark beforehand

template <typename T>
T* mark() {
  static int mark;
  return reinterpret_cast<T*>(&mark);
}
constexpr const char* kForeign = "graph(%0: f32[4]) { %1: f32[4] = vendor::x(%0) return %1 }";

class AbiOut : public MemoryTest {};

TEST_F(AbiOut, buffer_create_leaves_its_buffer_alone_on_error) {
  const Sizes sizes{4};
  ltc_type type = abi_type(DType::kF32, sizes);
  type.dtype = 999;
  auto args = host::sized<ltc_buffer_args>();
  args.type = &type;
  ltc_buffer* made = mark<ltc_buffer>();
  EXPECT_TRUE(Instance::asked("buffer_create", [&] { return api().buffer_create(device().get(), &args, &made); }));
  EXPECT_EQ(made, mark<ltc_buffer>());
}

TEST_F(AbiOut, device_open_leaves_its_device_and_info_alone_on_error) {
  auto args = host::sized<ltc_device_args>();
  args.ordinal = UINT32_MAX;
  auto info = host::sized<ltc_device_info>();
  ltc_device_info before;
  std::memcpy(&before, &info, sizeof info);
  ltc_device* made = mark<ltc_device>();
  EXPECT_TRUE(Instance::asked("device_open", [&] { return api().device_open(instance().get(), &args, &info, &made); }));
  EXPECT_EQ(made, mark<ltc_device>());
  EXPECT_EQ(std::memcmp(&before, &info, host::kAbiSize<ltc_device_info>), 0) << "a part of the ltc_device_info was written";
}

class AbiOutCompute : public ComputeTest {};

TEST_F(AbiOutCompute, lower_leaves_its_program_alone_on_error) {
  const Graph graph = parse(kForeign);
  const AbiGraph abi(graph);
  auto args = host::sized<ltc_lower_args>();
  args.graph = abi.get();
  ltc_program* made = mark<ltc_program>();
  EXPECT_TRUE(Instance::asked("lower", [&] { return api().lower(device().get(), &args, &made); }));
  EXPECT_EQ(made, mark<ltc_program>());
}

TEST_F(AbiOutCompute, execute_leaves_its_outputs_and_event_alone_on_error) {
  const Executable executable = device().build(kAdd4);
  const Buffer a = device().upload(Array::floats({1, 2, 3, 4}));
  ltc_buffer* const inputs[] = {a.get()};
  auto args = host::sized<ltc_execute_args>();
  args.executable = executable.get();
  args.input_count = 1;
  args.inputs = inputs;
  args.output_count = 1;
  ltc_buffer* output = mark<ltc_buffer>();
  ltc_event* done = mark<ltc_event>();
  EXPECT_TRUE(Instance::asked("execute", [&] { return api().execute(device().get(), &args, &output, &done); })) << "1 input of 2";
  EXPECT_EQ(output, mark<ltc_buffer>());
  EXPECT_EQ(done, mark<ltc_event>());
}

TEST_F(AbiOutCompute, claims_leaves_unclaimed_nodes_at_zero) {
  const Graph graph = parse(kForeign);
  std::vector<uint32_t> clusters;
  EXPECT_OK(device().claims(*AbiGraph(graph).get(), clusters));
  EXPECT_EQ(clusters, std::vector<uint32_t>{0});
}

// ---- structs inside of a graph, as a newer host has them

class AbiGraphs : public ComputeTest {
 protected:
  // The sum of two arrays by a graph of which `change` made some structs larger.
  template <typename Change>
  void expect_lowered(Change change) {
    const Graph graph = parse(kAdd4);
    const AbiGraph abi(graph);
    ltc_graph changed = *abi.get();
    change(changed);
    Program program;
    ASSERT_OK(device().lower(changed, program));
    const Buffer a = device().upload(Array::floats({1, 2, 3, 4}));
    const Executable executable = device().compile(program);
    EXPECT_EQ(floats(device().run({executable, {a.get(), a.get()}})[0], {4}), (Floats{2, 4, 6, 8}));
  }
  // Larger copies of structs, and a list of them.
  template <typename Struct>
  struct Larger {
    std::vector<Guarded<Struct>> structs;
    std::vector<const Struct*> list;
    Larger(const Struct* const* from, size_t count) : structs(count) {
      for (size_t i = 0; i < count; ++i) {
        std::memcpy(structs[i].get(), from[i], host::kAbiSize<Struct>);
        structs[i].grow();
        list.push_back(structs[i].get());
      }
    }
  };
};

TEST_F(AbiGraphs, params_of_a_newer_host_are_read) {
  std::optional<Larger<ltc_param>> larger;
  expect_lowered([&](ltc_graph& graph) { graph.params = larger.emplace(graph.params, graph.param_count).list.data(); });
}

TEST_F(AbiGraphs, types_of_a_newer_host_are_read) {
  std::optional<Larger<ltc_type>> larger;
  expect_lowered([&](ltc_graph& graph) { graph.types = larger.emplace(graph.types, graph.value_count).list.data(); });
}

TEST_F(AbiGraphs, attributes_of_a_newer_host_are_read) {
  std::optional<Larger<ltc_attr>> larger;
  ltc_node node;
  const ltc_node* nodes[] = {&node};
  expect_lowered([&](ltc_graph& graph) {
    node = *graph.nodes[0];
    node.attrs = larger.emplace(node.attrs, node.attr_count).list.data();
    graph.nodes = nodes;
  });
}

TEST_F(AbiGraphs, an_unknown_extension_of_the_graph_is_skipped) {
  expect_lowered([](ltc_graph& graph) { graph.ext = &kUnknown; });
}

TEST_F(AbiGraphs, a_chain_of_unknown_extensions_is_skipped) {
  const ltc_extension last{sizeof(ltc_extension), 0x7fff0003u, 9, nullptr}, first{sizeof(ltc_extension), 0x10000u, 1, &last};
  const Graph graph = parse(kAdd4);
  Program program;
  EXPECT_OK(device().lower(*AbiGraph(graph).get(), program, &first));
}

TEST_F(AbiGraphs, location_is_only_for_messages) {
  const char* const place = "model.py:1:1";
  ltc_node node;
  const ltc_node* nodes[] = {&node};
  expect_lowered([&](ltc_graph& graph) {
    node = *graph.nodes[0];
    node.location = {place, std::strlen(place)};
    graph.nodes = nodes;
  });
}

TEST_F(AbiGraphs, two_lowers_of_a_graph_give_two_programs) {
  const Program first = device().lower(kAdd4), second = device().lower(kAdd4);
  EXPECT_NE(first.get(), second.get()) << "a handle is handed out once";
}

TEST_F(AbiGraphs, two_compiles_of_a_program_give_two_executables) {
  const Program program = device().lower(kAdd4);
  const Executable first = device().compile(program), second = device().compile(program);
  EXPECT_NE(first.get(), second.get()) << "a handle is handed out once";
}

// ---- the device's description

class AbiDevice : public DeviceTest {};

TEST_F(AbiDevice, device_info_gives_strings_that_end_with_nul) {
  for (const ltc_string& s : {device().info().name, device().info().fingerprint}) {
    if (s.size == 0) continue;
    EXPECT_EQ(s.data[s.size], '\0') << "the contract: a NUL behind the bytes";
  }
}

TEST_F(AbiDevice, device_info_gives_strings_in_utf8) {
  for (const ltc_string& s : {device().info().name, device().info().fingerprint}) EXPECT_EQ(text(s), valid_utf8(text(s)));
}

TEST_F(AbiDevice, device_open_reads_only_the_fields_of_the_info_it_knows) {
  LTC_NEEDS_SECOND_OPEN();
  Guarded<ltc_device_info> info;
  info.grow();
  const auto args = host::sized<ltc_device_args>();
  ltc_device* opened = nullptr;
  EXPECT_OK(Instance::asked("device_open", [&] { return api().device_open(instance().get(), &args, info.get(), &opened); }));
  info.expect_untouched("device_open wrote fields that ABI 1.0 does not have");
  if (opened) api().device_close(opened);
}

TEST_F(AbiDevice, strings_live_as_long_as_the_device) {
  const std::string name = text(device().info().name), fingerprint = text(device().info().fingerprint);
  for (int i = 0; i < 10; ++i) (void)instance().describe();
  if (Device::opens_again(instance())) Device second(instance());
  EXPECT_EQ(text(device().info().name), name);
  EXPECT_EQ(text(device().info().fingerprint), fingerprint);
}

TEST_F(AbiDevice, a_listed_dtype_makes_a_buffer) {
  for (uint32_t id = 1; id < 64; ++id) {
    if (!(device().info().dtypes >> id & 1)) continue;
    const Sizes sizes{2};
    ltc_type type = abi_type(DType::kU8, sizes);
    type.dtype = id;
    Buffer buffer;
    EXPECT_OK(device().create_buffer(type, buffer)) << "dtype " << id << " is listed";
  }
}

// ---- memory_stats

class AbiStatsMore : public MemoryTest {
 protected:
  void SetUp() override {
    MemoryTest::SetUp();
    if (!IsSkipped() && !api().memory_stats) LTC_NOT_APPLICABLE("the plugin has no memory_stats");
  }
  static bool known(uint64_t value) { return value != UINT64_MAX; }
};

TEST_F(AbiStatsMore, memory_stats_keeps_struct_size) {
  EXPECT_EQ(device().memory_stats().struct_size, host::kAbiSize<ltc_memory_stats>);
}

TEST_F(AbiStatsMore, memory_stats_reads_only_the_fields_it_knows) {
  Guarded<ltc_memory_stats> stats;
  stats.grow();
  EXPECT_OK(Instance::asked("memory_stats", [&] { return api().memory_stats(device().get(), stats.get()); }));
  stats.expect_untouched("memory_stats wrote fields that ABI 1.0 does not have");
}

TEST_F(AbiStatsMore, a_limit_is_not_below_use) {
  const Buffer buffer = device().upload(Array(DType::kF32, {1 << 20}));
  const ltc_memory_stats stats = device().memory_stats();
  if (!known(stats.limit_bytes) || !known(stats.in_use_bytes)) LTC_NOT_APPLICABLE("the plugin does not know its limit");
  EXPECT_GE(stats.limit_bytes, stats.in_use_bytes);
}

TEST_F(AbiStatsMore, free_memory_fits_the_limit) {
  const ltc_memory_stats stats = device().memory_stats();
  if (!known(stats.limit_bytes) || !known(stats.largest_free_bytes))
    LTC_NOT_APPLICABLE("the plugin does not know its free memory");
  EXPECT_LE(stats.largest_free_bytes, stats.limit_bytes);
}

TEST_F(AbiStatsMore, the_peak_never_falls) {
  uint64_t peak = 0;
  for (int i = 0; i < 5; ++i) {
    (void)device().upload(Array(DType::kF32, {1 << (18 - i)}));
    const uint64_t now = device().memory_stats().peak_bytes;
    if (!known(now)) LTC_NOT_APPLICABLE("the plugin does not know its peak");
    EXPECT_GE(now, peak);
    peak = now;
  }
}

TEST_F(AbiStatsMore, refused_buffers_do_not_count) {
  const uint64_t before = device().memory_stats().in_use_bytes;
  if (!known(before)) LTC_NOT_APPLICABLE("the plugin does not know its memory in use");
  Buffer buffer;
  EXPECT_TRUE(device().create_buffer(abi_type(DType::kF32, {int64_t{1} << 55}), buffer));
  EXPECT_LE(device().memory_stats().in_use_bytes, before);
}

// ---- threads of users that compute floating-point numbers in their own way

class AbiFloats : public MemoryTest {
 protected:
  // Copies and, of plugins that compute, lowers, compiles and runs; each call is watched (Instance::guarded).
  void use() {
    const Buffer input = device().upload(Array::floats({1, 2, 3, 4}));
    if (!instance().computes()) return;
    const Executable executable = device().build(kNeg4);
    const auto outputs = device().run({executable, {input.get()}});
    EXPECT_EQ(device().download(outputs[0], DType::kF32, {4}).values<float>(), (Floats{-1, -2, -3, -4}));
  }
};

TEST_F(AbiFloats, another_rounding_of_the_thread_stays) {
  std::jthread([&] {
    std::fesetround(FE_UPWARD);
    use();
    EXPECT_EQ(std::fegetround(), FE_UPWARD);
  }).join();
}

#if defined(__x86_64__)
TEST_F(AbiFloats, subnormal_numbers_that_the_thread_flushes_stay_flushed) {
  std::jthread([&] {
    constexpr unsigned kFlush = 0x8040;  // FTZ, DAZ
    _mm_setcsr(_mm_getcsr() | kFlush);
    use();
    EXPECT_EQ(_mm_getcsr() & kFlush, kFlush);
  }).join();
}
#endif

TEST_F(AbiFloats, the_entry_leaves_another_rounding_alone) {
  std::jthread([] {
    std::fesetround(FE_DOWNWARD);
    (void)Instance().describe();
    EXPECT_EQ(std::fegetround(), FE_DOWNWARD);
  }).join();
}

}  // namespace
}  // namespace ltc::conformance
