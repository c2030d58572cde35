// Counts of a model's requests, and how long its calls run.
#pragma once

#include <atomic>
#include <optional>
#include <string>

#include "core/serve/bounded_queue.h"
#include "core/serve/metrics.h"

namespace ltc::serve {

struct Failure {
  Code code;
  std::string message;
};

inline double seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

// The failure of `work`, none where it returns.
template <typename Work>
std::optional<Failure> failure_of(const Work& work) {
  try {
    work();
    return std::nullopt;
  } catch (const Error& error) {
    return Failure{error.code(), error.what()};
  } catch (const std::exception& error) {
    return Failure{Code::kInternal, error.what()};
  }
}

struct RequestMetrics {
  RequestMetrics(const std::string& model, Registry& registry);

  void end(const std::optional<Failure>& failure, Clock::time_point submitted);

  std::atomic<bool> device_is_lost{false};  // the last request failed with DEVICE_LOST
  Counter &good, &failed, &expired, &cancelled, &refused;
  Histogram &request_seconds, &queue_seconds;
  Gauge& waiting;
};

// How long a worker's call has been running. Threads: the worker begins and ends it, any thread reads.
class RunTimer {
 public:
  void begin() { begun_ = Clock::now().time_since_epoch().count(); }
  void end() { begun_ = 0; }
  Clock::duration running() const {  // 0: it runs nothing
    const Clock::rep begun = begun_.load();
    return begun == 0 ? Clock::duration(0) : Clock::now().time_since_epoch() - Clock::duration(begun);
  }

 private:
  std::atomic<Clock::rep> begun_{0};
};

}  // namespace ltc::serve
