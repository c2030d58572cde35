// ltc/runtime.hpp, and by it ltc/runtime.h, with the sample plugin `minimal`.
#include "ltc/runtime.hpp"

#include <gmock/gmock.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <thread>

#include "core/deploy/testing/sample_archive.h"

namespace ltc::runtime {
namespace {

using deploy::testing::Entries;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class Runtime : public ::testing::Test {
 protected:
  Runtime() {
    std::filesystem::create_directory(folder_);
    std::ofstream(path_, std::ios::binary) << Entries().bytes();
  }
  ~Runtime() override { std::filesystem::remove_all(folder_); }

  // `step` with an input of six equal numbers: the doubled sum.
  static std::array<float, 6> step(Session& session, const Model& model, float number) {
    std::array<float, 6> x{}, doubled{};
    x.fill(number);
    session.run(0, {tensor(model.input(0, 0), x.data())}, {tensor(model.result(0, 0), doubled.data())});
    return doubled;
  }

  const std::string folder_ = std::filesystem::temp_directory_path() / ("ltc_runtime_" + std::to_string(getpid()));
  const std::string path_ = folder_ + "/a.ltc";
};

TEST_F(Runtime, AFunctionChangesTheStateOfItsSessionAlone) {
  const Model model(path_, LTC_TEST_PLUGIN);
  Session session(model), other(model);
  EXPECT_THAT(step(session, model, 1), ElementsAre(6, 8, 10, 12, 14, 16));
  EXPECT_THAT(step(session, model, 1), ElementsAre(10, 12, 14, 16, 18, 20));
  EXPECT_THAT(step(other, model, 0), ElementsAre(2, 4, 6, 8, 10, 12));
  std::array<float, 6> sum{};
  session.get_state(model.state("sum"), tensor(model.state_info(0), sum.data()));
  EXPECT_THAT(sum, ElementsAre(5, 6, 7, 8, 9, 10));
  session.reset();
  EXPECT_THAT(step(session, model, 0), ElementsAre(2, 4, 6, 8, 10, 12));
}

TEST_F(Runtime, TheStateGoesThroughAFile) {
  const Model model(path_, LTC_TEST_PLUGIN);
  Session session(model), other(model);
  step(session, model, 3);
  session.save(folder_ + "/state");
  other.load(folder_ + "/state");
  EXPECT_EQ(step(session, model, 1), step(other, model, 1));
  std::ofstream(folder_ + "/state") << "broken";
  EXPECT_THAT([&] { other.load(folder_ + "/state"); }, ThrowsMessage<Error>(HasSubstr("are no safetensors file")));
  EXPECT_EQ(step(session, model, 1), step(other, model, 1));
}

TEST_F(Runtime, WrongTensorsAreRefusedWithBothSides) {
  const Model model(path_, LTC_TEST_PLUGIN);
  Session session(model);
  std::array<float, 6> x{}, doubled{};
  const ltcr_tensor good = tensor(model.input(0, 0), x.data()), result = tensor(model.result(0, 0), doubled.data());
  const auto refused = [&](const ltcr_tensor& input, const char* text) {
    EXPECT_THAT([&] { session.run(0, {input}, {result}); }, ThrowsMessage<Error>(HasSubstr(text)));
  };
  const int64_t other_sizes[] = {3, 2};
  refused({LTC_F32, 2, other_sizes, x.data(), sizeof x}, "function step: input x is f32[3,2], and is to be f32[2,3]");
  refused({LTC_I32, 2, good.sizes, x.data(), sizeof x}, "input x is i32[2,3], and is to be f32[2,3]");
  refused({LTC_F32, 2, good.sizes, x.data(), 20}, "input x has 20 bytes, and f32[2,3] is 24");
  refused({LTC_F32, 2, good.sizes, nullptr, sizeof x}, "input x has no data");
  refused({LTC_F32, 2, nullptr, x.data(), sizeof x}, "sizes of a tensor is null");
  EXPECT_THAT(
      [&] {
        session.run(0, {good, good}, {result});
      },
      ThrowsMessage<Error>(HasSubstr("takes 1 inputs and gives 1 results")));
  EXPECT_THAT([&] { session.run(3, {good}, {result}); },
              ThrowsMessage<Error>(HasSubstr("there is no function 3: the model has 1")));
  EXPECT_THAT(step(session, model, 0), ElementsAre(2, 4, 6, 8, 10, 12));  // nothing was changed
}

TEST_F(Runtime, ResultsThatNobodyWantsAreNotWritten) {
  const Model model(path_, LTC_TEST_PLUGIN);
  Session session(model);
  std::array<float, 6> x{};
  session.run(0, {tensor(model.input(0, 0), x.data())}, {ltcr_tensor{}});
}

TEST_F(Runtime, WhatIsNotThereIsNamed) {
  EXPECT_THAT([&] { Model(folder_ + "/none.ltc"); }, ThrowsMessage<Error>(HasSubstr("none.ltc cannot be opened")));
  EXPECT_THAT([&] { Model(path_, "no_such_plugin"); }, ThrowsMessage<Error>(HasSubstr("no backend 'no_such_plugin'")));
  EXPECT_THAT([&] { Model(path_, LTC_TEST_PLUGIN, 8); }, ThrowsMessage<Error>(HasSubstr("flags 8 are not known")));
  const Model model(path_, LTC_TEST_PLUGIN);
  EXPECT_THAT([&] { model.function("walk"); }, ThrowsMessage<Error>(HasSubstr("has no function walk; it has step")));
  EXPECT_EQ(ltcr_input(model.get(), 1, 0), nullptr);
  EXPECT_EQ(ltcr_function_name(model.get(), 1), nullptr);
}

TEST_F(Runtime, AFailedCallSaysWhichStateWentWithIt) {
  const Model model(path_, LTC_TEST_PLUGIN_FOLDER "/libltc_test_fails.so");  // each second run fails
  Session session(model);
  const auto first = step(session, model, 1);
  const auto again = [&] { step(session, model, 1); };
  EXPECT_THAT(again, ThrowsMessage<Error>(HasSubstr("; lost with the call: state sum")));
  EXPECT_THAT(again, ThrowsMessage<Error>(HasSubstr("the value of state sum was lost with a call that failed")));
  session.reset();
  EXPECT_EQ(step(session, model, 1), first);
}

class LostDevice : public Runtime, public ::testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(Some, LostDevice, ::testing::Values("/libltc_test_lost.so", "/libltc_test_lost_async.so"));

// An asynchronous plugin has taken the value over before it tells of the loss.
const auto lost =
    ::testing::ContainsRegex("the value of state sum (lived on a device that was lost|was lost with a call that failed): set");

TEST_P(LostDevice, CostsTheRequestAndTheStateThatLivedOnIt) {
  const Model model(path_, std::string(LTC_TEST_PLUGIN_FOLDER) + GetParam());  // the first device is lost in its third run
  Session session(model), other(model);
  const auto first = step(session, model, 1);
  step(session, model, 1);
  const auto again = [&] { step(session, model, 1); };
  EXPECT_THAT(again, ThrowsMessage<Error>(HasSubstr("the cable was pulled")));
  EXPECT_THAT(again, ThrowsMessage<Error>(lost));
  EXPECT_EQ(step(other, model, 1), first);  // it has the archive's state
  EXPECT_THAT(again, ThrowsMessage<Error>(lost));
  session.reset();
  EXPECT_EQ(step(session, model, 1), first);
  other.save(folder_ + "/state");
  session.load(folder_ + "/state");
  EXPECT_EQ(step(session, model, 1), step(other, model, 1));
}

TEST_P(LostDevice, IsOpenAgainForWhatSetsTheState) {
  const Model model(path_, std::string(LTC_TEST_PLUGIN_FOLDER) + GetParam());
  Session session(model);
  const auto once = [&] { step(session, model, 1); };
  once(), once();
  EXPECT_THAT(once, ThrowsMessage<Error>(HasSubstr("the cable was pulled")));
  std::array<float, 6> sum{1, 1, 1, 1, 1, 1};
  const ltcr_tensor state = tensor(model.state_info(0), sum.data());
  EXPECT_THAT([&] { session.get_state(0, state); }, ThrowsMessage<Error>(lost));
  session.set_state(0, state);
  EXPECT_THAT(step(session, model, 1), ::testing::Each(6));
}

TEST_F(Runtime, NullsAreRefused) {
  EXPECT_THAT([&] { check(ltcr_model_load(nullptr, nullptr, nullptr)); }, ThrowsMessage<Error>("path is null"));
  EXPECT_THAT([&] { check(ltcr_session_create(nullptr, nullptr)); }, ThrowsMessage<Error>("model is null"));
  EXPECT_THAT([&] { check(ltcr_session_run(nullptr, 0, nullptr, 0, nullptr, 0)); }, ThrowsMessage<Error>("session is null"));
  EXPECT_THAT([&] { check(ltcr_session_get_state(nullptr, 0, nullptr)); }, ThrowsMessage<Error>("to is null"));
  EXPECT_THAT([&] { check(ltcr_session_save(nullptr, "a")); }, ThrowsMessage<Error>("session is null"));
  ltcr_model_destroy(nullptr), ltcr_session_destroy(nullptr), ltcr_error_destroy(nullptr);
}

TEST_F(Runtime, OptionsOfAnOlderProgramAreRead) {
  const ltcr_model_options options{offsetof(ltcr_model_options, flags), LTC_TEST_PLUGIN, 0xffffffff};
  ltcr_model* model = nullptr;
  check(ltcr_model_load(path_.c_str(), &options, &model));
  ltcr_model_destroy(model);
}

TEST_F(Runtime, AFunctionTakesAnySizeOfItsDimensions) {
  std::ofstream(path_, std::ios::binary) << deploy::testing::sized_entries().bytes();
  const Model model(path_, LTC_TEST_PLUGIN);
  Session session(model);
  const ltcr_tensor_info &x_info = model.input(0, 0), &scaled_info = model.result(0, 0);
  EXPECT_THAT(std::vector(x_info.sizes, x_info.sizes + 2), ElementsAre(-1, 3));
  EXPECT_EQ(x_info.size_bytes, 0u);
  ASSERT_EQ(ltcr_dimension_count(model.get(), 0), 1u);
  const ltcr_dimension* rows = ltcr_input_dimension(model.get(), 0, 0, 0);
  ASSERT_EQ(rows, ltcr_function_dimension(model.get(), 0, 0));
  EXPECT_EQ(std::tuple(std::string(rows->name), rows->min, rows->max), std::tuple("rows", 1, 100));
  EXPECT_EQ(ltcr_input_dimension(model.get(), 0, 0, 1), nullptr);
  EXPECT_EQ(ltcr_input_dimension(model.get(), 0, 1, 0), nullptr);
  EXPECT_EQ(ltcr_function_dimension(model.get(), 1, 0), nullptr);
  for (const int64_t count : {2, 5, 1, 100}) {
    const std::vector<int64_t> sizes{count, 3};
    std::vector<float> x(static_cast<size_t>(count) * 3, 2), scaled(x.size());
    const ltcr_tensor input = tensor(x_info, sizes, x.data(), x.size() * sizeof(float));
    EXPECT_EQ(model.result_sizes(0, {input}, 0), sizes);
    session.run(0, {input}, {tensor(scaled_info, sizes, scaled.data(), scaled.size() * sizeof(float))});
    EXPECT_THAT(scaled, ::testing::Each(2.0F * static_cast<float>(count)));
  }
  const auto refused = [&](const std::vector<int64_t>& sizes, ltc_dtype dtype, const char* text) {
    const ltcr_tensor input{dtype, static_cast<uint32_t>(sizes.size()), sizes.data(), nullptr, 0};
    EXPECT_THAT([&] { session.run(0, {input}, {ltcr_tensor{}}); }, ThrowsMessage<Error>(HasSubstr(text)));
    EXPECT_THAT([&] { model.result_sizes(0, {input}, 0); }, ThrowsMessage<Error>(HasSubstr(text)));
  };
  refused({101, 3}, LTC_F32, "function scale: input x: rows is 101, and is to be from 1 to 100");
  refused({4, 2}, LTC_F32, "input x is f32[4,2], and is to be f32[rows,3]");
  refused({4}, LTC_F32, "input x is f32[4], and is to be f32[rows,3]");
  refused({4, 3}, LTC_I32, "input x is i32[4,3], and is to be f32[rows,3]");
  int64_t sizes[2];
  EXPECT_THAT([&] { check(ltcr_result_sizes(model.get(), 0, nullptr, 0, 0, sizes, nullptr)); },
              ThrowsMessage<Error>(HasSubstr("takes 1 inputs, and was given 0")));
  EXPECT_THAT([&] { check(ltcr_result_sizes(model.get(), 0, nullptr, 0, 7, sizes, nullptr)); },
              ThrowsMessage<Error>(HasSubstr("there is no result 7")));
}

class Instances : public Runtime, public ::testing::WithParamInterface<uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Some, Instances, ::testing::Values(1, 3));

TEST_P(Instances, SessionsOfThreadsAreApart) {
  const Model model(path_, LTC_TEST_PLUGIN, 0, GetParam());
  std::vector<std::array<float, 6>> last(4);
  std::vector<std::thread> threads;
  for (auto& mine : last) {
    threads.emplace_back([&] {
      Session session(model);
      for (int i = 0; i < 200; ++i) mine = step(session, model, 1);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& mine : last) EXPECT_THAT(mine, ElementsAre(802, 804, 806, 808, 810, 812));
}

}  // namespace
}  // namespace ltc::runtime
