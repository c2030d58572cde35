// The errors tier: refusals, work that fails, and that the device goes on behind both.
#include <algorithm>

#include "conformance/kit/fixture.h"
#include "conformance/kit/in_threads.h"
#include "core/base/utf8.h"
#include "core/compile/lowering/abi_graph.h"
#include "core/host/sized.h"
#include "core/ir/text.h"
#include "ltc/entry.h"

namespace ltc::conformance {
namespace {

using Floats = std::vector<float>;

constexpr const char* kGather =
    "graph(%0: f32[4], %1: i64[4]) { %2: f32[4] = aten::gather(%0, %1) {dim=0,sparse_grad=false} return %2 }";
constexpr const char* kScatter = "graph(%0: f32[4], %1: i64[4]) { %2: f32[4] = aten::scatter.src(%0, %1, %0) {dim=0} return %2 }";
constexpr const char* kScatterAdd =
    "graph(%0: f32[4], %1: i64[4]) { %2: f32[4] = aten::scatter_add(%0, %1, %0) {dim=0} return %2 }";

class Errors : public MemoryTest {
 protected:
  Buffer four() { return device().upload(Array::floats({1, 2, 3, 4})); }

  // The device does all that it could before.
  void expect_alive() {
    EXPECT_EQ(device().download(four(), DType::kF32, {4}).values<float>(), (Floats{1, 2, 3, 4}));
    if (!instance().computes()) return;
    const Executable executable = device().build(kNeg4);
    const Buffer input = four();
    const auto outputs = device().run({executable, {input.get()}});
    EXPECT_EQ(device().download(outputs[0], DType::kF32, {4}).values<float>(), (Floats{-1, -2, -3, -4}));
  }
  Failure bad_copy(const Buffer& buffer) {
    float data[8] = {};
    Event done;
    return device().transfer(to_device(buffer, data, 32), done);
  }
  Failure bad_dtype() {
    Buffer buffer;
    const Sizes sizes{4};
    ltc_type type = abi_type(DType::kF32, sizes);
    type.dtype = 999;
    return device().create_buffer(type, buffer);
  }
};

TEST_F(Errors, a_refused_copy_says_why) { EXPECT_NE(bad_copy(four()).message, "") << "say what was wrong with which values"; }

TEST_F(Errors, a_refused_copy_names_the_values) {
  const std::string message = bad_copy(four()).message;
  EXPECT_TRUE(std::ranges::any_of(message, [](unsigned char c) { return std::isdigit(c); }) ||
              message.find("range") != message.npos)
      << "say what was wrong with which values: '" << message << "'";
}

TEST_F(Errors, a_refused_buffer_says_why) { EXPECT_NE(bad_dtype().message, ""); }
TEST_F(Errors, a_refused_copy_is_about_no_node) { EXPECT_EQ(bad_copy(four()).node, LTC_NONE); }
TEST_F(Errors, a_refused_buffer_is_about_no_node) { EXPECT_EQ(bad_dtype().node, LTC_NONE); }

TEST_F(Errors, each_refusal_is_an_error_of_its_own) {
  const Buffer buffer = four();
  const Sizes sizes{4};
  ltc_type type = abi_type(DType::kF32, sizes);
  type.dtype = 999;
  auto args = host::sized<ltc_buffer_args>();
  args.type = &type;
  ltc_buffer* made = nullptr;
  ltc_status* first = api().buffer_create(device().get(), &args, &made);
  ltc_status* second = api().buffer_create(device().get(), &args, &made);
  EXPECT_NE(first, second) << "the receiver destroys a status: each must be a new one";
  host::status_destroy(first);
  if (second != first) host::status_destroy(second);
}

TEST_F(Errors, the_device_goes_on_after_refused_copies) {
  const Buffer buffer = four();
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(bad_copy(buffer));
  expect_alive();
}

TEST_F(Errors, the_device_goes_on_after_refused_buffers) {
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(bad_dtype());
  expect_alive();
}

TEST_F(Errors, a_message_is_text) {
  for (const Failure& failure : {bad_copy(four()), bad_dtype()}) {
    EXPECT_EQ(failure.message, valid_utf8(failure.message)) << "the contract: strings are UTF-8";
    EXPECT_TRUE(std::ranges::all_of(failure.message, [](unsigned char c) { return c >= 0x20 || c == '\n' || c == '\t'; }))
        << "control characters in '" << failure.message << "'";
  }
}

// ---- of plugins that compute

class ErrorsCompute : public Errors {
 protected:
  void SetUp() override {
    Errors::SetUp();
    if (!IsSkipped() && !instance().computes()) LTC_NOT_APPLICABLE("the plugin holds memory and does not compute");
  }

  bool claims(const std::string& text) {
    const Graph graph = parse(text);
    std::vector<uint32_t> clusters;
    EXPECT_OK(device().claims(*AbiGraph(graph).get(), clusters));
    return clusters[0] != 0;
  }

  // The process and other buffers are safe, whatever index tensors hold. The error, if there is one, is the run's.
  void expect_safe(const char* graph, const std::vector<int64_t>& index) {
    if (!device().supports(DType::kI64) || !claims(graph)) LTC_UNSUPPORTED_BY_PLUGIN("not claimed: ", graph);
    const Executable executable = device().build(graph);
    const Buffer witness = four(), input = four(), indices = device().upload(Array::of(DType::kI64, {4}, index));
    const auto run = device().submit({executable, {input.get(), indices.get()}});
    if (!run.submitted) (void)device().finish(run.done);
    for (const Buffer* buffer : {&witness, &input}) {
      EXPECT_EQ(device().download(*buffer, DType::kF32, {4}).values<float>(), (Floats{1, 2, 3, 4}))
          << "a buffer beside it changed";
    }
    expect_alive();
  }
};

TEST_F(ErrorsCompute, gather_is_memory_safe_for_an_index_beyond_the_end) { expect_safe(kGather, {0, 4, 5, 1 << 20}); }
TEST_F(ErrorsCompute, gather_is_memory_safe_for_a_negative_index) { expect_safe(kGather, {0, -1, -5, -(1 << 20)}); }
TEST_F(ErrorsCompute, gather_is_memory_safe_for_a_huge_index) { expect_safe(kGather, {INT64_MAX, INT64_MIN, INT64_MAX / 4, 0}); }
TEST_F(ErrorsCompute, scatter_is_memory_safe_for_an_index_beyond_the_end) { expect_safe(kScatter, {0, 4, 5, 1 << 20}); }
TEST_F(ErrorsCompute, scatter_is_memory_safe_for_a_huge_index) { expect_safe(kScatter, {INT64_MAX, INT64_MIN, -1, 0}); }
TEST_F(ErrorsCompute, scatter_add_is_memory_safe_for_an_index_beyond_the_end) { expect_safe(kScatterAdd, {0, 4, -5, 1 << 20}); }
TEST_F(ErrorsCompute, scatter_add_is_memory_safe_for_a_huge_index) { expect_safe(kScatterAdd, {INT64_MAX, INT64_MIN, -1, 0}); }

TEST_F(ErrorsCompute, a_run_that_works_reports_no_error) {
  const Executable executable = device().build(kNeg4);
  const Buffer input = four();
  for (int i = 0; i < 50; ++i) {
    const auto run = device().submit({executable, {input.get()}});
    ASSERT_OK(run.submitted) << run.submitted << " in run " << i;
    const Failure failure = device().finish(run.done);
    ASSERT_OK(failure) << failure << " in run " << i;
  }
}

TEST_F(ErrorsCompute, an_output_too_large_for_the_device_is_an_error) {
  const std::string graph = cat("graph() { %0: f32[", int64_t{1} << 55, "] = aten::full() {size=[", int64_t{1} << 55,
                                "],fill_value=1.0,dtype=f32} return %0 }");
  if (!claims(graph)) LTC_UNSUPPORTED_BY_PLUGIN("not claimed: aten::full of 2^57 bytes");
  const Graph parsed = parse(graph);
  const AbiGraph abi(parsed);
  Program program;
  Failure failure = device().lower(*abi.get(), program);
  Executable executable;
  auto args = host::sized<ltc_compile_args>();
  args.program = program.get();
  if (!failure) failure = device().compile(args, executable);
  if (!failure) {
    const auto run = device().submit({executable, {}});
    failure = run.submitted ? run.submitted : device().finish(run.done);
  }
  EXPECT_TRUE(failure) << "2^57 bytes were made";
  expect_alive();
}

TEST_F(ErrorsCompute, refused_graphs_leave_the_device_working) {
  const Graph graph = parse("graph(%0: f32[4]) { %1: f32[4] = vendor::x(%0) return %1 }");
  const AbiGraph abi(graph);
  for (int i = 0; i < 100; ++i) {
    Program program;
    EXPECT_TRUE(device().lower(*abi.get(), program));
  }
  expect_alive();
}

TEST_F(ErrorsCompute, a_refused_node_says_why) {
  const Graph graph = parse("graph(%0: f32[4]) { %1: f32[4] = vendor::x(%0) return %1 }");
  Program program;
  EXPECT_NE(device().lower(*AbiGraph(graph).get(), program).message, "");
}

TEST_F(ErrorsCompute, refused_runs_leave_the_device_working) {
  const Executable executable = device().build(kAdd4);
  const Buffer input = four();
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(device().submit({executable, {input.get()}}).submitted);
  expect_alive();
}

TEST_F(ErrorsCompute, a_refused_run_says_why) {
  const Executable executable = device().build(kAdd4);
  const Buffer input = four();
  EXPECT_NE(device().submit({executable, {input.get()}}).submitted.message, "");
}

// Work that fails while it runs, where there is a way to make it fail: an index out of range.
class ErrorsLate : public ErrorsCompute {
 protected:
  // A run that failed after its submit; its event is empty where the plugin reported no such failure.
  Device::Run failing() {
    if (!device().supports(DType::kI64) || !claims(kGather)) return {};
    const Executable executable = device().build(kGather);
    const Buffer input = four(), indices = device().upload(Array::of<int64_t>(DType::kI64, {4}, {0, 99, 0, 0}));
    auto run = device().submit({executable, {input.get(), indices.get()}});
    if (run.submitted || !run.done || !device().finish(run.done)) return {};
    return run;
  }
};

#define LTC_FAILING_RUN(run)  \
  const auto run = failing(); \
  if (!(run).done) LTC_NOT_APPLICABLE("no way is known to make work of this plugin fail while it runs")

TEST_F(ErrorsLate, a_failed_run_says_why_each_time_it_is_asked) {
  LTC_FAILING_RUN(run);
  const Failure first = device().finish(run.done);
  for (int i = 0; i < 10; ++i) {
    const Failure again = device().finish(run.done);
    EXPECT_EQ(again.code, first.code) << "asked again, the " << i << "th time";
    EXPECT_EQ(again.message, first.message);
  }
  EXPECT_NE(first.message, "");
}

TEST_F(ErrorsLate, a_failed_run_is_over) {
  LTC_FAILING_RUN(run);
  for (const uint64_t timeout : {LTC_FOREVER, uint64_t{0}}) {
    bool finished = false;
    EXPECT_TRUE(device().wait(run.done, timeout, finished));
    EXPECT_TRUE(finished) << "the contract: an error of the work comes with *finished true; with false the wait itself failed";
  }
}

TEST_F(ErrorsLate, the_outputs_of_a_failed_run_are_allocated) {
  LTC_FAILING_RUN(run);
  EXPECT_NO_THROW((void)device().download(run.outputs[0], DType::kF32, {4}));
}

TEST_F(ErrorsLate, outputs_that_are_good_all_the_same_hold_their_values) {
  if (!LTC_GET(&api(), ltc_plugin_api, event_good_outputs))
    LTC_NOT_APPLICABLE("the plugin does not say which outputs of a failed run are good");
  const Executable executable = device().build(
      "graph(%0: f32[4], %1: i64[4]) { %2: f32[4] = aten::neg(%0) %3: f32[4] = aten::gather(%0, %1) {dim=0, sparse_grad=false} "
      "%4: f32[4] = aten::neg(%3) %5: f32[4] = aten::exp(%2) %6: f32[4] = aten::neg(%2) return %2, %3, %4, %6 }");
  const Buffer input = four(), indices = device().upload(Array::of<int64_t>(DType::kI64, {4}, {0, 99, 0, 0}));
  const auto run = device().submit({executable, {input.get(), indices.get()}, 4});
  if (run.submitted || !run.done || !device().finish(run.done))
    LTC_NOT_APPLICABLE("no way is known to make work of this plugin fail while it runs");
  uint8_t good[4] = {};
  ASSERT_OK(Instance::asked("event_good_outputs", [&] { return api().event_good_outputs(run.done.get(), 4, good); }));
  EXPECT_FALSE(good[1]) << "output 1 was gathered with an index out of range";
  EXPECT_FALSE(good[2]) << "output 2 depends on output 1";
  if (good[0]) {
    EXPECT_EQ(device().download(run.outputs[0], DType::kF32, {4}).values<float>(), (Floats{-1, -2, -3, -4}));
  }
  if (good[3]) {
    EXPECT_EQ(device().download(run.outputs[3], DType::kF32, {4}).values<float>(), (Floats{1, 2, 3, 4}));
  }
}

TEST_F(ErrorsLate, a_failed_run_does_not_stop_the_queue) {
  LTC_FAILING_RUN(run);
  expect_alive();
}

TEST_F(ErrorsLate, a_failed_run_is_not_reported_by_other_events) {
  const Executable executable = device().build(kNeg4);
  const Buffer input = four();
  LTC_FAILING_RUN(run);
  const auto later = device().submit({executable, {input.get()}});
  ASSERT_OK(later.submitted);
  EXPECT_OK(device().finish(later.done)) << "the error belongs to the event of the work that failed";
}

TEST_F(ErrorsLate, several_threads_are_told_of_a_failed_run) {
  LTC_FAILING_RUN(run);
  in_threads(8, [&](int) {
    for (int i = 0; i < 20; ++i) EXPECT_TRUE(device().finish(run.done));
  });
}

TEST_F(ErrorsLate, a_failed_run_may_be_forgotten) {
  if (!device().supports(DType::kI64) || !claims(kGather)) LTC_UNSUPPORTED_BY_PLUGIN("not claimed: ", kGather);
  const Executable executable = device().build(kGather);
  const Buffer input = four(), indices = device().upload(Array::of<int64_t>(DType::kI64, {4}, {0, 99, 0, 0}));
  for (int i = 0; i < 20; ++i) (void)device().submit({executable, {input.get(), indices.get()}});
  expect_alive();
}

TEST_F(ErrorsLate, the_outputs_of_a_failed_run_may_be_inputs) {
  LTC_FAILING_RUN(run);
  const Executable executable = device().build(kNeg4);
  const auto later = device().submit({executable, {run.outputs[0].get()}});
  ASSERT_OK(later.submitted);
  EXPECT_OK(device().finish(later.done)) << "it is the host that treats what depends on failed work as failed";
  expect_alive();
}

TEST_F(ErrorsLate, the_outputs_of_a_failed_run_may_be_overwritten) {
  LTC_FAILING_RUN(run);
  const Floats data{5, 6, 7, 8};
  Event done;
  ASSERT_OK(device().transfer(to_device(run.outputs[0], data.data(), 16), done));
  ASSERT_OK(device().finish(done));
  EXPECT_EQ(device().download(run.outputs[0], DType::kF32, {4}).values<float>(), data);
}

TEST_F(ErrorsLate, an_index_out_of_range_has_its_code) {
  LTC_FAILING_RUN(run);
  EXPECT_EQ(code_text(device().finish(run.done).code), "OUT_OF_RANGE") << "the program catches IndexError by it";
}

TEST_F(ErrorsLate, good_outputs_are_marked_with_0_or_1_and_no_more) {
  if (!LTC_GET(&api(), ltc_plugin_api, event_good_outputs))
    LTC_NOT_APPLICABLE("the plugin does not say which outputs of a failed run are good");
  LTC_FAILING_RUN(run);
  uint8_t good[] = {0, 0xcc, 0xcc};
  ASSERT_OK(Instance::asked("event_good_outputs", [&] { return api().event_good_outputs(run.done.get(), 1, good); }));
  EXPECT_LE(good[0], 1);
  EXPECT_EQ(good[1], 0xcc) << "wrote behind the last output's entry";
}

}  // namespace
}  // namespace ltc::conformance
