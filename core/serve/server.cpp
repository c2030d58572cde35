#include "core/serve/server.h"

#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/strand.hpp>
#include <thread>
#include <unordered_set>

#include "core/base/log.h"
#include "core/serve/http.h"
#include "core/serve/service.h"

namespace ltc::serve {
namespace {

constexpr std::chrono::seconds kLingerLimit{2};

}  // namespace

class Server::Impl {
 public:
  Impl(const ServerOptions& options, std::map<std::string, ServedModel> models, Registry& registry)
      : options_(options),
        service_(options_, std::move(models), registry),
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

  Clock::time_point run() {
    signals_.async_wait([this](error_code error, int) {
      if (!error) begin_drain();
    });
    asio::co_spawn(strand_, accept(), asio::detached);
    std::vector<std::thread> threads;
    for (uint32_t i = 1; i < options_.threads; ++i) threads.emplace_back([this] { context_.run(); });
    context_.run();
    for (std::thread& thread : threads) thread.join();
    return drain_until_;
  }

 private:
  asio::awaitable<void> accept() {
    while (!service_.is_draining()) {
      tcp::socket socket(asio::make_strand(context_));
      error_code error;
      co_await acceptor_.async_accept(socket, asio::redirect_error(use_awaitable, error));
      if (service_.is_draining()) co_return;
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
        if (service_.is_draining() && open_.empty()) drain_timer_.cancel();
      });
    }
  }

  // Idle connections end at once, the others with their answers, all of them after the limit.
  void begin_drain() {
    service_.drain();
    drain_until_ = Clock::now() + options_.drain_limit;
    error_code ignored;
    acceptor_.close(ignored);
    close_connections(true);
    std::lock_guard lock(mutex_);
    if (open_.empty()) return;
    drain_timer_.expires_at(drain_until_);
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
    while (goes_on && !service_.is_draining()) {
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
      if (!error) {
        stream.expires_never();
        goes_on = co_await service_.answer(parser.release(), *connection);
        continue;
      }
      if (std::optional<HttpResponse> response = response_to_unread(error))
        co_await service_.write(std::move(*response), *connection, false);
      break;
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

  const ServerOptions options_;
  Service service_;
  Gauge& connections_;
  asio::io_context context_;
  asio::strand<asio::io_context::executor_type> strand_;  // of what accepts and of the signals
  tcp::acceptor acceptor_;
  asio::signal_set signals_;
  asio::steady_timer drain_timer_;
  Clock::time_point drain_until_;
  std::mutex mutex_;
  std::unordered_set<ConnectionRef> open_;
};

Server::Server(const ServerOptions& options, std::map<std::string, ServedModel> models, Registry& registry)
    : impl_(std::make_unique<Impl>(options, std::move(models), registry)) {}
Server::~Server() = default;
uint16_t Server::port() const { return impl_->port(); }
Clock::time_point Server::run() { return impl_->run(); }

}  // namespace ltc::serve
