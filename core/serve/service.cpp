#include "core/serve/service.h"

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/write.hpp>
#include <charconv>

#include "core/base/number.h"
#include "core/serve/inference_protocol.h"

namespace ltc::serve {
namespace {

constexpr const char* kJsonSize = "Inference-Header-Content-Length";
constexpr std::string_view kModels = "/v2/models/";

std::optional<size_t> json_size_of(const HttpRequest& request) {
  const auto found = request.find(kJsonSize);
  if (found == request.end()) return std::nullopt;
  const std::string_view text(found->value().data(), found->value().size());
  size_t size = 0;
  if (!read_number(text, size)) fail(Code::kInvalidArgument, kJsonSize, " is to be a number of bytes, and is '", text, "'");
  return size;
}

// "a%20b" is "a b". Other signs of percent stay.
std::string unescaped(std::string_view text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    uint8_t byte = 0;
    const char* const begin = text.data() + i + 1;
    if (text[i] == '%' && i + 2 < text.size() && std::from_chars(begin, begin + 2, byte, 16).ptr == begin + 2) {
      result += static_cast<char>(byte);
      i += 2;
    } else {
      result += text[i];
    }
  }
  return result;
}

// "/v2/models/NAME/infer" is NAME and "/infer"; also with "/versions/1" after the name.
std::pair<std::string, std::string> split_model_path(std::string_view path) {
  path.remove_prefix(kModels.size());
  const size_t end = std::min(path.find('/'), path.size());
  const std::string name = unescaped(path.substr(0, end));
  std::string_view rest = path.substr(end);
  if (rest.starts_with("/versions/1")) rest.remove_prefix(std::string_view("/versions/1").size());
  return {name, std::string(rest)};
}

std::string unknown_model(const std::string& name, const std::map<std::string, ServedModel>& models) {
  std::string known;
  for (const auto& [one, model] : models) known += cat(known.empty() ? "" : ", ", one);
  return cat("there is no model ", name, ", but: ", known);
}

std::string metadata(const std::string& name, const ServedModel& model) {
  return model.scheduler ? model_metadata(name, model.scheduler->functions()[model.function])
                         : text_model_metadata(name, model.generator->model());
}

HttpResponse health(bool is_good) {
  return is_good ? make_response(http::status::ok, "")
                 : make_error(http::status::service_unavailable,
                              "the server is shutting down, a call of a model hangs, or a device is lost");
}

void expect_method(const HttpRequest& request, http::verb verb) {
  if (request.method() != verb)
    fail(Code::kInvalidArgument, std::string(request.target()), " takes ", std::string(http::to_string(verb)));
}

// Follows a text as long as it lives. A text that has not ended then is given up.
struct Follower {
  TextGenerator& generator;
  TextRequest& text;
  Waiter& waiter;

  ~Follower() {
    generator.cancel(text);
    waiter.end();
  }
};

}  // namespace

asio::awaitable<bool> Service::answer(HttpRequest request, Connection& connection) {
  Answer answer = false;
  try {
    answer = co_await respond(request, connection);
  } catch (const Error& error) {
    answer = make_error(status_of(error.code()), error.what());
  } catch (const std::exception& error) {
    answer = make_error(status_of(Code::kInternal), error.what());
  }
  if (std::holds_alternative<bool>(answer)) co_return std::get<bool>(answer);
  co_return co_await write(std::get<HttpResponse>(std::move(answer)), connection, request.keep_alive());
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

asio::awaitable<Service::Answer> Service::respond(HttpRequest& request, Connection& connection) {
  std::string_view path(request.target().data(), request.target().size());
  path = path.substr(0, path.find('?'));
  if (path == "/v2/health/live") co_return health(is_live());
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

asio::awaitable<Service::Answer> Service::ask_model(std::string_view path, HttpRequest& request, Connection& connection) {
  const auto [name, action] = split_model_path(path);
  const auto model = models_.find(name);
  if (model == models_.end()) co_return make_error(http::status::not_found, unknown_model(name, models_));
  if (action == "/ready") co_return health(is_ready());
  const ServedModel& served = model->second;
  if (action.empty()) {
    expect_method(request, http::verb::get);
    co_return make_response(http::status::ok, metadata(name, served));
  }
  const bool is_stream = action == "/generate_stream";
  const bool generates = served.generator && (is_stream || action == "/generate");
  if (!generates && (action != "/infer" || !served.scheduler))
    co_return make_error(http::status::not_found, cat("there is no ", path));
  expect_method(request, http::verb::post);
  const auto encoding = request[http::field::content_encoding];
  if (!encoding.empty() && encoding != "identity")
    fail(Code::kInvalidArgument, "Content-Encoding is '", std::string(encoding), "', and is to be identity");
  if (generates) co_return co_await generate(name, *served.generator, request, connection, is_stream);
  co_return co_await infer(name, served, request, connection);
}

asio::awaitable<Service::Answer> Service::infer(std::string name, ServedModel model, HttpRequest& http_request,
                                                Connection& connection) {
  const ServedFunction& function = model.scheduler->functions()[model.function];
  const std::optional<size_t> json_size = json_size_of(http_request);
  const InferRequest given = read_infer_request(function, std::move(http_request.body()), json_size);
  Request& request = *given.request;
  request.function = model.function;
  request.deadline = limited(request.deadline);
  auto waiter = std::make_shared<Waiter>(connection.stream.socket());
  request.done = [waiter] { waiter->notify(); };
  model.scheduler->submit(given.request);
  co_await waiter->wait(request.deadline);
  waiter->end();
  if (!waiter->notified()) {
    const bool had_begun = !model.scheduler->cancel(request);
    if (waiter->client_left()) co_return false;
    fail(Code::kTimeout, "the deadline passed while the request ", had_begun ? "ran" : "waited");
  }
  if (request.failure) throw Error(request.failure->code, request.failure->message);
  InferResponse answer = write_infer_response(name, function, given);
  HttpResponse response =
      make_response(http::status::ok, std::move(answer.body), answer.json_size ? "application/octet-stream" : kJson);
  if (answer.json_size) response.set(kJsonSize, std::to_string(*answer.json_size));
  co_return response;
}

asio::awaitable<Service::Answer> Service::generate(std::string name, TextGenerator& generator, HttpRequest& request,
                                                   Connection& connection, bool is_stream) {
  if (is_stream && request.version() < 11) fail(Code::kInvalidArgument, "a stream needs HTTP/1.1");
  const GenerateRequest given = read_generate_request(generator.model(), request.body(), options_.max_tokens);
  TextRequest& text = *given.text;
  text.deadline = limited(text.deadline);
  auto waiter = std::make_shared<Waiter>(connection.stream.socket());
  text.changed = [waiter] { waiter->notify(); };
  generator.submit(given.text);
  const Follower follower{generator, text, *waiter};
  TextRequest::News news;
  std::vector<int64_t> tokens;
  do {  // until the end; in a stream until it can begin
    co_await waiter->wait(text.deadline);
    if (waiter->client_left()) co_return false;
    news = text.take_news();
    if (!waiter->notified() && !news.end) fail(Code::kTimeout, "the deadline passed before the end of the text");
    if (is_stream && !news.tokens.empty())
      co_return co_await stream_text(name, given, *waiter, std::move(news), request, connection);
    tokens.insert(tokens.end(), news.tokens.begin(), news.tokens.end());
  } while (!news.end);
  if (news.end->failure) throw Error(news.end->failure->code, news.end->failure->message);
  co_return make_response(http::status::ok, generate_response(name, given.id, tokens, news.end->reason));
}

asio::awaitable<Service::Answer> Service::stream_text(std::string name, const GenerateRequest& given, Waiter& waiter,
                                                      TextRequest::News news, HttpRequest& request, Connection& connection) {
  beast::tcp_stream& stream = connection.stream;
  const bool goes_on = request.keep_alive() && !draining_;
  http::response<http::empty_body> head(http::status::ok, 11);
  head.set(http::field::content_type, "text/event-stream");
  head.set(http::field::cache_control, "no-cache");
  head.keep_alive(goes_on);
  head.chunked(true);
  http::response_serializer<http::empty_body> serializer(head);
  error_code error;
  stream.expires_after(options_.io_limit);
  co_await http::async_write_header(stream, serializer, asio::redirect_error(use_awaitable, error));
  while (!error) {
    std::string events;
    for (const int64_t token : news.tokens) events += token_event(name, given.id, token);
    if (news.end) events += end_event(name, given.id, *news.end);
    stream.expires_after(options_.io_limit);  // a client that does not read
    if (!events.empty())
      co_await asio::async_write(stream, http::make_chunk(asio::buffer(events)), asio::redirect_error(use_awaitable, error));
    if (error) break;
    if (news.end) {
      co_await asio::async_write(stream, http::make_chunk_last(), asio::redirect_error(use_awaitable, error));
      co_return goes_on && !error;
    }
    stream.expires_never();
    co_await waiter.wait(given.text->deadline);
    if (waiter.client_left()) break;
    news = given.text->take_news();
    if (!waiter.notified() && !news.end)
      news.end = TextEnd{{}, Failure{Code::kTimeout, "the deadline passed before the end of the text"}};
  }
  co_return false;
}

Clock::time_point Service::limited(Clock::time_point deadline) const {
  return options_.deadline.count() > 0 ? std::min(deadline, Clock::now() + options_.deadline) : deadline;
}

bool Service::is_live() const {
  const auto works = [&](const auto* model) {
    return !model || (model->longest_run() <= options_.run_limit && !model->lost_its_device());
  };
  return std::ranges::all_of(models_,
                             [&](const auto& model) { return works(model.second.scheduler) && works(model.second.generator); });
}

}  // namespace ltc::serve
