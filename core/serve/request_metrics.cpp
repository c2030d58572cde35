#include "core/serve/request_metrics.h"

namespace ltc::serve {

RequestMetrics::RequestMetrics(const std::string& model, Registry& registry)
    : good(registry.counter("ltc_serve_requests_total", "Requests by how they ended.", {{"model", model}, {"end", "good"}})),
      failed(registry.counter("ltc_serve_requests_total", "", {{"model", model}, {"end", "failed"}})),
      expired(registry.counter("ltc_serve_requests_total", "", {{"model", model}, {"end", "expired"}})),
      cancelled(registry.counter("ltc_serve_requests_total", "", {{"model", model}, {"end", "cancelled"}})),
      refused(registry.counter("ltc_serve_requests_total", "", {{"model", model}, {"end", "refused"}})),
      request_seconds(registry.histogram("ltc_serve_request_seconds", "From the arrival of a request until it is done.",
                                         kSecondsBounds, {{"model", model}})),
      queue_seconds(
          registry.histogram("ltc_serve_queue_seconds", "How long a request waited.", kSecondsBounds, {{"model", model}})),
      waiting(registry.gauge("ltc_serve_waiting_requests", "Requests that wait.", {{"model", model}})) {}

void RequestMetrics::end(const std::optional<Failure>& failure, Clock::time_point submitted) {
  device_is_lost = failure && failure->code == Code::kDeviceLost;
  Counter& counter = !failure                            ? good
                     : failure->code == Code::kTimeout   ? expired
                     : failure->code == Code::kCancelled ? cancelled
                                                         : failed;
  counter.add();
  request_seconds.observe(seconds(Clock::now() - submitted));
}

}  // namespace ltc::serve
