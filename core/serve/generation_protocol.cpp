#include "core/serve/generation_protocol.h"

#include <algorithm>

#include "core/serve/inference_protocol.h"
#include "core/serve/json_request.h"

namespace ltc::serve {
namespace {

constexpr std::string_view kMembers[] = {"id", "tokens", "parameters"};
constexpr std::string_view kParameters[] = {"max_tokens", "stop_token_ids", "timeout"};

// A parameter that is not known changes the text: it is not passed over.
void refuse_others(const Json& object, std::span<const std::string_view> known, const char* kind) {
  for (const auto& [name, value] : object.items()) {
    if (std::ranges::find(known, name) != known.end()) continue;
    std::string names;
    for (const std::string_view one : known) names += cat(names.empty() ? "" : ", ", one);
    refuse("there is no ", kind, " ", name, " of a text, but: ", names);
  }
}

std::vector<int64_t> tokens_of(const Json& list, const char* name) {
  std::vector<int64_t> tokens;
  if (!list.is_array()) refuse(name, " is to be a list");
  for (const Json& token : list) {
    if (!token.is_number_unsigned() || token.get<uint64_t>() > INT64_MAX) refuse(name, ": ", token.dump(), " is no token");
    tokens.push_back(token.get<int64_t>());
  }
  return tokens;
}

Json head(const std::string& name, const std::string& id) {
  Json json = {{"model_name", name}, {"model_version", "1"}};
  if (!id.empty()) json["id"] = id;
  return json;
}

const char* text_of(FinishReason reason) { return reason == FinishReason::kStop ? "stop" : "length"; }

std::string event(const std::string& data) { return "data: " + data + "\n\n"; }

}  // namespace

GenerateRequest read_generate_request(const TextModel& model, const std::string& body, int64_t max_tokens) {
  const Json json = parse_request(body);
  refuse_others(json, kMembers, "member");
  GenerateRequest result{std::make_shared<TextRequest>(), ""};
  TextRequest& text = *result.text;
  if (json.contains("id")) result.id = text_member(json, "id", "the request");
  text.prompt = tokens_of(member(json, "tokens", "the request"), "tokens");
  const auto length = static_cast<int64_t>(text.prompt.size());
  const int64_t longest = std::min(model.max_prompt, model.max_positions);
  if (length < 1 || length > longest) refuse("tokens has ", length, " tokens, and a prompt has from 1 to ", longest);
  const auto most = number_parameter(json, "max_tokens", "the request");  // first: it checks that `parameters` is an object
  text.max_tokens = std::min(text.max_tokens, max_tokens);
  if (most) {
    if (*most < 1 || *most > static_cast<uint64_t>(max_tokens))
      refuse("max_tokens is ", *most, ", and is to be from 1 to ", max_tokens);
    text.max_tokens = static_cast<int64_t>(*most);
  }
  if (const Json* stops = parameter(json, "stop_token_ids", "the request"))
    text.stop_tokens = tokens_of(*stops, "stop_token_ids");
  text.deadline = deadline_of(json);
  if (json.contains("parameters")) refuse_others(json["parameters"], kParameters, "parameter");
  return result;
}

std::string generate_response(const std::string& name, const std::string& id, const std::vector<int64_t>& tokens,
                              FinishReason reason) {
  Json json = head(name, id);
  json["tokens"] = tokens;
  json["finish_reason"] = text_of(reason);
  return text_of(json);
}

std::string token_event(const std::string& name, const std::string& id, int64_t token) {
  Json json = head(name, id);
  json["token"] = token;
  return event(text_of(json));
}

std::string end_event(const std::string& name, const std::string& id, const TextEnd& end) {
  if (end.failure) return event(error_body(end.failure->message));
  Json json = head(name, id);
  json["finish_reason"] = text_of(end.reason);
  return event(text_of(json));
}

std::string text_model_metadata(const std::string& name, const TextModel& model) {
  const Json tokens = {{"name", "tokens"}, {"datatype", "INT64"}, {"shape", {-1}}};
  Json json = {{"name", name}, {"versions", {"1"}}, {"platform", "ltc"}, {"inputs", {tokens}}, {"outputs", {tokens}}};
  json["parameters"] = {{"max_prompt", model.max_prompt}};
  if (model.max_positions != INT64_MAX) json["parameters"]["max_positions"] = model.max_positions;
  return text_of(json);
}

}  // namespace ltc::serve
