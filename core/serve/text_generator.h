// Texts of many clients, generated token by token with two functions of an archive:
//
//   prefill(tokens: i64[1,P], length: i64[1]) -> i64[1]    reads a prompt and returns the next token
//   decode(token: i64[1], position: i64[1]) -> i64[1]      reads a token and returns the next one
//
// or, where the state has a cache for each of S texts, with their slots, which are distinct numbers below S:
//
//   prefill(tokens: i64[1,P], length: i64[1], slot: i64[1]) -> i64[1]
//   decode(token: i64[B], position: i64[B], slot: i64[B]) -> i64[B]    for B texts, from 1 to S
//
// A worker has sessions, each with slots for S texts. It gives free slots to texts that wait, and computes the next tokens of all
// texts of a session in one call, so a text begins and ends without a wait for those beside it (continuous batching, as in Yu et
// al., Orca, OSDI 2022). Texts that run wait for one prompt at most between two of their tokens.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/serve/scheduler.h"

namespace ltc::serve {

// How an archive generates text.
struct TextModel {
  size_t prefill = 0, decode = 0;          // functions of the archive
  int64_t min_prompt = 1, max_prompt = 1;  // the length of `tokens`; a shorter prompt is padded with 0
  int64_t slots = 1;                       // S
  bool takes_slots = false;                // whether both have the third input
  int64_t max_positions = INT64_MAX;       // tokens of a text with its prompt
};

// None where the archive has no two functions of these names. `max_positions` is what its metadata has under that key. Throws
// UNSUPPORTED where the functions are others, with both signatures, or where the metadata is no number.
std::optional<TextModel> find_text_model(const deploy::Archive& archive);

enum class FinishReason : uint8_t { kLength, kStop };

struct TextEnd {
  FinishReason reason = FinishReason::kLength;
  std::optional<Failure> failure;
};

// One text. The client fills the first part.
class TextRequest {
 public:
  std::vector<int64_t> prompt;       // 1 to max_prompt tokens
  int64_t max_tokens = 16;           // that are generated, from 1
  std::vector<int64_t> stop_tokens;  // each ends the text, as its last token
  Clock::time_point deadline = Clock::time_point::max();
  std::function<void()> changed;  // called on a worker's thread where there is news. It must not throw

  Clock::time_point submitted;

  // The rest from any thread.

  struct News {
    std::vector<int64_t> tokens;
    std::optional<TextEnd> end;
  };
  News take_news();  // since the last time

  void cancel() { cancelled_ = true; }  // it ends at its next token
  bool is_cancelled() const { return cancelled_; }

 private:
  friend class TextGenerator;
  void add(int64_t token);
  void end(TextEnd how);

  std::atomic<bool> cancelled_{false};
  std::mutex mutex_;
  News news_;
};
using TextRequestRef = std::shared_ptr<TextRequest>;

// A state of its own, with `slots` caches.
struct TextSession {
  Runner run;
  std::function<void()> reset;  // makes the state as it was at the start; throws
};

// Compiles `decode` for each number of texts, which else the first requests would wait for. Throws as the session.
void warm_up(const TextModel& model, const TextSession& session);

// Threads: every function from any thread.
class TextGenerator {
 public:
  // A worker for each element of `sessions`. `name` is the label `model` of the metrics.
  TextGenerator(const TextModel& model, std::vector<std::vector<TextSession>> sessions, size_t queue_limit,
                const std::string& name, Registry& registry);
  ~TextGenerator() { drain(); }

  const TextModel& model() const { return model_; }

  // Throws RESOURCE_EXHAUSTED where the queue is full, CANCELLED after drain().
  void submit(const TextRequestRef& text) { queue_.submit(text); }
  // The text ends at its next token, or does not begin. Its client then hears no more of it, or of an end with CANCELLED.
  void cancel(TextRequest& text);

  // Takes no more texts, and waits until those that it has are done, or until that time. Returns whether they are.
  bool drain(Clock::time_point until = Clock::time_point::max());

  // How long the oldest call that runs has been running; 0 where none does.
  Clock::duration longest_run() const { return serve::longest_run(workers_); }
  bool lost_its_device() const { return metrics_.device_is_lost; }  // as of Scheduler

 private:
  struct Slot {
    TextRequestRef text;              // null: free
    int64_t token = 0, position = 0;  // the last token, and the place where `decode` puts it
    int64_t left = 0;                 // tokens that may still follow
    Clock::time_point last;           // when the token was there
  };
  struct Session {
    TextSession model;
    std::vector<Slot> slots;
    bool is_damaged = false;  // a call failed: to be reset once its texts have ended

    int64_t running() const;
  };
  struct Worker : RunningWorker {
    std::vector<Session> sessions;
  };

  void work(Worker& worker);
  bool take_texts(Worker& worker);
  void begin(Worker& worker, Session& session, size_t slot, const TextRequestRef& text);
  void step(Worker& worker, Session& session);
  void end_those_given_up(Session& session);
  void add_token(Slot& slot, int64_t token);
  void end(Slot& slot, TextEnd how);
  void mend(Session& session);

  const TextModel model_;
  RequestMetrics metrics_;
  Histogram &first_token_seconds_, &token_seconds_, &texts_of_step_;
  Counter& tokens_;
  Gauge& running_;
  RequestQueue<TextRequest> queue_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace ltc::serve
