// Members of a request in JSON. Errors: INVALID_ARGUMENT, which begins with `where`.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "core/serve/bounded_queue.h"

namespace ltc::serve {

using Json = nlohmann::json;

template <typename... Parts>
[[noreturn]] void refuse(const Parts&... parts) {
  fail(Code::kInvalidArgument, parts...);
}

// The request, which is to be an object.
Json parse_request(std::string_view text);

// A member of the object; throws where it is not there or is of another kind.
const Json& member(const Json& object, const char* name, const std::string& where);
std::string text_member(const Json& object, const char* name, const std::string& where);
const Json& list_member(const Json& object, const char* name, const std::string& where);

// A member of the object's `parameters`; null or none where it is not there.
const Json* parameter(const Json& object, const char* name, const std::string& where);
bool flag_parameter(const Json& object, const char* name, const std::string& where, bool otherwise);
std::optional<uint64_t> number_parameter(const Json& object, const char* name, const std::string& where);

// The time by which a request wants its answer: its parameter `timeout`, in microseconds. `max` where it has none.
Clock::time_point deadline_of(const Json& request);

std::string text_of(const Json& json);  // what is no UTF-8 is replaced

}  // namespace ltc::serve
