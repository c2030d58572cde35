// The execute tier: claims, lower, compile and runs.
#include <numeric>

#include "conformance/kit/heap.h"
#include "conformance/tiers/execute_fixture.h"

namespace ltc::conformance {
namespace {

// neg applied `count` times to four floats.
std::string chain(int count) {
  std::string text = "graph(%0: f32[4]) {\n";
  for (int i = 1; i <= count; ++i) text += cat("%", i, ": f32[4] = aten::neg(%", i - 1, ")\n");
  return text + cat("return %", count, " }");
}

// ---- claims

TEST_F(Execute, claims_every_minimal_op_that_it_is_asked_for) {
  for (const char* graph : {kNeg4, kAdd4, kMul4}) {
    EXPECT_NE(claims(graph)[0], 0u) << "not claimed: the minimal opset is what every compiling plugin lowers: " << graph;
  }
}

TEST_F(Execute, claims_answers_the_same_again) {
  LTC_NEEDS_SECOND_OPEN();
  const std::string mixed =
      "graph(%0: f32[4]) { %1: f32[4] = aten::neg(%0) %2: f32[4] = vendor::x(%1) %3: f32[4] = aten::neg(%2) return %3 }";
  const auto first = claims(mixed);
  for (int i = 0; i < 50; ++i) ASSERT_EQ(claims(mixed), first) << "the contract: deterministic for the life of the device";
  Device second(instance());
  std::vector<uint32_t> clusters;
  const Graph graph = parse(mixed);
  EXPECT_OK(second.claims(*AbiGraph(graph).get(), clusters));
  EXPECT_EQ(clusters, first) << "two devices of one ordinal claim the same";
}

TEST_F(Execute, claims_judges_each_node) {
  const auto clusters =
      claims("graph(%0: f32[4]) { %1: f32[4] = aten::neg(%0) %2: f32[4] = vendor::x(%1) %3: f32[4] = aten::neg(%2) return %3 }");
  EXPECT_NE(clusters[0], 0u);
  EXPECT_EQ(clusters[1], 0u) << "claimed vendor::x, which nobody has";
  EXPECT_NE(clusters[2], 0u);
}

TEST_F(Execute, nodes_of_a_cluster_are_lowered_together) {
  const std::string text =
      "graph(%0: f32[4,4], %1: f32[4,4], %2: f32[4,4]) { %3: f32[1,4,4] = aten::reshape(%0) {shape=[1,4,4]} %4: f32[1,4,4] = "
      "aten::reshape(%1) {shape=[1,4,4]} %5: f32[1,4,4] = aten::bmm(%3, %4) %6: f32[4,4] = aten::reshape(%5) {shape=[4,4]} %7: "
      "f32[4,4] = aten::add.Tensor(%6, %2) {alpha=1} %8: f32[4,4] = aten::exp(%7) return %8 }";
  const auto clusters = claims(text);
  if (std::ranges::none_of(clusters, [](uint32_t cluster) { return cluster >= 2; }))
    LTC_NOT_APPLICABLE("the plugin claims each node by itself");
  if (std::ranges::count(clusters, 0u)) LTC_UNSUPPORTED_BY_PLUGIN("not claimed: a part of the graph");
  EXPECT_NO_THROW((void)device().build(text)) << "the contract: k >= 2 is yes where all nodes of k end in one graph";
}

TEST_F(Execute, claims_writes_one_entry_per_node) {
  const Graph graph = parse(kNeg4);
  const AbiGraph abi(graph);
  auto args = host::sized<ltc_claims_args>();
  args.graph = abi.get();
  uint32_t clusters[] = {0, 0xdead, 0xdead};
  EXPECT_OK(Instance::asked("claims", [&] { return api().claims(device().get(), &args, clusters); }));
  EXPECT_EQ(clusters[1], 0xdeadu) << "claims wrote behind the last node's entry";
}

TEST_F(Execute, claims_of_a_graph_without_nodes_succeeds) { EXPECT_TRUE(claims("graph() { return }").empty()); }

// ---- lower and compile

TEST_F(Execute, lower_refuses_an_op_by_the_index_of_its_node) {
  const Graph graph = parse("graph(%0: f32[4]) { %1: f32[4] = aten::neg(%0) %2: f32[4] = vendor::x(%1) return %2 }");
  const AbiGraph abi(graph);
  Program program;
  const Failure failure = device().lower(*abi.get(), program);
  EXPECT_EQ(code_text(failure.code), "UNSUPPORTED") << "for vendor::x, which nobody has";
  EXPECT_EQ(failure.node, 1u) << "the host partitions again without the node that the error names";
}

TEST_F(Execute, lower_copies_what_it_needs_of_the_graph) {
  Program program;
  {
    const Graph graph = parse("graph(%0: f32[3]) { %1: f32[3] = aten::add.Tensor(%0, %0) {alpha=1} return %1 }");
    auto abi = std::make_unique<AbiGraph>(graph);
    ASSERT_OK(device().lower(*abi->get(), program));
  }
  std::vector<std::unique_ptr<AbiGraph>> scribble;  // where the first one was
  const Graph other = parse(chain(8));
  for (int i = 0; i < 50; ++i) scribble.push_back(std::make_unique<AbiGraph>(other));
  const Executable executable = device().compile(program);
  const Buffer input = device().upload(Array::floats({1, 2, 3}));
  const auto outputs = device().run({executable, {input.get()}});
  EXPECT_EQ(floats(outputs[0], {3}), (Floats{2, 4, 6})) << "the graph is borrowed until lower returns";
}

TEST_F(Execute, a_program_may_be_destroyed_before_its_executable) {
  Program program = device().lower(kNeg4);
  const Executable executable = device().compile(program);
  program.reset();
  const Buffer input = four();
  EXPECT_EQ(read(device().run({executable, {input.get()}})[0]), (Floats{-1, -2, -3, -4}));
}

TEST_F(Execute, a_program_compiles_several_times) {
  const Program program = device().lower(kNeg4);
  Executable first = device().compile(program, 0);
  const Executable second = device().compile(program, 2);
  const Buffer input = four();
  EXPECT_EQ(read(device().run({first, {input.get()}})[0]), (Floats{-1, -2, -3, -4}));
  first.reset();
  EXPECT_EQ(read(device().run({second, {input.get()}})[0]), (Floats{-1, -2, -3, -4}));
}

class ExecuteEffort : public Execute, public ::testing::WithParamInterface<uint32_t> {};

TEST_P(ExecuteEffort, gives_the_same_result) {
  const Executable executable = device().compile(device().lower(kMul4), GetParam());
  const Buffer a = four(), b = device().upload(Array::floats({0.5, -2, 3, 0}));
  EXPECT_EQ(read(device().run({executable, {a.get(), b.get()}})[0]), (Floats{0.5, -4, 9, 0}));
}
INSTANTIATE_TEST_SUITE_P(, ExecuteEffort, ::testing::Values(0u, 1u, 2u, 3u, 4u));

TEST_F(Execute, program_text_is_text) {
  if (!api().program_text) LTC_NOT_APPLICABLE("the plugin has no program_text");
  const std::string text = program_text(device().lower(kNeg4));
  EXPECT_NE(text, "");
  EXPECT_EQ(text.find('\0'), std::string::npos) << "a NUL in the text";
}

TEST_F(Execute, program_text_ends_when_the_sink_takes_no_more) {
  if (!api().program_text) LTC_NOT_APPLICABLE("the plugin has no program_text");
  const Program program = device().lower(chain(50));
  int calls = 0;
  const ltc_sink sink{&calls, [](void* count, const void*, size_t) {
                        ++*static_cast<int*>(count);
                        return false;
                      }};
  EXPECT_OK(Instance::asked("program_text", [&] { return api().program_text(program.get(), &sink); }))
      << "the contract: give up and return NULL when write answers false";
  EXPECT_LE(calls, 1) << "write answered false and was called again";
}

// ---- runs

TEST_F(Execute, a_run_computes) {
  const Executable executable = device().build(kAdd4);
  const Buffer a = four(), b = device().upload(Array::floats({10, 20, 30, 40}));
  EXPECT_EQ(read(device().run({executable, {a.get(), b.get()}})[0]), (Floats{11, 22, 33, 44}));
}

TEST_F(Execute, inputs_follow_the_order_of_the_params) {
  const Executable executable = device().build(
      "graph(%0: f32[4], %1: f32[4]) { %2: f32[4] = aten::neg(%1) %3: f32[4] = aten::add.Tensor(%0, %2) {alpha=1} return %3 }");
  const Buffer a = four(), b = device().upload(Array::floats({10, 20, 30, 40}));
  EXPECT_EQ(read(device().run({executable, {a.get(), b.get()}})[0]), (Floats{-9, -18, -27, -36}));
}

TEST_F(Execute, outputs_follow_the_order_of_the_graph) {
  const Executable executable =
      device().build("graph(%0: f32[4]) { %1: f32[4] = aten::neg(%0) %2: f32[4] = aten::neg(%1) return %2, %1 }");
  const Buffer input = four();
  const auto outputs = device().run({executable, {input.get()}, 2});
  EXPECT_EQ(read(outputs[0]), (Floats{1, 2, 3, 4}));
  EXPECT_EQ(read(outputs[1]), (Floats{-1, -2, -3, -4}));
}

TEST_F(Execute, a_run_leaves_its_inputs_alone) {
  const Executable executable = device().build(kMul4);
  const Buffer a = four(), b = four();
  (void)device().run({executable, {a.get(), b.get()}});
  EXPECT_EQ(read(a), (Floats{1, 2, 3, 4}));
  EXPECT_EQ(read(b), (Floats{1, 2, 3, 4}));
}

TEST_F(Execute, one_buffer_may_be_several_inputs) {
  const Executable executable = device().build(kMul4);
  const Buffer a = four();
  EXPECT_EQ(read(device().run({executable, {a.get(), a.get()}})[0]), (Floats{1, 4, 9, 16}));
}

TEST_F(Execute, outputs_are_buffers_of_their_own) {
  const Executable executable =
      device().build("graph(%0: f32[4]) { %1: f32[4] = aten::neg(%0) %2: f32[4] = aten::neg(%0) return %1, %2 }");
  const Buffer input = four();
  const auto outputs = device().run({executable, {input.get()}, 2});
  EXPECT_NE(outputs[0].get(), outputs[1].get());
  const float data[] = {7, 7, 7, 7};
  Event done;
  ASSERT_OK(device().transfer(to_device(outputs[0], data, 16), done));
  ASSERT_OK(device().finish(done));
  EXPECT_EQ(read(outputs[1]), (Floats{-1, -2, -3, -4})) << "writing output 0 changed output 1, which has equal contents";
  EXPECT_EQ(read(input), (Floats{1, 2, 3, 4}));
}

TEST_F(Execute, an_output_does_not_share_memory_with_an_input) {
  // Movement that keeps the bytes is where plugins hand out the input itself.
  const std::string graph = "graph(%0: f32[4]) { %1: f32[4] = aten::reshape(%0) {shape=[4]} return %1 }";
  if (claims(graph)[0] == 0) LTC_UNSUPPORTED_BY_PLUGIN("not claimed: aten::reshape");
  const Executable executable = device().build(graph);
  const Buffer input = four();
  const auto outputs = device().run({executable, {input.get()}});
  const float data[] = {7, 7, 7, 7};
  Event done;
  ASSERT_OK(device().transfer(to_device(outputs[0], data, 16), done));
  ASSERT_OK(device().finish(done));
  EXPECT_EQ(read(input), (Floats{1, 2, 3, 4})) << "writing the output changed the input: each output is a buffer of its own";
}

TEST_F(Execute, two_runs_have_outputs_of_their_own) {
  const Executable executable = device().build(kNeg4);
  const Buffer a = four(), b = device().upload(Array::floats({5, 6, 7, 8}));
  const auto first = device().run({executable, {a.get()}});
  const auto second = device().run({executable, {b.get()}});
  EXPECT_EQ(read(first[0]), (Floats{-1, -2, -3, -4}));
  EXPECT_EQ(read(second[0]), (Floats{-5, -6, -7, -8}));
}

TEST_F(Execute, an_output_is_an_input_of_the_next_run) {
  const Executable executable = device().build(kAdd4);
  Buffer value = four();
  const Buffer one = device().upload(Array::floats({1, 1, 1, 1}));
  for (int i = 0; i < 100; ++i) value = std::move(device().run({executable, {value.get(), one.get()}})[0]);
  EXPECT_EQ(read(value), (Floats{101, 102, 103, 104}));
}

TEST_F(Execute, a_param_may_be_unused) {
  const Executable executable = device().build("graph(%0: f32[4], %1: f32[9]) { %2: f32[4] = aten::neg(%0) return %2 }");
  const Buffer a = four(), b = device().upload(Array(DType::kF32, {9}));
  EXPECT_EQ(read(device().run({executable, {a.get(), b.get()}})[0]), (Floats{-1, -2, -3, -4}));
}

TEST_F(Execute, a_node_may_be_unused) {
  const Executable executable = device().build(
      "graph(%0: f32[4]) { %1: f32[4] = aten::neg(%0) %2: f32[4] = aten::add.Tensor(%0, %0) {alpha=1} return %1 }");
  const Buffer a = four();
  EXPECT_EQ(read(device().run({executable, {a.get()}})[0]), (Floats{-1, -2, -3, -4}));
}

TEST_F(Execute, a_long_chain_runs) {
  const Executable executable = device().build(chain(1001));
  const Buffer a = four();
  EXPECT_EQ(read(device().run({executable, {a.get()}})[0]), (Floats{-1, -2, -3, -4}));
}

TEST_F(Execute, values_of_no_elements_run) {
  const Executable executable =
      device().build("graph(%0: f32[0,3], %1: f32[0,3]) { %2: f32[0,3] = aten::mul.Tensor(%0, %1) return %2 }");
  const Buffer a = device().upload(Array(DType::kF32, {0, 3})), b = device().upload(Array(DType::kF32, {0, 3}));
  const auto outputs = device().run({executable, {a.get(), b.get()}});
  EXPECT_TRUE(floats(outputs[0], {0, 3}).empty());
}

TEST_F(Execute, values_of_rank_0_run) {
  const Executable executable = device().build("graph(%0: f32[]) { %1: f32[] = aten::neg(%0) return %1 }");
  const Buffer a = device().upload(Array::floats(Sizes{}, {3}));
  EXPECT_EQ(floats(device().run({executable, {a.get()}})[0], {}), (Floats{-3}));
}

TEST_F(Execute, a_million_elements_run) {
  const int64_t count = 1 << 20;
  const Executable executable =
      device().build(cat("graph(%0: f32[", count, "]) { %1: f32[", count, "] = aten::neg(%0) return %1 }"));
  Floats values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), 1.0f);
  const Buffer a = device().upload(Array::floats(values));
  for (float& value : values) value = -value;
  EXPECT_EQ(floats(device().run({executable, {a.get()}})[0], {count}), values);
}

TEST_F(Execute, a_scalar_param_varies_from_run_to_run) {
  // A scalar operand of full in the minimal opset; of mul in plugins that take more.
  const std::string by_full = "graph(%0: f64 scalar) { %1: f32[4] = aten::full(%0) {size=[4],dtype=f32} return %1 }";
  const std::string by_mul = "graph(%0: f64 scalar, %1: f32[4]) { %2: f32[4] = aten::mul.Tensor(%1, %0) return %2 }";
  const bool has_full = claims(by_full)[0] != 0;
  if (!has_full && claims(by_mul)[0] == 0) LTC_UNSUPPORTED_BY_PLUGIN("not claimed: aten::full, nor aten::mul with a number");
  const Executable executable = device().build(has_full ? by_full : by_mul);
  const Buffer ones = device().upload(Array::floats({1, 1, 1, 1}));
  const auto inputs = has_full ? std::vector<ltc_buffer*>{} : std::vector{ones.get()};
  for (const double value : {0.5, -3.0, 1e10}) {
    const auto f = static_cast<float>(value);
    EXPECT_EQ(read(device().run({executable, inputs, 1, {number(value)}})[0]), (Floats{f, f, f, f}));
  }
}

TEST_F(Execute, an_unwanted_result_of_a_node_is_left_out) {
  const std::string graph =
      "graph(%0: f32[4]) { _, %1: i64[4] = aten::sort.stable(%0) {stable=true,dim=0,descending=true} return %1 }";
  if (claims(graph)[0] == 0) LTC_UNSUPPORTED_BY_PLUGIN("not claimed: aten::sort.stable");
  const Executable executable = device().build(graph);
  const Buffer input = four();
  const auto outputs = device().run({executable, {input.get()}});
  EXPECT_EQ(device().download(outputs[0], DType::kI64, {4}).values<int64_t>(), (std::vector<int64_t>{3, 2, 1, 0}));
}

// ---- counts and types

class ExecuteWrong : public Execute {
 protected:
  void expect_refused(const Device::Run& run, const char* what) {
    EXPECT_EQ(code_text(run.submitted.code), "INVALID_ARGUMENT")
        << what << ": the contract: INVALID_ARGUMENT where a count or type differs from the graph's";
    if (!run.submitted) (void)device().finish(run.done);
  }
};

TEST_F(ExecuteWrong, too_few_inputs_are_refused) {
  const Executable executable = device().build(kAdd4);
  const Buffer a = four();
  expect_refused(device().submit({executable, {a.get()}}), "1 input of 2");
}
TEST_F(ExecuteWrong, too_many_inputs_are_refused) {
  const Executable executable = device().build(kNeg4);
  const Buffer a = four();
  expect_refused(device().submit({executable, {a.get(), a.get()}}), "2 inputs of 1");
}
TEST_F(ExecuteWrong, a_scalar_too_many_is_refused) {
  const Executable executable = device().build(kNeg4);
  const Buffer a = four();
  expect_refused(device().submit({executable, {a.get()}, 1, {number(1)}}), "1 scalar of 0");
}
TEST_F(ExecuteWrong, a_scalar_in_place_of_an_input_is_refused) {
  const Executable executable = device().build(kAdd4);
  const Buffer a = four();
  expect_refused(device().submit({executable, {a.get()}, 1, {number(1)}}), "1 input and 1 scalar for 2 inputs");
}
TEST_F(ExecuteWrong, an_output_too_many_is_refused) {
  const Executable executable = device().build(kNeg4);
  const Buffer a = four();
  expect_refused(device().submit({executable, {a.get()}, 2}), "2 outputs of 1");
}
TEST_F(ExecuteWrong, an_input_of_another_size_is_refused) {
  const Executable executable = device().build(kNeg4);
  const Buffer a = device().upload(Array::floats({1, 2}));
  expect_refused(device().submit({executable, {a.get()}}), "f32[2] for f32[4]");
}
TEST_F(ExecuteWrong, an_input_of_another_dtype_is_refused) {
  if (!device().supports(DType::kI32)) LTC_UNSUPPORTED_BY_PLUGIN("the device has no i32, of the same size as f32");
  const Executable executable = device().build(kNeg4);
  const Buffer a = device().upload(Array(DType::kI32, {4}));
  expect_refused(device().submit({executable, {a.get()}}), "i32[4] for f32[4]");
}
TEST_F(ExecuteWrong, a_refused_run_changes_nothing) {
  const Executable executable = device().build(kAdd4);
  const Buffer a = four();
  expect_refused(device().submit({executable, {a.get()}}), "1 input of 2");
  EXPECT_EQ(read(a), (Floats{1, 2, 3, 4}));
  EXPECT_EQ(read(device().run({executable, {a.get(), a.get()}})[0]), (Floats{2, 4, 6, 8}));
}
TEST_F(ExecuteWrong, a_refused_run_consumes_no_donated_input) {
  const Executable executable = device().build(kAdd4);
  const Buffer a = four();
  expect_refused(device().submit({executable, {a.get()}, 1, {}, {1}}), "1 input of 2");
  EXPECT_EQ(read(a), (Floats{1, 2, 3, 4})) << "a failed submit consumes nothing";
}

// ---- lifetimes

TEST_F(Execute, runs_leave_nothing_behind) {
  const Executable executable = device().build(kAdd4);
  const Buffer a = four();
  const auto growth = growth_per_time(2000, [&] { (void)device().run({executable, {a.get(), a.get()}}); });
  if (!growth) LTC_NOT_APPLICABLE("the allocator does not count");
  EXPECT_LT(*growth, kLeakBytes) << "bytes of host memory lost with each run";
}

TEST_F(Execute, refusals_leave_nothing_behind) {
  const Executable executable = device().build(kAdd4);
  const Buffer a = four();
  const auto growth = growth_per_time(1000, [&] { (void)device().submit({executable, {a.get()}}); });
  if (!growth) LTC_NOT_APPLICABLE("the allocator does not count");
  EXPECT_LT(*growth, kLeakBytes) << "bytes of host memory lost with each refused run";
}

TEST_F(Execute, programs_and_executables_leave_nothing_behind) {
  const auto growth = growth_per_time(
      100,
      [&] {
        (void)device().build(kAdd4);
        (void)four();  // executable_destroy takes effect in queue order
      },
      kCompilerLeakBytes);
  if (!growth) LTC_NOT_APPLICABLE("the allocator does not count");
  EXPECT_LT(*growth, kCompilerLeakBytes)
      << "bytes of host memory lost with each program that was lowered, compiled and destroyed";
}

TEST_F(Execute, a_device_closes_after_computing) {
  LTC_NEEDS_SECOND_OPEN();
  for (int i = 0; i < 10; ++i) {
    Device second(instance());
    const Executable executable = second.build(kNeg4);
    const Buffer input = second.upload(Array::floats({1, 2, 3, 4}));
    EXPECT_EQ(second.download(second.run({executable, {input.get()}})[0], DType::kF32, {4}).values<float>(),
              (Floats{-1, -2, -3, -4}));
  }
}

}  // namespace
}  // namespace ltc::conformance
