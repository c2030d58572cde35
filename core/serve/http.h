// HTTP by Boost.Beast: the types that are used here, answers, and how a connection waits for another thread.
#pragma once

// awaitable.hpp of Boost 1.74 needs it and does not include it.
#include <utility>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <memory>
#include <optional>
#include <string>

#include "core/base/error.h"
#include "core/serve/bounded_queue.h"

namespace ltc::serve {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::use_awaitable;
using asio::ip::tcp;
using boost::system::error_code;
using HttpRequest = http::request<http::string_body>;
using HttpResponse = http::response<http::string_body>;

inline constexpr const char* kJson = "application/json";

struct Connection {
  explicit Connection(tcp::socket socket) : stream(std::move(socket)) {}

  beast::tcp_stream stream;
  beast::flat_buffer buffer;
  bool is_idle = true;  // on the strand of `stream`
};
using ConnectionRef = std::shared_ptr<Connection>;

http::status status_of(Code code);
HttpResponse make_response(http::status status, std::string body, const char* type = kJson);
HttpResponse make_error(http::status status, std::string_view message);

// A coroutine waits here for another thread, and for its client to go away.
class Waiter : public std::enable_shared_from_this<Waiter> {
 public:
  explicit Waiter(tcp::socket& socket) : socket_(socket), timer_(socket.get_executor()) {}

  void notify();  // from any thread, any number of times

  // The rest on the connection's strand.

  // Returns once it was notified, the client left, or that time has come. A notification is used up by one wait.
  asio::awaitable<void> wait(Clock::time_point until);
  void end();  // before anything is read from the connection
  bool notified() const { return notified_; }
  bool client_left() const { return client_left_; }

 private:
  void watch_client();

  tcp::socket& socket_;  // valid until `over_`
  asio::steady_timer timer_;
  bool is_watching_ = false, is_due_ = false, notified_ = false, client_left_ = false, over_ = false;
};

}  // namespace ltc::serve
