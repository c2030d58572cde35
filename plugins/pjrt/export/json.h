// The part of JSON that the index uses.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace ltc::pjrt {

std::string json_text(std::string_view text);  // as a string of JSON

class Json {
 public:
  using List = std::vector<Json>;
  using Object = std::map<std::string, Json>;

  // Throws Error(kDataCorrupt) with the place where the text is no JSON. \u escapes are of ASCII only.
  static Json parse(std::string_view text);

  // Throw Error(kDataCorrupt) for a value of another kind, or an absent key.
  const Json& at(const std::string& key) const;
  const List& list() const { return get<List>("a list"); }
  const std::string& text() const { return get<std::string>("a string"); }
  double number() const { return get<double>("a number"); }

 private:
  friend class JsonReader;
  template <typename T>
  const T& get(const char* kind) const;

  std::variant<std::nullptr_t, bool, double, std::string, List, Object> value_;
};

}  // namespace ltc::pjrt
