#include "core/serve/server.h"

#include <array>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <charconv>
#include <thread>
#include <unordered_set>

#include "core/base/log.h"
#include "core/serve/inference_protocol.h"

namespace ltc::serve {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::use_awaitable;
using asio::ip::tcp;
using boost::system::error_code;
using HttpRequest = http::request<http::string_body>;
using HttpResponse = http::response<http::string_body>;

constexpr const char* kJson = "application/json";
constexpr std::chrono::seconds kLingerLimit{2};
constexpr const char* kJsonSize = "Inference-Header-Content-Length";

// A coroutine waits here for another thread, and for its client to go away.
class Waiter : public std::enable_shared_from_this<Waiter> {
 public:
  explicit Waiter(tcp::socket& socket) : socket_(socket), timer_(socket.get_executor()) {}

  void notify() {  // from any thread, once
    asio::post(timer_.get_executor(), [self = shared_from_this()] {
      self->notified_ = true;
      self->timer_.cancel();
    });
  }

  // The rest on the connection's strand.
  asio::awaitable<void> wait(Clock::time_point until) {
    watch_client();
    timer_.expires_at(until);
    error_code ignored;
    if (!notified_ && !client_left_) co_await timer_.async_wait(asio::redirect_error(use_awaitable, ignored));
    over_ = true;
    socket_.cancel(ignored);
  }
  bool notified() const { return notified_; }
  bool client_left() const { return client_left_; }

 private:
  void watch_client() {
    socket_.async_wait(tcp::socket::wait_read, [self = shared_from_this()](error_code error) {
      if (error || self->over_) return;
      char byte;
      error_code peeked;
      self->socket_.receive(asio::buffer(&byte, 1), tcp::socket::message_peek, peeked);
      if (!peeked) return;  // the next request is there
      self->client_left_ = true;
      self->timer_.cancel();
    });
  }

  tcp::socket& socket_;  // valid until `over_`
  asio::steady_timer timer_;
  bool notified_ = false, client_left_ = false, over_ = false;
};

http::status status_of(Code code) {
  switch (code) {
    case Code::kInvalidArgument:
    case Code::kOutOfRange: return http::status::bad_request;
    case Code::kNotFound: return http::status::not_found;
    case Code::kResourceExhausted:
    case Code::kCancelled: return http::status::service_unavailable;
    case Code::kTimeout: return http::status::gateway_timeout;
    default: return http::status::internal_server_error;
  }
}

HttpResponse make_response(http::status status, std::string body, const char* type = kJson) {
  HttpResponse response(status, 11);
  response.set(http::field::content_type, type);
  response.body() = std::move(body);
  return response;
}
HttpResponse make_error(http::status status, std::string_view message) {
  HttpResponse response = make_response(status, error_body(message));
  if (status == http::status::service_unavailable) response.set(http::field::retry_after, "1");
  return response;
}

std::optional<size_t> json_size_of(const HttpRequest& request) {
  const auto found = request.find(kJsonSize);
  if (found == request.end()) return std::nullopt;
  const auto text = found->value();
  size_t size = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  if (error != std::errc() || end != text.data() + text.size())
    fail(Code::kInvalidArgument, kJsonSize, " is to be a number of bytes, and is '", std::string(text), "'");
  return size;
}

// "/v2/models/NAME/infer" is NAME and "infer"; also with "/versions/1" after the name.
std::pair<std::string, std::string> split_model_path(std::string_view path) {
  path.remove_prefix(std::string_view("/v2/models/").size());
  const size_t end = std::min(path.find('/'), path.size());
  const std::string name(path.substr(0, end));
  std::string_view rest = path.substr(end);
  if (rest.starts_with("/versions/1")) rest.remove_prefix(std::string_view("/versions/1").size());
  return {name, std::string(rest)};
}

}  // namespace

class Server::Impl {
 public:
  Impl(const ServerOptions& options, std::map<std::string, ServedModel> models, Registry& registry)
      : options_(options),
        models_(std::move(models)),
        registry_(registry),
        connections_(registry.gauge("ltc_serve_connections", "Connections that are open.")),
        strand_(asio::make_strand(context_)),
        acceptor_(strand_),
        signals_(strand_, SIGINT, SIGTERM),
        drain_timer_(context_) {
    error_code error;
    const auto address = asio::ip::make_address(options.host, error);
    const tcp::endpoint endpoint(address, options.port);
    if (!error) acceptor_.open(endpoint.protocol(), error);
    if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(tcp::acceptor::max_listen_connections, error);
    if (error) fail(Code::kNotFound, "cannot listen on ", options.host, ":", options.port, ": ", error.message());
  }

  uint16_t port() const { return acceptor_.local_endpoint().port(); }

  void run() {
    signals_.async_wait([this](error_code error, int) {
      if (!error) begin_drain();
    });
    asio::co_spawn(strand_, accept(), asio::detached);
    std::vector<std::thread> threads;
    for (uint32_t i = 1; i < options_.threads; ++i) threads.emplace_back([this] { context_.run(); });
    context_.run();
    for (std::thread& thread : threads) thread.join();
  }

 private:
  struct Connection {
    explicit Connection(tcp::socket socket) : stream(std::move(socket)) {}

    beast::tcp_stream stream;
    beast::flat_buffer buffer;
    bool is_idle = true;  // on the strand of `stream`
  };
  using ConnectionRef = std::shared_ptr<Connection>;

  asio::awaitable<void> accept() {
    while (!draining_) {
      tcp::socket socket(asio::make_strand(context_));
      error_code error;
      co_await acceptor_.async_accept(socket, asio::redirect_error(use_awaitable, error));
      if (draining_) co_return;
      if (error) {  // too many open files, say
        log::warn("a connection could not be taken: ", error.message());
        asio::steady_timer timer(strand_, std::chrono::milliseconds(100));
        co_await timer.async_wait(use_awaitable);
        continue;
      }
      socket.set_option(tcp::no_delay(true), error);
      auto connection = std::make_shared<Connection>(std::move(socket));
      {
        std::lock_guard lock(mutex_);
        open_.insert(connection);
      }
      connections_.add(1);
      asio::co_spawn(connection->stream.get_executor(), serve(connection), [this, connection](std::exception_ptr error) {
        if (error) log::warn("a connection ended with an error");
        connections_.add(-1);
        std::lock_guard lock(mutex_);
        open_.erase(connection);
        if (draining_ && open_.empty()) drain_timer_.cancel();
      });
    }
  }

  // Idle connections end at once, the others with their answers, all of them after the limit.
  void begin_drain() {
    draining_ = true;
    error_code ignored;
    acceptor_.close(ignored);
    close_connections(true);
    std::lock_guard lock(mutex_);
    if (open_.empty()) return;
    drain_timer_.expires_after(options_.drain_limit);
    drain_timer_.async_wait([this](error_code error) {
      if (!error) close_connections(false);
    });
  }

  void close_connections(bool only_idle) {
    std::lock_guard lock(mutex_);
    for (const ConnectionRef& connection : open_)
      asio::post(connection->stream.get_executor(), [connection, only_idle] {
        if (connection->is_idle || !only_idle) connection->stream.close();
      });
  }

  asio::awaitable<void> serve(ConnectionRef connection) {
    beast::tcp_stream& stream = connection->stream;
    bool goes_on = true;
    while (goes_on && !draining_) {
      http::request_parser<http::string_body> parser;
      parser.body_limit(options_.body_limit);
      error_code error;
      connection->is_idle = true;
      stream.expires_after(options_.idle_limit);
      co_await http::async_read_header(stream, connection->buffer, parser, asio::redirect_error(use_awaitable, error));
      connection->is_idle = false;
      stream.expires_after(options_.io_limit);
      if (!error && beast::iequals(parser.get()[http::field::expect], "100-continue")) {
        http::response<http::empty_body> proceed(http::status::continue_, 11);
        co_await http::async_write(stream, proceed, asio::redirect_error(use_awaitable, error));
      }
      if (!error) co_await http::async_read(stream, connection->buffer, parser, asio::redirect_error(use_awaitable, error));
      std::optional<HttpResponse> response;
      bool keep_alive = false;
      if (error) {
        response = response_to_unread(error);
      } else {
        HttpRequest request = parser.release();
        keep_alive = request.keep_alive();
        stream.expires_never();
        response = co_await respond(request, stream.socket());
      }
      if (!response) break;
      goes_on = keep_alive && !draining_;
      response->keep_alive(goes_on);
      response->prepare_payload();
      stream.expires_after(options_.io_limit);
      co_await http::async_write(stream, *response, asio::redirect_error(use_awaitable, error));
      if (error) break;
    }
    co_await close(stream);
  }

  // A connection that is closed while the client still sends is reset, and the client then may not read its answer.
  static asio::awaitable<void> close(beast::tcp_stream& stream) {
    error_code error;
    stream.socket().shutdown(tcp::socket::shutdown_send, error);
    stream.expires_after(kLingerLimit);
    std::array<char, 16384> unread;
    while (!error) co_await stream.async_read_some(asio::buffer(unread), asio::redirect_error(use_awaitable, error));
  }

  // None where there is nobody to answer to.
  static std::optional<HttpResponse> response_to_unread(error_code error) {
    if (error == http::error::body_limit) return make_error(http::status::payload_too_large, "the body is too large");
    if (error == http::error::header_limit)
      return make_error(http::status::request_header_fields_too_large, "the header is too large");
    if (error == http::error::end_of_stream || error == http::error::partial_message) return std::nullopt;
    if (error.category() == http::make_error_code(http::error::bad_method).category())
      return make_error(http::status::bad_request, "the request cannot be read: " + error.message());
    return std::nullopt;
  }

  asio::awaitable<std::optional<HttpResponse>> respond(HttpRequest& request, tcp::socket& socket) {
    try {
      co_return co_await route(request, socket);
    } catch (const Error& error) {
      co_return make_error(status_of(error.code()), error.what());
    } catch (const std::exception& error) {
      co_return make_error(status_of(Code::kInternal), error.what());
    }
  }

  asio::awaitable<std::optional<HttpResponse>> route(HttpRequest& request, tcp::socket& socket) {
    std::string_view path(request.target().data(), request.target().size());
    path = path.substr(0, path.find('?'));
    const bool is_get = request.method() == http::verb::get;
    const auto wants_get = [&] {
      if (!is_get) fail(Code::kInvalidArgument, std::string(path), " takes GET");
    };
    if (path == "/metrics") {
      wants_get();
      co_return make_response(http::status::ok, registry_.text(), "text/plain; version=0.0.4");
    }
    if (path == "/v2" || path == "/v2/") {
      wants_get();
      co_return make_response(http::status::ok,
                              R"({"name":"ltc-serve","version":")" LTC_VERSION R"(","extensions":["binary_tensor_data"]})");
    }
    if (path == "/v2/health/live") co_return health(!is_hung());
    if (path == "/v2/health/ready") co_return health(is_ready());
    if (!path.starts_with("/v2/models/")) co_return make_error(http::status::not_found, cat("there is no ", path));
    const auto [name, action] = split_model_path(path);
    const auto model = models_.find(name);
    if (model == models_.end()) co_return make_error(http::status::not_found, unknown_model(name));
    const ServedFunction& function = model->second.scheduler->functions()[model->second.function];
    if (action.empty()) {
      wants_get();
      co_return make_response(http::status::ok, model_metadata(name, function));
    }
    if (action == "/ready") co_return health(is_ready());
    if (action != "/infer") co_return make_error(http::status::not_found, cat("there is no ", path));
    if (request.method() != http::verb::post) fail(Code::kInvalidArgument, std::string(path), " takes POST");
    co_return co_await infer(name, model->second, request, socket);
  }

  asio::awaitable<std::optional<HttpResponse>> infer(std::string name, ServedModel model, HttpRequest& http_request,
                                                     tcp::socket& socket) {
    const ServedFunction& function = model.scheduler->functions()[model.function];
    const std::optional<size_t> json_size = json_size_of(http_request);
    const InferRequest given = read_infer_request(function, std::move(http_request.body()), json_size);
    Request& request = *given.request;
    request.function = model.function;
    if (options_.deadline.count() > 0) request.deadline = std::min(request.deadline, Clock::now() + options_.deadline);
    auto waiter = std::make_shared<Waiter>(socket);
    request.done = [waiter] { waiter->notify(); };
    model.scheduler->submit(given.request);
    co_await waiter->wait(request.deadline);
    if (!waiter->notified()) {
      const bool had_begun = !model.scheduler->cancel(request);
      if (waiter->client_left()) co_return std::nullopt;
      fail(Code::kTimeout, "the deadline passed while the request ", had_begun ? "ran" : "waited");
    }
    if (request.failure) throw Error(request.failure->code, request.failure->message);
    InferResponse answer = write_infer_response(name, function, given);
    HttpResponse response =
        make_response(http::status::ok, std::move(answer.body), answer.json_size ? "application/octet-stream" : kJson);
    if (answer.json_size) response.set(kJsonSize, std::to_string(*answer.json_size));
    co_return response;
  }

  static HttpResponse health(bool is_good) {
    return is_good ? make_response(http::status::ok, "")
                   : make_error(http::status::service_unavailable, "the server is shutting down, or a call of a model hangs");
  }

  bool is_ready() const { return !is_hung() && !draining_; }
  bool is_hung() const {
    for (const auto& [name, model] : models_) {
      if (model.scheduler->longest_run() > options_.run_limit) return true;
    }
    return false;
  }

  std::string unknown_model(const std::string& name) const {
    std::string known;
    for (const auto& [one, model] : models_) known += cat(known.empty() ? "" : ", ", one);
    return cat("there is no model ", name, ", but: ", known);
  }

  const ServerOptions options_;
  const std::map<std::string, ServedModel> models_;
  Registry& registry_;
  Gauge& connections_;
  asio::io_context context_;
  asio::strand<asio::io_context::executor_type> strand_;  // of what accepts and of the signals
  tcp::acceptor acceptor_;
  asio::signal_set signals_;
  asio::steady_timer drain_timer_;
  std::atomic<bool> draining_{false};
  std::mutex mutex_;
  std::unordered_set<ConnectionRef> open_;
};

Server::Server(const ServerOptions& options, std::map<std::string, ServedModel> models, Registry& registry)
    : impl_(std::make_unique<Impl>(options, std::move(models), registry)) {}
Server::~Server() = default;
uint16_t Server::port() const { return impl_->port(); }
void Server::run() { impl_->run(); }

}  // namespace ltc::serve
