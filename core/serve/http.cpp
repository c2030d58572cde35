#include "core/serve/http.h"

#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>

#include "core/serve/inference_protocol.h"

namespace ltc::serve {

void Waiter::notify() {
  asio::post(timer_.get_executor(), [self = shared_from_this()] {
    self->is_due_ = true;
    self->timer_.cancel();
  });
}

asio::awaitable<void> Waiter::wait(Clock::time_point until) {
  if (!is_watching_) watch_client();
  timer_.expires_at(until);
  error_code ignored;
  if (!is_due_ && !client_left_) co_await timer_.async_wait(asio::redirect_error(use_awaitable, ignored));
  notified_ = std::exchange(is_due_, false);
}

void Waiter::end() {
  over_ = true;
  error_code ignored;
  socket_.cancel(ignored);
}

void Waiter::watch_client() {
  is_watching_ = true;
  socket_.async_wait(tcp::socket::wait_read, [self = shared_from_this()](error_code error) {
    if (self->over_) return;
    if (!error) {
      char byte;
      error_code peeked;
      self->socket_.receive(asio::buffer(&byte, 1), tcp::socket::message_peek, peeked);
      if (!peeked) return;  // the next request is there
    }
    self->client_left_ = true;
    self->timer_.cancel();
  });
}

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

HttpResponse make_response(http::status status, std::string body, const char* type) {
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

}  // namespace ltc::serve
