// An HTTP server of the Open Inference Protocol (inference_protocol.h), with /metrics for Prometheus.
//
// A client that is slow, sends what cannot be read, or goes away costs its own request alone.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "core/serve/metrics.h"
#include "core/serve/text_generator.h"

namespace ltc::serve {

struct ServerOptions {
  std::string host = "127.0.0.1";
  uint16_t port = 8000;  // 0: any that is free
  uint32_t threads = 1;  // that read and write; models run on threads of their own
  size_t body_limit = 64u << 20;
  std::chrono::seconds idle_limit{60};    // until the next request of a connection has begun
  std::chrono::seconds io_limit{30};      // to read the body of a request, and to write an answer
  std::chrono::seconds drain_limit{30};   // for requests that run when the server is to end
  std::chrono::milliseconds deadline{0};  // of requests that give none; 0: no limit
  int64_t max_tokens = 4096;              // that a request may have generated
  std::chrono::seconds run_limit{60};     // for a call of a model; one that takes longer makes the server count as hung
};

// A function that answers `infer`, functions that generate text, or both.
struct ServedModel {
  Scheduler* scheduler = nullptr;  // neither is owned
  size_t function = 0;             // of the scheduler's
  TextGenerator* generator = nullptr;
};

class Server {
 public:
  // Listens from here on. Throws NOT_FOUND for an address that cannot be listened on.
  Server(const ServerOptions& options, std::map<std::string, ServedModel> models, Registry& registry);
  ~Server();

  uint16_t port() const;
  // Serves until SIGINT or SIGTERM: then takes no more connections, answers what it has, and returns. After the drain limit it
  // closes connections without an answer. Returns the time at which that limit passes; calls of models may still run.
  Clock::time_point run();

 private:
  class Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace ltc::serve
