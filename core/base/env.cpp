#include "core/base/env.h"

#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <numeric>
#include <string_view>
#include <utility>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/number.h"

namespace ltc::env {
namespace {

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (size_t end; (end = text.find(separator)) != text.npos; text.remove_prefix(end + 1)) parts.push_back(text.substr(0, end));
  parts.push_back(text);
  return parts;
}

// "a, b or c".
std::string listed(const std::vector<std::string_view>& values) {
  std::string text;
  for (size_t i = 0; i < values.size(); ++i) text += cat(i == 0 ? "" : i + 1 == values.size() ? " or " : ", ", values[i]);
  return text;
}

bool is_number(std::string_view text) {
  uint64_t number;
  return read_number(text, number);
}

bool matches(std::string_view value, std::string_view legal) {
  if (legal == "SECONDS") return is_number(value) && value.size() < 10;
  if (!legal.ends_with(":SEED")) return value == legal;
  legal.remove_suffix(std::string_view("SEED").size());
  return value.starts_with(legal) && is_number(value.substr(legal.size()));
}

// The value, and which of the legal ones it is.
std::pair<std::string, size_t> read(const Variable& variable) {
  std::string value = of_system(variable.name);
  if (value.empty()) value = variable.standard;
  if (!*variable.legal) return {value, 0};
  const auto legal = split(variable.legal, '|');
  const auto found = std::ranges::find_if(legal, [&](std::string_view one) { return matches(value, one); });
  if (found == legal.end()) fail(Code::kInvalidArgument, variable.name, " is '", value, "'; it may be ", listed(legal));
  return {value, static_cast<size_t>(found - legal.begin())};
}

std::vector<std::string_view> known_names() {
  std::vector<std::string_view> names;
  for (const Variable& variable : kVariables) names.emplace_back(variable.name);
  return names;
}

// How many characters to add, drop or change.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t changed = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

std::string prefix_of(std::string_view plugin) {
  std::string prefix = "LTC_";
  for (const unsigned char c : plugin) prefix += std::isalnum(c) ? static_cast<char>(std::toupper(c)) : '_';
  return prefix + '_';
}

}  // namespace

std::string of_system(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::string get(const Variable& variable) { return read(variable).first; }
size_t choice(const Variable& one) { return read(one).second; }
bool is_set(const Variable& flag) { return get(flag) == "1"; }

void check() {
  for (const Variable& variable : kVariables) read(variable);
}

std::vector<std::pair<std::string, std::string>> set_variables() {
  std::vector<std::pair<std::string, std::string>> variables;
  for (char** entry = environ; entry && *entry; ++entry) {
    const std::string_view text = *entry;
    const size_t equals = text.find('=');
    if (text.starts_with("LTC_") && equals != text.npos) variables.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  std::ranges::sort(variables);
  return variables;
}

std::vector<std::string> strangers(std::span<const std::string> names, std::span<const std::string> plugins) {
  const auto known = known_names();
  const auto is_of_plugin = [&](std::string_view name) {
    return std::ranges::any_of(plugins, [&](std::string_view plugin) { return name.starts_with(prefix_of(plugin)); });
  };
  std::vector<std::string> told;
  for (const std::string& name : names) {
    if (!name.starts_with("LTC_") || std::ranges::find(known, name) != known.end() || is_of_plugin(name)) continue;
    const auto nearest = std::ranges::min(known, {}, [&](std::string_view one) { return distance(name, one); });
    told.push_back(cat("nothing reads the environment variable ", name, "; the nearest that is read is ", nearest));
  }
  return told;
}

std::vector<std::pair<std::string, std::string>> options_of(std::string_view plugin) {
  std::vector<std::pair<std::string, std::string>> options;
  const std::string prefix = prefix_of(plugin);
  const auto known = known_names();
  for (char** entry = environ; !is_elevated() && entry && *entry; ++entry) {
    const std::string_view text = *entry, name = text.substr(0, text.find('='));
    if (!name.starts_with(prefix) || name.size() == text.size() || std::ranges::find(known, name) != known.end()) continue;
    const std::string_view value = text.substr(name.size() + 1);
    if (value.empty()) continue;
    std::string option(name.substr(prefix.size()));
    for (char& c : option) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    options.emplace_back(std::move(option), value);
  }
  return options;
}

void warn_of_strangers(std::span<const std::string> plugins) {
  static std::once_flag once;
  std::call_once(once, [&] {
    std::vector<std::string> names;
    for (const auto& [name, value] : set_variables()) names.push_back(name);
    for (const std::string& message : strangers(names, plugins)) log::warn(message);
  });
}

bool is_elevated() { return getauxval(AT_SECURE) != 0; }

}  // namespace ltc::env
