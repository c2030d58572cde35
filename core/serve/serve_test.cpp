#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "core/serve/inference_protocol.h"
#include "core/serve/metrics.h"
#include "core/serve/scheduler.h"
#include "core/serve/testing/gate.h"
#include "core/serve/testing/message_of.h"

namespace ltc::serve {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using testing::Gate;
using ::testing::HasSubstr;
using testing::message_of;

// "double": f32[batch,2] -> f32[batch,2].
ServedFunction twice(int64_t max_rows) {
  ServedFunction function;
  function.name = "double";
  function.dimensions = {{"batch", 1, 8, 2, {}}};
  const std::vector<int64_t> sizes{2, 2};
  const deploy::Formula batch{{0}, 1, 0, 1}, two{{}, 0, 2, 1};
  function.inputs = {{"x", intern_contiguous(DType::kF32, sizes), {batch, two}}};
  function.results = {{"y", intern_contiguous(DType::kF32, sizes), {batch, two}}};
  function.max_rows = max_rows;
  return function;
}

RequestRef make_request(const std::vector<float>& values) {
  const std::string bytes(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  json header = {{"inputs",
                  {{{"name", "x"},
                    {"datatype", "FP32"},
                    {"shape", {values.size() / 2, 2}},
                    {"parameters", {{"binary_data_size", bytes.size()}}}}}}};
  const std::string text = header.dump();
  return read_infer_request(twice(8), text + bytes, text.size()).request;
}

std::vector<float> floats(const std::string& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

class SchedulerTest : public ::testing::Test {
 protected:
  // Doubles its input. A negative element is an error of the model's; 1000 is an exception that is none of ours.
  void start(int64_t max_rows, SchedulerOptions options = {}) {
    const Runner runner = [this](size_t, std::span<const TensorView> inputs, std::span<const TensorView> results) {
      gate_.pass();
      rows_.push_back(inputs[0].sizes[0]);
      for (size_t i = 0; i < inputs[0].size_bytes / sizeof(float); ++i) {
        const float value = static_cast<const float*>(inputs[0].data)[i];
        if (value < 0) fail(Code::kOutOfRange, "negative");
        if (value == 1000) throw std::runtime_error("a defect");
        static_cast<float*>(results[0].data)[i] = 2 * value;
      }
    };
    scheduler_ = std::make_unique<Scheduler>(std::vector{twice(max_rows)}, std::vector{runner}, options, "m", registry_);
  }

  RequestRef submit(const std::vector<float>& values, Clock::time_point deadline = Clock::time_point::max()) {
    RequestRef request = make_request(values);
    request->deadline = deadline;
    request->done = [this] { ++done_; };
    scheduler_->submit(request);
    return request;
  }

  uint64_t count(const char* end) {
    return registry_.counter("ltc_serve_requests_total", "", {{"model", "m"}, {"end", end}}).value();
  }

  Registry registry_;
  Gate gate_;
  std::vector<int64_t> rows_;  // of each call; read after drain()
  std::atomic<int> done_{0};
  std::unique_ptr<Scheduler> scheduler_;  // its threads use the rest
};

TEST_F(SchedulerTest, PutsRowsOfRequestsTogether) {
  start(4);
  const auto first = submit({1, 2});
  gate_.wait_for(1);  // the others wait meanwhile
  const auto second = submit({3, 4, 5, 6}), third = submit({7, 8}), fourth = submit({9, 10, 11, 12});
  gate_.open();
  scheduler_->drain();
  EXPECT_THAT(rows_, ElementsAre(1, 3, 2));  // the fourth has one row too many for the second call
  EXPECT_THAT(floats(first->results[0]), ElementsAre(2, 4));
  EXPECT_THAT(floats(second->results[0]), ElementsAre(6, 8, 10, 12));
  EXPECT_THAT(second->result_sizes[0], ElementsAre(2, 2));
  EXPECT_THAT(floats(third->results[0]), ElementsAre(14, 16));
  EXPECT_THAT(third->result_sizes[0], ElementsAre(1, 2));
  EXPECT_THAT(floats(fourth->results[0]), ElementsAre(18, 20, 22, 24));
  EXPECT_EQ(done_, 4);
  EXPECT_EQ(count("good"), 4u);
}

TEST_F(SchedulerTest, RunsEachAloneWhereRowsAreNotPutTogether) {
  start(1);
  gate_.open();
  submit({1, 2}), submit({3, 4}), submit({5, 6});
  scheduler_->drain();
  EXPECT_THAT(rows_, ElementsAre(1, 1, 1));
}

TEST_F(SchedulerTest, WaitsForOthersAsLongAsItIsAskedTo) {
  start(2, {.delay = std::chrono::minutes(1)});
  gate_.open();
  submit({1, 2});
  submit({3, 4});
  scheduler_->drain();
  EXPECT_THAT(rows_, ElementsAre(2));
}

TEST_F(SchedulerTest, AFailureIsOfTheRequestThatCausesIt) {
  start(4);
  submit({1, 2});
  gate_.wait_for(1);
  const auto good = submit({1, 1}), negative = submit({-1, 0}), defect = submit({1000, 0});
  gate_.open();
  scheduler_->drain();
  EXPECT_FALSE(good->failure);
  EXPECT_THAT(floats(good->results[0]), ElementsAre(2, 2));
  ASSERT_TRUE(negative->failure && defect->failure);
  EXPECT_EQ(negative->failure->code, Code::kOutOfRange);
  EXPECT_EQ(defect->failure->code, Code::kInternal);
  EXPECT_EQ(defect->failure->message, "a defect");
  EXPECT_EQ(count("failed"), 2u);
  EXPECT_EQ(done_, 4);
}

TEST_F(SchedulerTest, DoesNotBeginWhatIsGivenUpOrLate) {
  start(1);
  const auto running = submit({1, 2});
  gate_.wait_for(1);
  const auto given_up = submit({3, 4});
  const auto late = submit({5, 6}, Clock::now());
  EXPECT_TRUE(scheduler_->cancel(*given_up));
  EXPECT_FALSE(scheduler_->cancel(*running));
  EXPECT_GT(scheduler_->longest_run(), Clock::duration::zero());
  gate_.open();
  scheduler_->drain();
  EXPECT_THAT(rows_, ElementsAre(1));
  EXPECT_EQ(done_, 2);  // nobody waits for the one that is given up
  ASSERT_TRUE(late->failure);
  EXPECT_EQ(late->failure->code, Code::kTimeout);
  EXPECT_EQ(count("expired"), 1u);
  EXPECT_EQ(count("cancelled"), 1u);
  EXPECT_EQ(scheduler_->longest_run(), Clock::duration::zero());
}

TEST_F(SchedulerTest, EndsOnlyWhenACallDoes) {
  start(1);
  submit({1, 2});
  gate_.wait_for(1);
  EXPECT_FALSE(scheduler_->drain(Clock::now()));
  gate_.open();
  EXPECT_TRUE(scheduler_->drain());
  EXPECT_EQ(done_, 1);
}

TEST_F(SchedulerTest, CountsARequestThatIsGivenUpAfterItsDeadlineAsExpired) {
  start(1);
  submit({1, 2});
  gate_.wait_for(1);
  EXPECT_TRUE(scheduler_->cancel(*submit({3, 4}, Clock::now())));
  gate_.open();
  scheduler_->drain();
  EXPECT_EQ(count("expired"), 1u);
  EXPECT_EQ(count("cancelled"), 0u);
}

TEST_F(SchedulerTest, RefusesMoreThanTheQueueHolds) {
  start(1, {.queue_limit = 1});
  submit({1, 2});
  gate_.wait_for(1);
  submit({3, 4});
  EXPECT_THAT(message_of([&] { submit({5, 6}); }), HasSubstr("the queue is full: 1 requests wait"));
  EXPECT_EQ(count("refused"), 1u);
  gate_.open();
  scheduler_->drain();
  EXPECT_EQ(done_, 2);
  EXPECT_THAT(message_of([&] { submit({5, 6}); }), HasSubstr("shutting down"));
}

TEST(RequestMetrics, ADeviceIsLostUntilARequestIsAnsweredAgain) {
  Registry registry;
  RequestMetrics metrics("m", registry);
  metrics.end(Failure{Code::kDeviceLost, "lost"}, Clock::now());
  EXPECT_TRUE(metrics.device_is_lost);
  metrics.end(std::nullopt, Clock::now());
  EXPECT_FALSE(metrics.device_is_lost);
  EXPECT_EQ(metrics.failed.value(), 1u);
  EXPECT_EQ(metrics.good.value(), 1u);
}

TEST(InferenceProtocol, ReadsListsOfLists) {
  const auto given = read_infer_request(twice(8), R"({"id": "a", "inputs": [{"name": "x", "datatype": "FP32", "shape": [2, 2],
    "data": [[1, 2.5], [-3, 4]]}], "outputs": [{"name": "y"}], "parameters": {"timeout": 1000000}})",
                                        std::nullopt);
  EXPECT_EQ(given.id, "a");
  EXPECT_EQ(given.request->rows, 2);
  EXPECT_LT(given.request->deadline, Clock::now() + std::chrono::seconds(2));
  EXPECT_THAT(floats(given.request->input_data[0]), ElementsAre(1, 2.5, -3, 4));
}

TEST(InferenceProtocol, SaysWhatIsWrong) {
  const struct {
    const char *request, *message;
  } cases[] = {
      {"[1]", "is to be a JSON object"},
      {"{", "is no JSON"},
      {"{}", "lacks inputs"},
      {R"({"inputs": [1]})", "an input is to be an object"},
      {R"({"inputs": []})", "input x is missing"},
      {R"({"inputs": [{"name": "z"}]})", "there is no input z, but: x"},
      {R"({"inputs": [{"name": "x", "datatype": "FP64"}]})", "input x is FP64, and is to be FP32"},
      {R"({"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 3], "data": []}]})",
       "input x has shape [1,3], and is to be f32[batch,2], batch from 1 to 8"},
      {R"({"inputs": [{"name": "x", "datatype": "FP32", "shape": [9, 2], "data": []}]})", "input x has shape [9,2]"},
      {R"({"inputs": [{"name": "x", "datatype": "FP32", "shape": [-1, 2], "data": []}]})", "-1 is no size"},
      {R"({"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 2], "data": [1]}]})",
       "has 4 bytes of data, and its shape 8"},
      {R"({"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 2], "data": [1, 2, 3]}]})", "more than the 2 elements"},
      {R"({"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 2], "data": [1, "a"]}]})", "\"a\" is no value"},
      {R"({"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 2], "data": [1, 1e39]}]})", "1e+39 is no value"},
      {R"({"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 2], "data": [1, -1e39]}]})", "-1e+39 is no value"},
      {R"({"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 2], "parameters": {"binary_data_size": 8}}]})",
       "has 8 bytes, and the body has only 0 more"},
      {R"({"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 2], "data": [1, 2]}], "outputs": [{"name": "z"}]})",
       "there is no output z, but: y"},
      {R"({"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 2], "data": [1, 2]}], "parameters": {"timeout": -1}})",
       "timeout is to be an integer from 0"},
  };
  for (const auto& [request, message] : cases)
    EXPECT_THAT(message_of([&] { read_infer_request(twice(8), request, std::nullopt); }), HasSubstr(message)) << request;
  EXPECT_THAT(message_of([&] { read_infer_request(twice(8), "{}", 3); }), HasSubstr("the JSON has 3 bytes, and the body has 2"));
}

TEST(InferenceProtocol, RefusesListsHoweverDeep) {
  constexpr size_t kDepth = 1'000'000;
  const std::string lists = std::string(kDepth, '[') + std::string(kDepth, ']');
  const auto message = [](const std::string& shape, const std::string& data) {
    const std::string text =
        R"({"inputs": [{"name": "x", "datatype": "FP32", "shape": )" + shape + R"(, "data": )" + data + "}]}";
    return message_of([&] { read_infer_request(twice(8), text, std::nullopt); });
  };
  EXPECT_THAT(message("[" + lists + "]", "[]"), HasSubstr("shape: a list is no size"));
  EXPECT_THAT(message("[1, 2]", "[{\"a\": " + lists + "}]"), HasSubstr("data: an object is no value"));
  EXPECT_THAT(message("[1, 2]", lists), HasSubstr("has 0 bytes of data"));
}

TEST(InferenceProtocol, AnswersOnlyWhatIsWanted) {
  ServedFunction function = twice(8);
  function.results.push_back({"half", intern_contiguous(DType::kF16, {}), {}});
  const auto read = [&](const std::string& outputs) {
    return read_infer_request(function,
                              R"({"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 2], "data": [1, 2]}],
                                  "parameters": {"binary_data_output": true}, "outputs": )" +
                                  outputs + "}",
                              std::nullopt);
  };
  InferRequest given = read(R"([{"name": "y", "parameters": {"binary_data": false}}])");
  given.request->results = {std::string(8, '\0'), std::string(2, '\0')};
  given.request->result_sizes = {{1, 2}, {}};
  const InferResponse response = write_infer_response("m", function, given);
  EXPECT_FALSE(response.json_size);
  EXPECT_EQ(json::parse(response.body)["outputs"].size(), 1u);
  EXPECT_THAT(read("[]").as_bytes, ElementsAre(true, true));
  EXPECT_THAT(message_of([&] { read(R"([{"name": "half", "parameters": {"binary_data": false}}])"); }),
              HasSubstr("output half is FP16, which JSON cannot give: ask for bytes"));
}

TEST(InferenceProtocol, KeepsIntegersInTheirRange) {
  ServedFunction function = twice(1);
  function.dimensions.clear();
  const auto read = [&](DType dtype, const std::string& name, const std::string& value) {
    function.inputs[0] = {"x", intern_contiguous(dtype, {}), {}};
    return message_of([&] {
      read_infer_request(function,
                         R"({"inputs": [{"name": "x", "shape": [], "datatype": ")" + name + R"(", "data": [)" + value + "]}]}",
                         std::nullopt);
    });
  };
  EXPECT_EQ(read(DType::kI8, "INT8", "-128"), "");
  EXPECT_THAT(read(DType::kI8, "INT8", "128"), HasSubstr("128 is no value"));
  EXPECT_THAT(read(DType::kI8, "INT8", "-129"), HasSubstr("-129 is no value"));
  EXPECT_EQ(read(DType::kU64, "UINT64", "18446744073709551615"), "");
  EXPECT_THAT(read(DType::kU8, "UINT8", "-1"), HasSubstr("-1 is no value"));
  EXPECT_THAT(read(DType::kI32, "INT32", "1.5"), HasSubstr("1.5 is no value"));
  EXPECT_THAT(read(DType::kBool, "BOOL", "1"), HasSubstr("1 is no value"));
  EXPECT_THAT(read(DType::kF16, "FP16", "1"), HasSubstr("send it as bytes"));
}

TEST(InferenceProtocol, WritesJsonAndBytes) {
  const ServedFunction function = twice(8);
  auto given = read_infer_request(function, R"({"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 2], "data": [1, 2]}]})",
                                  std::nullopt);
  const float values[] = {2, 4};
  given.request->results = {std::string(reinterpret_cast<const char*>(values), sizeof values)};
  given.request->result_sizes = {{1, 2}};
  const InferResponse text = write_infer_response("m", function, given);
  EXPECT_FALSE(text.json_size);
  EXPECT_EQ(json::parse(text.body)["outputs"][0],
            json::parse(R"({"name": "y", "datatype": "FP32", "shape": [1, 2], "data": [2.0, 4.0]})"));
  given.as_bytes = {true};
  const InferResponse bytes = write_infer_response("m", function, given);
  EXPECT_EQ(json::parse(bytes.body.substr(0, bytes.json_size.value()))["outputs"][0]["parameters"]["binary_data_size"], 8);
  EXPECT_EQ(bytes.body.substr(*bytes.json_size), given.request->results[0]);
}

TEST(Metrics, AreInTheFormatOfPrometheus) {
  Registry registry;
  registry.counter("a_total", "How many.", {{"name", "x\"y\n"}}).add(3);
  registry.gauge("b", "Now.").add(-2);
  static constexpr double kBounds[] = {1, 2};
  auto& histogram = registry.histogram("c", "Sizes.", kBounds, {{"k", "v"}});
  for (const double value : {0.5, 1.0, 2.0, 9.0}) histogram.observe(value);
  EXPECT_EQ(registry.text(), R"(# HELP a_total How many.
# TYPE a_total counter
a_total{name="x\"y\n"} 3
# HELP b Now.
# TYPE b gauge
b -2
# HELP c Sizes.
# TYPE c histogram
c_bucket{k="v",le="1"} 2
c_bucket{k="v",le="2"} 3
c_bucket{k="v",le="+Inf"} 4
c_sum{k="v"} 12.5
c_count{k="v"} 4
)");
}

}  // namespace
}  // namespace ltc::serve
