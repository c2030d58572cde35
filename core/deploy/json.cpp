#include "core/deploy/json.h"

#include <algorithm>

namespace ltc::deploy {

Json parse_json(std::string_view text, const std::string& where) {
  try {
    return Json::parse(text);
  } catch (const Json::exception& error) {
    fail(Code::kDataCorrupt, where, ": ", error.what());
  }
}

JsonObject::JsonObject(const Json& json, std::string where) : json_(json), where_(std::move(where)) {
  if (!json_.is_object()) corrupt("this is to be an object");
}

void JsonObject::only(std::initializer_list<std::string_view> names) const {
  for (const auto& [name, value] : json_.items()) {
    if (std::ranges::find(names, name) == names.end())
      fail(Code::kUnsupported, where_, ": '", name, "' is not known here; a newer version may read it");
  }
}

const Json& JsonObject::member(std::string_view name) const {
  const auto found = json_.find(name);
  if (found == json_.end()) corrupt(name, " is missing");
  return *found;
}

std::vector<int64_t> JsonObject::integers(std::string_view name) const {
  const auto is_integer = [](const Json& value) { return value.is_number_integer(); };
  const Json& list = member(name);
  if (!list.is_array() || !std::ranges::all_of(list, is_integer)) corrupt(name, " is to be a list of integers");
  return get<std::vector<int64_t>>(name, "a list of integers");
}

uint32_t JsonObject::index(std::string_view name, size_t count) const {
  const Json& value = member(name);
  if (!value.is_number_unsigned() || value.get<uint64_t>() >= count)
    corrupt(name, " is ", value.dump(), ", and is to be below ", count);
  return value.get<uint32_t>();
}

std::vector<JsonObject> JsonObject::objects(std::string_view name) const {
  const Json& list = member(name);
  if (!list.is_array()) corrupt(name, " is to be a list");
  std::vector<JsonObject> objects;
  for (size_t i = 0; i < list.size(); ++i) objects.emplace_back(list[i], cat(where_, ": ", name, "[", i, "]"));
  return objects;
}

}  // namespace ltc::deploy
