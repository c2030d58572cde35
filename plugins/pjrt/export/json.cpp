#include "pjrt/export/json.h"

#include <algorithm>
#include <charconv>
#include <cstdio>

#include "core/base/error.h"

namespace ltc::pjrt {

std::string json_text(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    char code[8];
    std::snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned char>(c));
    if (static_cast<unsigned char>(c) < 0x20) {
      result += code;
    } else {
      if (c == '"' || c == '\\') result += '\\';
      result += c;
    }
  }
  return result + '"';
}

class JsonReader {
 public:
  explicit JsonReader(std::string_view text) : text_(text) {}

  Json whole() {
    Json result = value(0);
    expect(peek() == '\0' && at_ == text_.size(), "the end");
    return result;
  }

 private:
  void expect(bool holds, const char* wanted) const {
    if (!holds) fail(Code::kDataCorrupt, "no JSON: expected ", wanted, " at byte ", at_);
  }
  // The next character behind spaces, or 0 at the end.
  char peek() {
    at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size());
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char c) { return peek() == c && c ? ++at_, true : false; }
  bool take(std::string_view word) { return peek(), text_.substr(at_).starts_with(word) ? at_ += word.size(), true : false; }

  Json value(int depth) {
    expect(depth < 32, "less depth");
    Json result;
    if (peek() == '"') {
      result.value_ = string();
    } else if (take('[')) {
      Json::List list;
      for (bool more = !take(']'); more; more = !end(']')) list.push_back(value(depth + 1));
      result.value_ = std::move(list);
    } else if (take('{')) {
      Json::Object object;
      for (bool more = !take('}'); more; more = !end('}')) {
        std::string key = string();
        expect(take(':'), "a colon");
        object.insert_or_assign(std::move(key), value(depth + 1));
      }
      result.value_ = std::move(object);
    } else if (take("true")) {
      result.value_ = true;
    } else if (take("false")) {
      result.value_ = false;
    } else if (!take("null")) {
      double number = 0;
      const auto [end, failed] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), number);
      expect(failed == std::errc(), "a value");
      at_ = static_cast<size_t>(end - text_.data());
      result.value_ = number;
    }
    return result;
  }
  // Whether the list or object ends here; else a comma is there.
  bool end(char bracket) {
    if (take(bracket)) return true;
    expect(take(','), "a comma");
    return false;
  }

  std::string string() {
    expect(take('"'), "a string");
    std::string result;
    for (; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      expect(static_cast<unsigned char>(text_[at_]) >= 0x20, "an escape for a control character");
      result += text_[at_] == '\\' ? escaped() : text_[at_];
    }
    expect(at_ < text_.size(), "the end of the string");
    ++at_;
    return result;
  }
  // The character of an escape, whose last character is the current one then.
  char escaped() {
    constexpr std::string_view kLetters = "\"\\/bfnrt", kMeanings = "\"\\/\b\f\n\r\t";
    const char letter = ++at_ < text_.size() ? text_[at_] : '\0';
    if (letter == 'u') {
      unsigned code = 256;
      if (text_.size() - at_ > 4) std::from_chars(text_.data() + at_ + 1, text_.data() + at_ + 5, code, 16);
      expect(code < 128, "four digits of a character of ASCII");
      at_ += 4;
      return static_cast<char>(code);
    }
    const size_t known = letter ? kLetters.find(letter) : kLetters.npos;
    expect(known != kLetters.npos, "an escape");
    return kMeanings[known];
  }

  std::string_view text_;
  size_t at_ = 0;
};

Json Json::parse(std::string_view text) { return JsonReader(text).whole(); }

template <typename T>
const T& Json::get(const char* kind) const {
  const T* value = std::get_if<T>(&value_);
  if (!value) fail(Code::kDataCorrupt, "the index has something else where ", kind, " is to be");
  return *value;
}
template const Json::List& Json::get(const char*) const;
template const std::string& Json::get(const char*) const;
template const double& Json::get(const char*) const;

const Json& Json::at(const std::string& key) const {
  const Object& object = get<Object>("an object");
  const auto found = object.find(key);
  if (found == object.end()) fail(Code::kDataCorrupt, "an entry of the index has no \"", key, "\"");
  return found->second;
}

}  // namespace ltc::pjrt
