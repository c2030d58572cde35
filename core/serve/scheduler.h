// Requests from many clients, run by a few workers, each on an instance of the model.
//
// A worker takes the oldest request, and with it others whose rows can be computed in the same call. A request that its client
// gives up, or whose deadline passes, is not begun.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/deploy/model.h"
#include "core/serve/request_queue.h"
#include "core/serve/worker_thread.h"

namespace ltc::serve {

using deploy::TensorView;

// A function as clients see it.
struct ServedFunction : deploy::FunctionManifest {
  size_t index = 0;  // in the archive
  // How many rows, at most, a call may have: dim 0 of all inputs and results. 1: requests are not put together.
  int64_t max_rows = 1;
};

// One call of a function. The client fills the first part, and reads the second after `done`.
struct Request {
  size_t function = 0;                  // of the scheduler's
  int64_t rows = 1;                     // of dim 0; 1 where requests are not put together
  std::vector<TensorView> inputs;       // they point into `body`
  std::string body;                     // bytes that the request keeps alive
  std::vector<std::string> input_data;  // the same
  Clock::time_point deadline = Clock::time_point::max();
  std::function<void()> done;  // called once, on a worker's thread, unless the request is cancelled. It must not throw

  std::vector<std::vector<int64_t>> result_sizes;
  std::vector<std::string> results;
  std::optional<Failure> failure;
  Clock::time_point submitted;
};
using RequestRef = std::shared_ptr<Request>;

struct SchedulerOptions {
  size_t queue_limit = 256;            // requests that may wait
  std::chrono::microseconds delay{0};  // that a request waits for others, so that a call has more rows
};

// Runs a function of the archive; throws. Each worker has one.
using Runner = std::function<void(size_t function, std::span<const TensorView> inputs, std::span<const TensorView> results)>;

// Threads: every function from any thread.
class Scheduler {
 public:
  // `name` is the label `model` of the metrics.
  Scheduler(std::vector<ServedFunction> functions, std::vector<Runner> runners, const SchedulerOptions& options,
            const std::string& name, Registry& registry);
  ~Scheduler() { drain(); }

  const std::vector<ServedFunction>& functions() const { return functions_; }

  // Throws RESOURCE_EXHAUSTED where the queue is full, CANCELLED after drain().
  void submit(const RequestRef& request) { queue_.submit(request); }
  // Whether the request had not begun. It does not begin then, and `done` is not called.
  bool cancel(const Request& request) { return queue_.cancel(request); }

  // Takes no more requests, and waits until those that it has are done, or until that time. Returns whether they are.
  bool drain(Clock::time_point until = Clock::time_point::max());

  // How long the oldest call that runs has been running; 0 where none does.
  Clock::duration longest_run() const { return serve::longest_run(workers_); }
  // Whether the last request failed with DEVICE_LOST: the device could not be opened again.
  bool lost_its_device() const { return metrics_.device_is_lost; }

 private:
  struct Worker : RunningWorker {
    explicit Worker(Runner runner) : run(std::move(runner)) {}

    Runner run;
  };

  void work(Worker& worker);
  std::vector<RequestRef> take_batch();
  bool is_expired(Request& request);
  void run_batch(Worker& worker, const std::vector<RequestRef>& batch);
  void run_call(Worker& worker, std::span<const RequestRef> batch);
  void finish(Request& request);

  const std::vector<ServedFunction> functions_;
  const SchedulerOptions options_;
  RequestMetrics metrics_;
  Histogram &run_seconds_, &rows_;
  RequestQueue<Request> queue_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace ltc::serve
