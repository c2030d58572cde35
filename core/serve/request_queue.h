// The requests of a model that wait, with their counts.
//
// A request has `submitted` and `deadline`. Threads: every function from any thread.
#pragma once

#include <memory>
#include <optional>

#include "core/serve/request_metrics.h"

namespace ltc::serve {

template <typename Request>
class RequestQueue {
 public:
  using RequestRef = std::shared_ptr<Request>;

  // `metrics` outlives the queue.
  RequestQueue(size_t limit, RequestMetrics& metrics) : waiting_(limit), metrics_(metrics) {}

  // Throws RESOURCE_EXHAUSTED where the queue is full, CANCELLED where it is closed.
  void submit(const RequestRef& request) {
    request->submitted = Clock::now();
    metrics_.waiting.add(1);  // before a worker takes it away again
    try {
      waiting_.put(request);
    } catch (const Error&) {
      metrics_.waiting.add(-1);
      metrics_.refused.add();
      throw;
    }
  }

  // Whether it still waited. No worker takes it then.
  bool cancel(const Request& request) {
    if (!waiting_.remove(request)) return false;
    metrics_.waiting.add(-1);
    (Clock::now() < request.deadline ? metrics_.cancelled : metrics_.expired).add();
    return true;
  }

  // As BoundedQueue::take_if.
  template <typename Wanted>
  RequestRef take_if(const Wanted& wanted, Clock::time_point until) {
    RequestRef request = waiting_.take_if(wanted, until);
    if (request) {
      metrics_.waiting.add(-1);
      metrics_.queue_seconds.observe(seconds(Clock::now() - request->submitted));
    }
    return request;
  }
  RequestRef take(Clock::time_point until = Clock::time_point::max()) {
    return take_if([](const Request&) { return true; }, until);
  }

  // The failure of a request that was taken too late.
  static std::optional<Failure> expiry(const Request& request) {
    const Clock::time_point now = Clock::now();
    if (now < request.deadline) return std::nullopt;
    return Failure{Code::kTimeout,
                   cat("the deadline passed while the request waited, after ", seconds(now - request.submitted), " s")};
  }

  void close() { waiting_.close(); }

 private:
  BoundedQueue<Request> waiting_;
  RequestMetrics& metrics_;
};

}  // namespace ltc::serve
