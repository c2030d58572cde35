#include "core/serve/json_request.h"

namespace ltc::serve {

Json parse_request(std::string_view text) {
  Json request;
  try {
    request = Json::parse(text);
  } catch (const Json::exception& error) {
    refuse("the request is no JSON: ", error.what());
  }
  if (!request.is_object()) refuse("the request is to be a JSON object");
  return request;
}

const Json& member(const Json& object, const char* name, const std::string& where) {
  const auto found = object.find(name);
  if (found == object.end()) refuse(where, " lacks ", name);
  return *found;
}

std::string text_member(const Json& object, const char* name, const std::string& where) {
  const Json& value = member(object, name, where);
  if (!value.is_string()) refuse(where, ": ", name, " is to be a text");
  return value.get<std::string>();
}

const Json& list_member(const Json& object, const char* name, const std::string& where) {
  const Json& value = member(object, name, where);
  if (!value.is_array()) refuse(where, ": ", name, " is to be a list");
  return value;
}

const Json* parameter(const Json& object, const char* name, const std::string& where) {
  const auto parameters = object.find("parameters");
  if (parameters == object.end()) return nullptr;
  if (!parameters->is_object()) refuse(where, ": parameters is to be an object");
  const auto found = parameters->find(name);
  return found == parameters->end() ? nullptr : &*found;
}

bool flag_parameter(const Json& object, const char* name, const std::string& where, bool otherwise) {
  const Json* value = parameter(object, name, where);
  if (value && !value->is_boolean()) refuse(where, ": parameter ", name, " is to be true or false");
  return value ? value->get<bool>() : otherwise;
}

std::optional<uint64_t> number_parameter(const Json& object, const char* name, const std::string& where) {
  const Json* value = parameter(object, name, where);
  if (value && !value->is_number_unsigned()) refuse(where, ": parameter ", name, " is to be an integer from 0");
  return value ? std::optional(value->get<uint64_t>()) : std::nullopt;
}

Clock::time_point deadline_of(const Json& request) {
  const auto timeout = number_parameter(request, "timeout", "the request");
  if (!timeout || *timeout == 0) return Clock::time_point::max();
  return Clock::now() + std::chrono::microseconds(std::min<uint64_t>(*timeout, 1ull << 50));
}

std::string text_of(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace ltc::serve
