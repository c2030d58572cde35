// The execute tier: arguments of runs, their counts, numbers that are passed by value, donations in parts.
#include "conformance/kit/late_sink.h"
#include "conformance/tiers/execute_fixture.h"
#include "core/base/utf8.h"

namespace ltc::conformance {
namespace {

class ExecuteArguments : public Execute {
 protected:
  void expect_refused(const Device::Run& run, const char* what) {
    EXPECT_EQ(code_text(run.submitted.code), "INVALID_ARGUMENT") << what;
    if (!run.submitted) (void)device().finish(run.done);
  }
};

// ---- counts

TEST_F(ExecuteArguments, an_output_too_few_is_refused) {
  const Executable executable =
      device().build("graph(%0: f32[4]) { %1: f32[4] = aten::neg(%0) %2: f32[4] = aten::neg(%1) return %1, %2 }");
  const Buffer a = four();
  expect_refused(device().submit({executable, {a.get()}, 1}), "1 output of 2");
}

TEST_F(ExecuteArguments, no_inputs_for_some_are_refused) {
  const Executable executable = device().build(kNeg4);
  expect_refused(device().submit({executable, {}}), "0 inputs of 1");
}

TEST_F(ExecuteArguments, a_missing_scalar_is_refused) {
  const std::string graph = "graph(%0: f64 scalar) { %1: f32[4] = aten::full(%0) {size=[4],dtype=f32} return %1 }";
  if (claims(graph)[0] == 0) LTC_UNSUPPORTED_BY_PLUGIN("not claimed: ", graph);
  expect_refused(device().submit({device().build(graph), {}}), "0 scalars of 1");
}

TEST_F(ExecuteArguments, an_input_in_place_of_a_scalar_is_refused) {
  const std::string graph = "graph(%0: f64 scalar) { %1: f32[4] = aten::full(%0) {size=[4],dtype=f32} return %1 }";
  if (claims(graph)[0] == 0) LTC_UNSUPPORTED_BY_PLUGIN("not claimed: ", graph);
  const Buffer a = four();
  expect_refused(device().submit({device().build(graph), {a.get()}}), "an input in place of a scalar");
}

TEST_F(ExecuteArguments, a_larger_input_is_refused) {
  const Executable executable = device().build(kNeg4);
  const Buffer a = device().upload(Array::floats({1, 2, 3, 4, 5}));
  expect_refused(device().submit({executable, {a.get()}}), "f32[5] for f32[4]");
}

TEST_F(ExecuteArguments, an_empty_input_is_refused) {
  const Executable executable = device().build(kNeg4);
  const Buffer a = device().buffer(DType::kF32, {0});
  expect_refused(device().submit({executable, {a.get()}}), "f32[0] for f32[4]");
}

TEST_F(ExecuteArguments, the_second_of_two_inputs_counts_too) {
  const Executable executable = device().build(kAdd4);
  const Buffer a = four(), b = device().upload(Array::floats({1, 2}));
  expect_refused(device().submit({executable, {a.get(), b.get()}}), "f32[2] for the second f32[4]");
}

// ---- arguments that may be anything

TEST_F(ExecuteArguments, the_run_id_is_only_for_traces) {
  const Executable executable = device().build(kNeg4);
  const Buffer a = four();
  ltc_buffer* const inputs[] = {a.get()};
  for (const uint64_t id : {uint64_t{0}, uint64_t{1}, uint64_t{1}, UINT64_MAX}) {
    auto args = host::sized<ltc_execute_args>();
    args.executable = executable.get();
    args.input_count = args.output_count = 1;
    args.inputs = inputs;
    args.run_id = id;
    ltc_buffer* output = nullptr;
    ltc_event* event = nullptr;
    ASSERT_OK(Instance::asked("execute", [&] { return api().execute(device().get(), &args, &output, &event); })) << "run " << id;
    const Event done(device(), event);
    const Buffer owned(device(), output);
    EXPECT_OK(device().finish(done));
    EXPECT_EQ(read(owned), (Floats{-1, -2, -3, -4}));
  }
}

TEST_F(ExecuteArguments, arrays_of_no_entries_may_be_null) {
  const std::string graph = "graph() { %0: f32[4] = aten::full() {size=[4],fill_value=2.0,dtype=f32} return %0 }";
  if (claims(graph)[0] == 0) LTC_UNSUPPORTED_BY_PLUGIN("not claimed: ", graph);
  const Executable executable = device().build(graph);
  auto args = host::sized<ltc_execute_args>();
  args.executable = executable.get();
  args.output_count = 1;
  ltc_buffer* output = nullptr;
  ltc_event* event = nullptr;
  ASSERT_OK(Instance::asked("execute", [&] { return api().execute(device().get(), &args, &output, &event); }));
  const Event done(device(), event);
  const Buffer owned(device(), output);
  EXPECT_OK(device().finish(done));
  EXPECT_EQ(read(owned), (Floats{2, 2, 2, 2}));
}

TEST_F(ExecuteArguments, arguments_of_a_run_are_only_read) {
  const Executable executable = device().build(kAdd4);
  const Buffer a = four(), b = four();
  ltc_buffer* inputs[] = {a.get(), b.get()};
  uint8_t donate[] = {0, 0};
  auto args = host::sized<ltc_execute_args>();
  args.executable = executable.get();
  args.input_count = 2;
  args.inputs = inputs;
  args.donate = donate;
  args.output_count = 1;
  ltc_execute_args before;
  std::memcpy(&before, &args, sizeof args);
  ltc_buffer* output = nullptr;
  ltc_event* event = nullptr;
  ASSERT_OK(Instance::asked("execute", [&] { return api().execute(device().get(), &args, &output, &event); }));
  const Event done(device(), event);
  const Buffer owned(device(), output);
  EXPECT_OK(device().finish(done));
  EXPECT_EQ(std::memcmp(&before, &args, sizeof args), 0);
  EXPECT_EQ(inputs[0], a.get());
  EXPECT_EQ(inputs[1], b.get());
}

TEST_F(ExecuteArguments, executables_take_turns) {
  const Executable neg = device().build(kNeg4), add = device().build(kAdd4), mul = device().build(kMul4);
  const Buffer a = four();
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(read(device().run({neg, {a.get()}})[0]), (Floats{-1, -2, -3, -4}));
    EXPECT_EQ(read(device().run({add, {a.get(), a.get()}})[0]), (Floats{2, 4, 6, 8}));
    EXPECT_EQ(read(device().run({mul, {a.get(), a.get()}})[0]), (Floats{1, 4, 9, 16}));
  }
}

TEST_F(ExecuteArguments, executables_of_one_program_run_side_by_side) {
  const Program program = device().lower(kNeg4);
  const Executable first = device().compile(program), second = device().compile(program);
  const Buffer a = four(), b = device().upload(Array::floats({5, 6, 7, 8}));
  const auto one = device().submit({first, {a.get()}}), two = device().submit({second, {b.get()}});
  EXPECT_EQ(read(one.outputs[0]), (Floats{-1, -2, -3, -4}));
  EXPECT_EQ(read(two.outputs[0]), (Floats{-5, -6, -7, -8}));
}

// ---- numbers that are passed by value

TEST_F(ExecuteArguments, a_whole_number_is_passed_as_it_is) {
  if (!device().supports(DType::kI64)) LTC_UNSUPPORTED_BY_PLUGIN("the device has no i64");
  const std::string graph = "graph(%0: i64 scalar) { %1: i64[2] = aten::full(%0) {size=[2],dtype=i64} return %1 }";
  if (claims(graph)[0] == 0) LTC_UNSUPPORTED_BY_PLUGIN("not claimed: ", graph);
  const Executable executable = device().build(graph);
  for (const int64_t value : {int64_t{7}, INT64_MIN, INT64_MAX}) {
    const auto outputs = device().run({executable, {}, 1, {integer(value)}});
    EXPECT_EQ(device().download(outputs[0], DType::kI64, {2}).values<int64_t>(), (std::vector<int64_t>{value, value}));
  }
}

TEST_F(ExecuteArguments, a_truth_value_is_passed_as_it_is) {
  if (!device().supports(DType::kBool)) LTC_UNSUPPORTED_BY_PLUGIN("the device has no bool");
  const std::string graph = "graph(%0: bool scalar) { %1: bool[2] = aten::full(%0) {size=[2],dtype=bool} return %1 }";
  if (claims(graph)[0] == 0) LTC_UNSUPPORTED_BY_PLUGIN("not claimed: ", graph);
  const Executable executable = device().build(graph);
  for (const int64_t value : {int64_t{1}, int64_t{0}}) {
    const auto outputs = device().run({executable, {}, 1, {integer(value)}});
    EXPECT_EQ(device().download(outputs[0], DType::kBool, {2}).values<uint8_t>(),
              (std::vector<uint8_t>(2, static_cast<uint8_t>(value))));
  }
}

TEST_F(ExecuteArguments, scalars_follow_the_order_of_the_params) {
  const std::string graph =
      "graph(%0: f64 scalar, %1: f32[4], %2: f64 scalar) { %3: f32[4] = aten::full(%0) {size=[4],dtype=f32} %4: f32[4] = "
      "aten::full(%2) {size=[4],dtype=f32} %5: f32[4] = aten::mul.Tensor(%1, %3) %6: f32[4] = aten::add.Tensor(%5, %4) {alpha=1} "
      "return %6 }";
  if (std::ranges::count(claims(graph), 0u)) LTC_UNSUPPORTED_BY_PLUGIN("not claimed: ", graph);
  const Executable executable = device().build(graph);
  const Buffer a = four();
  EXPECT_EQ(read(device().run({executable, {a.get()}, 1, {number(10), number(0.5)}})[0]), (Floats{10.5, 20.5, 30.5, 40.5}));
}

TEST_F(ExecuteArguments, scalars_may_change_when_execute_returns) {
  const std::string graph = "graph(%0: f64 scalar) { %1: f32[4] = aten::full(%0) {size=[4],dtype=f32} return %1 }";
  if (claims(graph)[0] == 0) LTC_UNSUPPORTED_BY_PLUGIN("not claimed: ", graph);
  const Executable executable = device().build(graph);
  std::vector<Device::Run> runs;
  for (int i = 0; i < 50; ++i) {
    Device::RunArgs args{executable, {}, 1, {number(i)}};
    runs.push_back(device().submit(args));
    args.scalars[0] = number(-1);
  }
  for (int i = 0; i < 50; ++i) EXPECT_EQ(read(runs[static_cast<size_t>(i)].outputs[0])[0], static_cast<float>(i));
}

// ---- donations

class ExecuteDonationParts : public Execute {};

TEST_F(ExecuteDonationParts, only_the_donated_one_of_two_inputs_goes) {
  const Executable executable = device().build(kAdd4);
  const Buffer kept = four();
  Buffer given = device().upload(Array::floats({10, 20, 30, 40}));
  const auto outputs = device().run({executable, {kept.get(), given.get()}, 1, {}, {0, 1}});
  (void)given.release();
  std::vector<Buffer> others;  // where the donated one was
  for (int i = 0; i < 20; ++i) others.push_back(device().upload(Array::floats({9, 9, 9, 9})));
  EXPECT_EQ(read(kept), (Floats{1, 2, 3, 4}));
  EXPECT_EQ(read(outputs[0]), (Floats{11, 22, 33, 44}));
}

TEST_F(ExecuteDonationParts, an_alias_may_have_another_shape) {
  const std::string graph = "graph(%0: f32[4] -> 0) { %1: f32[2,2] = aten::reshape(%0) {shape=[2,2]} return %1 }";
  if (claims(graph)[0] == 0) LTC_UNSUPPORTED_BY_PLUGIN("not claimed: ", graph);
  const Executable executable = device().build(graph);
  Buffer input = four();
  const auto outputs = device().run({executable, {input.get()}, 1, {}, {1}});
  (void)input.release();
  EXPECT_EQ(floats(outputs[0], {2, 2}), (Floats{1, 2, 3, 4})) << "the same dtype and size in bytes";
}

TEST_F(ExecuteDonationParts, a_donation_to_a_broadcast_output_is_read_whole) {
  const Executable executable = device().build(
      "graph(%0: f32[4] -> 0, %1: f32[1]) { %2: f32[4] = aten::mul.Tensor(%0, %1) %3: f32[4] = aten::add.Tensor(%2, %0) "
      "{alpha=1} return %3 }");
  Buffer input = four();
  const Buffer two = device().upload(Array::floats({2}));
  const auto outputs = device().run({executable, {input.get(), two.get()}, 1, {}, {1, 0}});
  (void)input.release();
  EXPECT_EQ(read(outputs[0]), (Floats{3, 6, 9, 12})) << "the input's memory was reused before its last reader";
}

TEST_F(ExecuteDonationParts, what_a_donation_becomes_is_destroyed_and_donated_like_any_buffer) {
  const Executable executable = device().build("graph(%0: f32[4] -> 0) { %1: f32[4] = aten::neg(%0) return %1 }");
  for (int i = 0; i < 50; ++i) {
    Buffer value = four();
    auto outputs = device().run({executable, {value.get()}, 1, {}, {1}});
    (void)value.release();
    auto again = device().run({executable, {outputs[0].get()}, 1, {}, {1}});
    (void)outputs[0].release();
    EXPECT_EQ(read(again[0]), (Floats{1, 2, 3, 4}));
  }
}

// ---- texts of programs

class ExecuteText : public Execute {
 protected:
  void SetUp() override {
    Execute::SetUp();
    if (!IsSkipped() && !api().program_text) LTC_NOT_APPLICABLE("the plugin has no program_text");
  }
};

TEST_F(ExecuteText, program_text_is_in_utf8) {
  const std::string text = program_text(device().lower(kAdd4));
  EXPECT_EQ(text, valid_utf8(text)) << "a text for people";
}

TEST_F(ExecuteText, program_text_is_written_after_compile) {
  const Program program = device().lower(std::string(kAdd4));
  (void)device().compile(program);
  EXPECT_NE(program_text(program), "") << "compile borrows the program";
}

TEST_F(ExecuteText, the_context_of_a_sink_may_be_null) {
  static std::string text;
  text.clear();
  const Program program = device().lower(kAdd4);
  const ltc_sink sink{nullptr, [](void* context, const void* data, size_t size) {
                        EXPECT_EQ(context, nullptr);
                        text.append(static_cast<const char*>(data), size);
                        return true;
                      }};
  EXPECT_OK(Instance::asked("program_text", [&] { return api().program_text(program.get(), &sink); }));
  EXPECT_NE(text, "");
}

TEST_F(ExecuteText, the_sink_is_left_alone_when_program_text_has_returned) {
  Program program = device().lower(kNeg4);
  LateSink late;
  EXPECT_OK(Instance::asked("program_text", [&] { return api().program_text(program.get(), &late.sink()); }));
  late.end();
  (void)program_text(program);
  const Executable executable = device().compile(program);
  program.reset();
  const Buffer input = four();
  EXPECT_EQ(read(device().run({executable, {input.get()}})[0]), (Floats{-1, -2, -3, -4}));
  EXPECT_FALSE(late.was_late()) << LateSink::kClause;
}

// ---- the type of what a run gives

TEST_F(Execute, an_output_of_another_dtype_is_an_input_of_the_next_run) {
  const std::string graph = "graph(%0: i64[4]) { %1: i64[4] = aten::neg(%0) return %1 }";
  if (!device().supports(DType::kI64) || !claims(graph)[0]) LTC_UNSUPPORTED_BY_PLUGIN("not claimed: aten::neg of i64");
  const Executable executable = device().build(graph);
  const Buffer input = device().upload(Array::of<int64_t>(DType::kI64, {4}, {1, 2, 3, 4}));
  const auto once = device().run({executable, {input.get()}});
  const auto twice = device().run({executable, {once[0].get()}});
  EXPECT_EQ(device().download(twice[0], DType::kI64, {4}).values<int64_t>(), (std::vector<int64_t>{1, 2, 3, 4}));
}

// The words come from the definition in ltc/plugin.h. Both numbers need more than 32 bits, and the counter carries.
TEST_F(Execute, random_numbers_use_all_bits_of_seed_and_offset) {
  const std::string graph =
      "graph(%0: i64 scalar, %1: i64 scalar) { %2: i32[8] = ltc::philox(%0, %1) {size=[8],dtype=i32} return %2 }";
  if (!device().supports(DType::kI32) || !claims(graph)[0]) LTC_UNSUPPORTED_BY_PLUGIN("not claimed: ltc::philox of i32");
  const Executable executable = device().build(graph);
  const auto outputs = device().run({executable, {}, 1, {integer(0x123456789abcdef0), integer(0x2ffffffff)}});
  EXPECT_EQ(
      device().download(outputs[0], DType::kI32, {8}).values<int32_t>(),
      (std::vector<int32_t>{-579480378, -489270600, 2092292801, 974232162, -268627425, 1111156593, 2125392497, -1881973997}));
}

}  // namespace
}  // namespace ltc::conformance
