#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/serve/generation_protocol.h"
#include "core/serve/testing/gate.h"
#include "core/serve/testing/message_of.h"

namespace ltc::serve {
namespace {

using std::chrono::minutes;
using ::testing::ElementsAre;
using testing::Gate;
using ::testing::HasSubstr;
using testing::message_of;

constexpr size_t kPrefill = 0, kDecode = 1;

int64_t* numbers(const TensorView& view) { return static_cast<int64_t*>(view.data); }

// A text is the numbers from the last one of its prompt on. Each slot of a session knows what it was told, and
// expects the token and the position that follow.
class CountingSession {
 public:
  explicit CountingSession(Gate& gate) : gate_(gate) {}

  void run(size_t function, std::span<const TensorView> inputs, std::span<const TensorView> results) {
    if (function == kPrefill) return prefill(inputs, results);
    gate_.pass();
    std::vector<int64_t> texts;
    for (int64_t i = 0; i < inputs[0].sizes[0]; ++i) {
      const int64_t token = numbers(inputs[0])[i], slot = numbers(inputs[2])[i];
      if (token == kBad || is_broken) fail(Code::kInternal, "decode fails");
      EXPECT_EQ(token, last_[slot] + 1);
      EXPECT_EQ(numbers(inputs[1])[i], position_[slot]++);
      numbers(results[0])[i] = (last_[slot] = token) + 1;
      texts.push_back(token);
    }
    steps.push_back(texts);
  }
  void reset() { ++resets, is_broken = false; }

  static constexpr int64_t kBad = 1000;
  std::vector<std::vector<int64_t>> steps;  // the tokens of each call of decode
  int resets = 0;
  bool is_broken = false;

 private:
  void prefill(std::span<const TensorView> inputs, std::span<const TensorView> results) {
    const int64_t length = numbers(inputs[1])[0], slot = numbers(inputs[2])[0];
    EXPECT_THAT(inputs[0].sizes, ElementsAre(1, 4));
    last_[slot] = numbers(inputs[0])[length - 1];
    position_[slot] = length;
    if (last_[slot] < 0) {
      is_broken = true;
      fail(Code::kOutOfRange, "prefill fails");
    }
    numbers(results[0])[0] = last_[slot] + 1;
  }

  Gate& gate_;
  int64_t last_[3] = {}, position_[3] = {};
};

class TextGeneratorTest : public ::testing::Test {
 protected:
  // One session, of two slots unless the model says more.
  void start(size_t queue_limit = 8) {
    TextSession session{[this](auto... arguments) { session_.run(arguments...); }, [this] { session_.reset(); }};
    std::vector<std::vector<TextSession>> sessions(1);
    sessions[0].push_back(std::move(session));
    generator_ = std::make_unique<TextGenerator>(model_, std::move(sessions), queue_limit, "m", registry_);
  }

  TextRequestRef submit(int64_t last, int64_t max_tokens, std::vector<int64_t> stop_tokens = {}) {
    auto text = std::make_shared<TextRequest>();
    text->prompt = {5, last};
    text->max_tokens = max_tokens;
    text->stop_tokens = std::move(stop_tokens);
    generator_->submit(text);
    return text;
  }

  uint64_t count(const char* end) {
    return registry_.counter("ltc_serve_requests_total", "", {{"model", "m"}, {"end", end}}).value();
  }

  TextModel model_{kPrefill, kDecode, 4, 4, 2, true, 16};
  Registry registry_;
  Gate gate_;  // each call of decode waits in it
  CountingSession session_{gate_};
  std::unique_ptr<TextGenerator> generator_;  // its threads use the rest
};

TEST_F(TextGeneratorTest, TextsBeginAndEndBesideOthers) {
  start();
  const auto first = submit(10, 5);
  gate_.wait_for(1);  // the first decodes alone
  const auto second = submit(20, 2), third = submit(30, 2);
  gate_.open();
  generator_->drain();
  EXPECT_THAT(first->take_news().tokens, ElementsAre(11, 12, 13, 14, 15));
  EXPECT_THAT(second->take_news().tokens, ElementsAre(21, 22));
  const auto news = third->take_news();
  EXPECT_THAT(news.tokens, ElementsAre(31, 32));
  ASSERT_TRUE(news.end && !news.end->failure);
  EXPECT_EQ(news.end->reason, FinishReason::kLength);
  // The third takes the slot of the second.
  EXPECT_THAT(session_.steps, ElementsAre(ElementsAre(11), ElementsAre(12, 21), ElementsAre(13, 31), ElementsAre(14)));
  EXPECT_EQ(count("good"), 3u);
  EXPECT_EQ(registry_.counter("ltc_serve_generated_tokens_total", "", {{"model", "m"}}).value(), 9u);
}

TEST_F(TextGeneratorTest, TextsThatRunWaitForOnePromptBetweenTwoTokens) {
  model_.slots = 3;
  start();
  submit(10, 5);
  gate_.wait_for(1);
  submit(20, 3);
  submit(30, 2);
  gate_.open();
  generator_->drain();
  EXPECT_THAT(session_.steps, ElementsAre(ElementsAre(11), ElementsAre(12, 21), ElementsAre(13, 22, 31), ElementsAre(14)));
}

TEST_F(TextGeneratorTest, EndsAtAStopTokenAndAtTheLastPosition) {
  start();
  gate_.open();
  const auto stopped = submit(10, 9, {40, 12}), full = submit(20, 100);
  generator_->drain();
  const auto news = stopped->take_news();
  EXPECT_THAT(news.tokens, ElementsAre(11, 12));
  EXPECT_EQ(news.end->reason, FinishReason::kStop);
  EXPECT_EQ(full->take_news().tokens.size(), 14u);  // 16 positions, with the prompt
}

TEST_F(TextGeneratorTest, ATextThatIsGivenUpEndsAtItsNextToken) {
  start(1);
  const auto first = submit(10, 1000);
  gate_.wait_for(1);
  const auto waiting = submit(20, 5);
  EXPECT_THAT(message_of([&] { submit(30, 5); }), HasSubstr("the queue is full"));
  EXPECT_GT(generator_->longest_run(), Clock::duration::zero());
  generator_->cancel(*first);
  generator_->cancel(*waiting);
  gate_.open();
  generator_->drain();
  const auto news = first->take_news();
  EXPECT_THAT(news.tokens, ElementsAre(11, 12));  // the second was computed when it was given up
  ASSERT_TRUE(news.end && news.end->failure);
  EXPECT_EQ(news.end->failure->code, Code::kCancelled);
  EXPECT_FALSE(waiting->take_news().end);
  EXPECT_EQ(count("cancelled"), 2u);
  EXPECT_EQ(count("refused"), 1u);
  EXPECT_EQ(generator_->longest_run(), Clock::duration::zero());
  EXPECT_THAT(message_of([&] { submit(30, 5); }), HasSubstr("shutting down"));
}

TEST_F(TextGeneratorTest, ADeadlineEndsATextThatWaitsAndOneThatRuns) {
  start();
  const auto running = std::make_shared<TextRequest>(), late = std::make_shared<TextRequest>();
  running->prompt = late->prompt = {1};
  running->max_tokens = 1000;
  running->deadline = Clock::now() + minutes(1);
  late->deadline = Clock::now();
  generator_->submit(late);
  generator_->submit(running);
  gate_.wait_for(1);
  running->deadline = Clock::now();  // read by the worker after the gate
  gate_.open();
  generator_->drain();
  for (const auto& text : {running, late}) {
    const auto news = text->take_news();
    ASSERT_TRUE(news.end && news.end->failure);
    EXPECT_EQ(news.end->failure->code, Code::kTimeout);
  }
  EXPECT_EQ(count("expired"), 2u);
}

TEST_F(TextGeneratorTest, AFailureOfDecodeEndsTheTextsOfItsSessionAndMendsIt) {
  start();
  const auto bad = submit(CountingSession::kBad - 1, 5);
  gate_.wait_for(1);
  const auto after = submit(10, 2);
  gate_.open();
  generator_->drain();
  const auto news = bad->take_news();
  EXPECT_THAT(news.tokens, ElementsAre(1000));  // not lost
  ASSERT_TRUE(news.end->failure);
  EXPECT_EQ(news.end->failure->message, "decode fails");
  EXPECT_THAT(after->take_news().tokens, ElementsAre(11, 12));
  EXPECT_EQ(session_.resets, 1);
  EXPECT_EQ(count("failed"), 1u);
}

TEST_F(TextGeneratorTest, ASessionIsResetWhenItsTextsHaveEnded) {
  start();
  const auto first = submit(10, 9);
  gate_.wait_for(1);
  const auto bad = submit(-1, 5), after = submit(20, 2);  // its prefill breaks the state, also for the first
  gate_.open();
  generator_->drain();
  EXPECT_EQ(bad->take_news().end->failure->message, "prefill fails");
  EXPECT_EQ(first->take_news().end->failure->message, "decode fails");
  EXPECT_THAT(after->take_news().tokens, ElementsAre(21, 22));
  EXPECT_EQ(session_.resets, 1);
}

TEST(GenerationProtocol, ReadsARequest) {
  const auto given = read_generate_request({0, 1, 1, 4}, R"({"tokens": [3, 1, 2], "id": "a", "parameters":
    {"max_tokens": 7, "stop_token_ids": [9], "timeout": 1000000}})",
                                           100);
  EXPECT_EQ(given.id, "a");
  EXPECT_THAT(given.text->prompt, ElementsAre(3, 1, 2));
  EXPECT_EQ(given.text->max_tokens, 7);
  EXPECT_THAT(given.text->stop_tokens, ElementsAre(9));
  EXPECT_LT(given.text->deadline, Clock::now() + std::chrono::seconds(2));
  EXPECT_EQ(read_generate_request({0, 1, 1, 4}, R"({"tokens": [3]})", 10).text->max_tokens, 10);
}

TEST(GenerationProtocol, SaysWhatIsWrong) {
  const struct {
    const char *request, *message;
  } cases[] = {
      {"[1]", "is to be a JSON object"},
      {"{}", "lacks tokens"},
      {R"({"tokens": 1})", "tokens is to be a list"},
      {R"({"tokens": []})", "tokens has 0 tokens, and a prompt has from 1 to 4"},
      {R"({"tokens": [1, 2, 3, 4, 5]})", "tokens has 5 tokens"},
      {R"({"tokens": [1, -2]})", "tokens: -2 is no token"},
      {R"({"tokens": ["a"]})", "tokens: \"a\" is no token"},
      {R"({"tokens": [18446744073709551615]})", "18446744073709551615 is no token"},
      {R"({"tokens": [1], "prompt": 1})", "there is no member prompt of a text, but: id, tokens, parameters"},
      {R"({"tokens": [1], "parameters": 1})", "parameters is to be an object"},
      {R"({"tokens": [1], "parameters": {"max_tokens": 0}})", "max_tokens is 0, and is to be from 1 to 100"},
      {R"({"tokens": [1], "parameters": {"max_tokens": 101}})", "max_tokens is 101, and is to be from 1 to 100"},
      {R"({"tokens": [1], "parameters": {"stop_token_ids": 1}})", "stop_token_ids is to be a list"},
      {R"({"tokens": [1], "parameters": {"temperature": 1}})", "there is no parameter temperature of a text, but: max_tokens"},
  };
  for (const auto& [request, message] : cases)
    EXPECT_THAT(message_of([&] { read_generate_request({0, 1, 1, 4}, request, 100); }), HasSubstr(message)) << request;
}

TEST(GenerationProtocol, WritesEvents) {
  const auto data = [](const std::string& event) {
    EXPECT_THAT(event, ::testing::StartsWith("data: "));
    EXPECT_THAT(event, ::testing::EndsWith("\n\n"));
    return nlohmann::json::parse(event.substr(6));
  };
  EXPECT_EQ(data(token_event("m", "a", 3)),
            (nlohmann::json{{"model_name", "m"}, {"model_version", "1"}, {"id", "a"}, {"token", 3}}));
  EXPECT_EQ(data(end_event("m", "", {FinishReason::kStop, {}}))["finish_reason"], "stop");
  EXPECT_EQ(data(end_event("m", "", {{}, Failure{Code::kInternal, "line\nline"}})), (nlohmann::json{{"error", "line\nline"}}));
}

}  // namespace
}  // namespace ltc::serve
