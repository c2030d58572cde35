#include "conformance/expected.h"

#include <algorithm>
#include <fstream>

#include "core/base/error.h"

namespace ltc::conformance {
namespace {

std::string trimmed(const std::string& text) {
  const size_t first = text.find_first_not_of(" \t\r");
  return first == text.npos ? "" : text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

}  // namespace

ExpectedList ExpectedList::read(const std::string& path, const std::vector<std::string>& names) {
  std::ifstream file(path);
  if (!file) fail(Code::kNotFound, path, ": cannot be read");
  ExpectedList list;
  std::string text;
  for (int number = 1; std::getline(file, text); ++number) {
    text = trimmed(text);
    if (text.empty() || text.starts_with('#')) continue;
    const size_t space = text.find(' '), colon = text.find(':');
    const std::string kind = text.substr(0, space);
    if ((kind != "fails" && kind != "unsupported") || colon == text.npos || space > colon) {
      fail(Code::kInvalidArgument, path, ":", number, ": expected 'fails NAME: reason' or 'unsupported NAME: reason', got '",
           text, "'");
    }
    Line line{kind == "fails" ? Outcome::kExpectedFailure : Outcome::kUnsupported, trimmed(text.substr(space, colon - space)),
              trimmed(text.substr(colon + 1)), number};
    if (line.reason.empty()) fail(Code::kInvalidArgument, path, ":", number, ": a reason is missing for ", line.pattern);
    if (std::ranges::none_of(names, [&](const std::string& name) { return matches(line.pattern, name); })) {
      fail(Code::kInvalidArgument, path, ":", number, ": no check is called '", line.pattern, "'; --list prints the names");
    }
    list.lines_.push_back(std::move(line));
  }
  return list;
}

void ExpectedList::judge(Result& result) const {
  const auto line = std::ranges::find_if(lines_, [&](const Line& l) { return matches(l.pattern, result.name); });
  if (line == lines_.end()) return;
  result.reason = line->reason;
  const bool unclaimed = result.outcome == Outcome::kFailed && result.message.find("not claimed") != std::string::npos;
  if (line->expected == Outcome::kExpectedFailure && result.outcome == Outcome::kFailed) {
    result.outcome = Outcome::kExpectedFailure;
  } else if (line->expected == Outcome::kUnsupported && (unclaimed || result.outcome == Outcome::kUnsupported)) {
    result.outcome = Outcome::kUnsupported;
  } else if (result.outcome == Outcome::kPassed) {
    result.outcome = Outcome::kFailed;
    result.message =
        cat("passed, but line ", line->number, " of the expected list says that it ",
            line->expected == Outcome::kUnsupported ? "is unsupported" : "fails", " (", line->reason, "): take the line out");
  }
}

}  // namespace ltc::conformance
