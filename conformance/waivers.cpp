#include "conformance/waivers.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <sstream>

#include "core/base/error.h"

namespace ltc::conformance {
namespace {

std::optional<unsigned> digits(const std::string& text, size_t at, size_t count) {
  unsigned value = 0;
  const char* const end = text.data() + at + count;
  const auto [stop, error] = std::from_chars(text.data() + at, end, value);
  return error == std::errc() && stop == end ? std::optional(value) : std::nullopt;
}

std::optional<Day> day_of(const std::string& text) {
  if (text.size() != 10 || text[4] != '-' || text[7] != '-') return std::nullopt;
  const auto year = digits(text, 0, 4), month = digits(text, 5, 2), day = digits(text, 8, 2);
  if (!year || !month || !day) return std::nullopt;
  const Day result{std::chrono::year(static_cast<int>(*year)), std::chrono::month(*month), std::chrono::day(*day)};
  return result.ok() ? std::optional(result) : std::nullopt;
}

}  // namespace

Waivers Waivers::read(const std::string& path, const std::vector<std::string>& names) {
  std::ifstream file(path);
  if (!file) fail(Code::kNotFound, path, ": cannot be read");
  Waivers waivers;
  std::string text;
  for (int number = 1; std::getline(file, text); ++number) {
    Line line;
    line.number = number;
    std::istringstream words(text);
    words >> line.name;
    if (line.name.empty() || line.name.starts_with('#')) continue;
    words >> line.date >> std::ws;
    std::getline(words, line.reason);
    while (!line.reason.empty() && std::isspace(static_cast<unsigned char>(line.reason.back()))) line.reason.pop_back();
    const auto refuse = [&](const auto&... what) { fail(Code::kInvalidArgument, path, ":", number, ": ", what...); };
    const auto last = day_of(line.date);
    if (!last) refuse("expected 'NAME YYYY-MM-DD reason', got '", text, "'");
    if (line.reason.empty()) refuse("a reason is missing for ", line.name);
    if (std::ranges::find(names, line.name) == names.end())
      refuse("no check is called '", line.name, "'; --list prints the names");
    if (std::ranges::find(waivers.lines_, line.name, &Line::name) != waivers.lines_.end()) refuse(line.name, " is waived twice");
    line.last = *last;
    waivers.lines_.push_back(std::move(line));
  }
  return waivers;
}

Day Waivers::today() { return std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now()); }

void Waivers::judge(Result& result, Outcome ran, Day day) const {
  const auto line = std::ranges::find(lines_, result.name, &Line::name);
  if (line == lines_.end()) return;
  const auto because = [&](const auto&... what) {
    result.outcome = Outcome::kFailed;
    result.message = cat(what..., " line ", line->number, " of the waivers (", line->reason, ")",
                         result.message.empty() ? "" : ": ", result.message);
  };
  if (ran == Outcome::kPassed) {
    result.message.clear();
    because("passed, so take out");
  } else if (result.outcome == Outcome::kFailed || result.outcome == Outcome::kExpectedFailure) {
    result.reason = cat("until ", line->date, ": ", line->reason);
    result.outcome = Outcome::kWaived;
    if (day > line->last) because("no longer waived since ", line->date, " is over, by");
  }
}

}  // namespace ltc::conformance
