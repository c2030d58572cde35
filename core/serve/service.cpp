#include "core/serve/service.h"

#include <boost/asio/redirect_error.hpp>
#include <charconv>

#include "core/serve/inference_protocol.h"

namespace ltc::serve {
namespace {

constexpr const char* kJsonSize = "Inference-Header-Content-Length";
constexpr std::string_view kModels = "/v2/models/";

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

// "/v2/models/NAME/infer" is NAME and "/infer"; also with "/versions/1" after the name.
std::pair<std::string, std::string> split_model_path(std::string_view path) {
  path.remove_prefix(kModels.size());
  const size_t end = std::min(path.find('/'), path.size());
  const std::string name(path.substr(0, end));
  std::string_view rest = path.substr(end);
  if (rest.starts_with("/versions/1")) rest.remove_prefix(std::string_view("/versions/1").size());
  return {name, std::string(rest)};
}

std::string unknown_model(const std::string& name, const std::map<std::string, ServedModel>& models) {
  std::string known;
  for (const auto& [one, model] : models) known += cat(known.empty() ? "" : ", ", one);
  return cat("there is no model ", name, ", but: ", known);
}

HttpResponse health(bool is_good) {
  return is_good ? make_response(http::status::ok, "")
                 : make_error(http::status::service_unavailable, "the server is shutting down, or a call of a model hangs");
}

void expect_method(const HttpRequest& request, http::verb verb) {
  if (request.method() != verb)
    fail(Code::kInvalidArgument, std::string(request.target()), " takes ", std::string(http::to_string(verb)));
}

}  // namespace

asio::awaitable<bool> Service::answer(HttpRequest request, Connection& connection) {
  std::optional<HttpResponse> response;
  try {
    response = co_await respond(request, connection);
  } catch (const Error& error) {
    response = make_error(status_of(error.code()), error.what());
  } catch (const std::exception& error) {
    response = make_error(status_of(Code::kInternal), error.what());
  }
  if (!response) co_return false;
  co_return co_await write(std::move(*response), connection, request.keep_alive());
}

asio::awaitable<bool> Service::write(HttpResponse response, Connection& connection, bool keep_alive) const {
  const bool goes_on = keep_alive && !draining_;
  response.keep_alive(goes_on);
  response.prepare_payload();
  connection.stream.expires_after(options_.io_limit);
  error_code error;
  co_await http::async_write(connection.stream, response, asio::redirect_error(use_awaitable, error));
  co_return goes_on && !error;
}

asio::awaitable<std::optional<HttpResponse>> Service::respond(HttpRequest& request, Connection& connection) {
  std::string_view path(request.target().data(), request.target().size());
  path = path.substr(0, path.find('?'));
  if (path == "/v2/health/live") co_return health(!is_hung());
  if (path == "/v2/health/ready") co_return health(is_ready());
  if (path.starts_with(kModels)) co_return co_await ask_model(path, request, connection);
  if (path == "/metrics") {
    expect_method(request, http::verb::get);
    co_return make_response(http::status::ok, registry_.text(), "text/plain; version=0.0.4");
  }
  if (path == "/v2" || path == "/v2/") {
    expect_method(request, http::verb::get);
    co_return make_response(http::status::ok,
                            R"({"name":"ltc-serve","version":")" LTC_VERSION R"(","extensions":["binary_tensor_data"]})");
  }
  co_return make_error(http::status::not_found, cat("there is no ", path));
}

asio::awaitable<std::optional<HttpResponse>> Service::ask_model(std::string_view path, HttpRequest& request,
                                                                Connection& connection) {
  const auto [name, action] = split_model_path(path);
  const auto model = models_.find(name);
  if (model == models_.end()) co_return make_error(http::status::not_found, unknown_model(name, models_));
  if (action == "/ready") co_return health(is_ready());
  if (action.empty()) {
    expect_method(request, http::verb::get);
    co_return make_response(http::status::ok, model_metadata(name, model->second.scheduler->functions()[model->second.function]));
  }
  if (action != "/infer") co_return make_error(http::status::not_found, cat("there is no ", path));
  expect_method(request, http::verb::post);
  co_return co_await infer(name, model->second, request, connection);
}

asio::awaitable<std::optional<HttpResponse>> Service::infer(std::string name, ServedModel model, HttpRequest& http_request,
                                                            Connection& connection) {
  const ServedFunction& function = model.scheduler->functions()[model.function];
  const std::optional<size_t> json_size = json_size_of(http_request);
  const InferRequest given = read_infer_request(function, std::move(http_request.body()), json_size);
  Request& request = *given.request;
  request.function = model.function;
  if (options_.deadline.count() > 0) request.deadline = std::min(request.deadline, Clock::now() + options_.deadline);
  auto waiter = std::make_shared<Waiter>(connection.stream.socket());
  request.done = [waiter] { waiter->notify(); };
  model.scheduler->submit(given.request);
  co_await waiter->wait(request.deadline);
  waiter->end();
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

bool Service::is_hung() const {
  for (const auto& [name, model] : models_) {
    if (model.scheduler->longest_run() > options_.run_limit) return true;
  }
  return false;
}

}  // namespace ltc::serve
