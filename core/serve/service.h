// Answers requests that were read: finds the model, asks its scheduler, and writes the answer.
//
// Threads: every function from any thread; answer() on the strand of its connection.
#pragma once

#include <map>
#include <string>
#include <variant>

#include "core/serve/generation_protocol.h"
#include "core/serve/http.h"
#include "core/serve/server.h"

namespace ltc::serve {

class Service {
 public:
  Service(const ServerOptions& options, std::map<std::string, ServedModel> models, Registry& registry)
      : options_(options), models_(std::move(models)), registry_(registry) {}

  // Whether the connection may have another request.
  asio::awaitable<bool> answer(HttpRequest request, Connection& connection);
  // The same where the answer is known.
  asio::awaitable<bool> write(HttpResponse response, Connection& connection, bool keep_alive) const;

  // No connection has another request from here on.
  void drain() { draining_ = true; }
  bool is_draining() const { return draining_; }

 private:
  // The answer that is to be written; or, where there is none to write any more, whether the connection may have another request.
  using Answer = std::variant<HttpResponse, bool>;

  asio::awaitable<Answer> respond(HttpRequest& request, Connection& connection);
  asio::awaitable<Answer> ask_model(std::string_view path, HttpRequest& request, Connection& connection);
  asio::awaitable<Answer> infer(std::string name, ServedModel model, HttpRequest& http_request, Connection& connection);
  asio::awaitable<Answer> generate(std::string name, TextGenerator& generator, HttpRequest& request, Connection& connection,
                                   bool is_stream);
  asio::awaitable<Answer> stream_text(std::string name, const GenerateRequest& given, Waiter& waiter, TextRequest::News news,
                                      HttpRequest& request, Connection& connection);
  Clock::time_point limited(Clock::time_point deadline) const;  // by that of the server
  bool is_ready() const { return is_live() && !draining_; }
  bool is_live() const;

  const ServerOptions& options_;
  const std::map<std::string, ServedModel> models_;
  Registry& registry_;
  std::atomic<bool> draining_{false};
};

}  // namespace ltc::serve
