// JSON that came from outside, read with errors that say where and what was expected.
#pragma once

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "core/base/error.h"

namespace ltc::deploy {

using Json = nlohmann::ordered_json;

// `where` names the text in errors, all of which are DATA_CORRUPT.
Json parse_json(std::string_view text, const std::string& where);

// An object of the text, with its path there for errors: "digits.ltc: manifest.json: functions[0]".
class JsonObject {
 public:
  JsonObject(const Json& json, std::string where);

  // Throws UNSUPPORTED for a member of another name: it may change the meaning of the others.
  void only(std::initializer_list<std::string_view> names) const;
  bool has(std::string_view name) const { return json_.contains(name); }

  std::string text(std::string_view name) const { return get<std::string>(name, "a text"); }
  int64_t integer(std::string_view name) const { return get<int64_t>(name, "an integer"); }
  std::vector<int64_t> integers(std::string_view name) const;
  std::vector<std::string> texts(std::string_view name) const { return get<std::vector<std::string>>(name, "a list of texts"); }
  // An index below `count`.
  uint32_t index(std::string_view name, size_t count) const;
  JsonObject object(std::string_view name) const { return {member(name), cat(where_, ": ", name)}; }
  std::vector<JsonObject> objects(std::string_view name) const;
  const Json& member(std::string_view name) const;
  const Json& json() const { return json_; }
  const std::string& where() const { return where_; }

  template <typename... Parts>
  [[noreturn]] void corrupt(const Parts&... parts) const {
    fail(Code::kDataCorrupt, where_, ": ", parts...);
  }

 private:
  template <typename Value>
  Value get(std::string_view name, std::string_view expected) const {
    try {
      return member(name).get<Value>();
    } catch (const Json::exception&) {
      corrupt(name, " is to be ", expected);
    }
  }

  const Json& json_;
  std::string where_;
};

}  // namespace ltc::deploy
