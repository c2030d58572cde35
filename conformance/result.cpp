#include "conformance/result.h"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace ltc::conformance {

const char* outcome_name(Outcome outcome) {
  switch (outcome) {
    case Outcome::kPassed: return "passed";
    case Outcome::kFailed: return "failed";
    case Outcome::kUnsupported: return "unsupported";
    case Outcome::kNotApplicable: return "not applicable";
    case Outcome::kExpectedFailure: return "expected failure";
    case Outcome::kWaived: return "waived";
    case Outcome::kNotRun: return "not run";
  }
  return "";
}

const std::vector<std::string>& tiers() {
  static const auto* names = new std::vector<std::string>{"loader", "abi",     "memory", "execute", "cache",   "async",
                                                          "errors", "threads", "stress", "ops",     "programs"};
  return *names;
}

std::string tier_of(const std::string& name) {
  std::string tier = name.substr(0, name.find('.'));
  std::ranges::transform(tier, tier.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const auto it = std::ranges::find_if(tiers(), [&](const std::string& known) { return tier.starts_with(known); });
  return it == tiers().end() ? tier : *it;
}

std::string Result::tier() const { return tier_of(name); }

bool matches(const std::string& pattern, const std::string& name) {
  // Greedy, with a return to the last star.
  size_t p = 0, n = 0, star = std::string::npos, star_at = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++, star_at = n;
    } else if (p < pattern.size() && pattern[p] == name[n]) {
      ++p, ++n;
    } else if (star != std::string::npos) {
      p = star + 1, n = ++star_at;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace ltc::conformance
