#include "conformance/must_pass.h"

#include <algorithm>
#include <sstream>

#include "core/base/error.h"
#include "ltc/plugin.h"

namespace ltc::conformance {
namespace {

constexpr const char* kBuiltIn =
#include "conformance/must_pass.inc"
    ;

// The capabilities, and the words with which a check says that the plugin lacks one.
struct Capability {
  const char *name, *lacking;
};
constexpr Capability kCapabilities[] = {
    {"computing", "not applicable: the plugin holds memory and does not compute"},
    {"events", "not applicable: the plugin is synchronous"},
    {"saving", "not applicable: the plugin saves no executables"},
    {"saving", "unsupported: this executable cannot be saved"},
    {"stats", "not applicable: the plugin has no memory_stats"},
    {"stats", "not applicable: the plugin does not know its"},
    {"text", "not applicable: the plugin has no program_text"},
    {"closing", "not applicable: the plugin has no plugin_close"},
    {"symbols", "not applicable: the plugin does not list the extension ltc/symbolic.h"},
    {"symbols", "unsupported: refuses the graph with symbols"},
    {"precision", "not applicable: the plugin does not list the extension ltc/precision.h"},
    {"collectives", "not applicable: the plugin does not list the extension ltc/collective.h"},
    {"collectives", "unsupported: these two devices join no group"},
    {"collectives", "unsupported: leaves the op to the host"},
    {"profiles", "not applicable: the plugin does not list the extension ltc/profile.h"},
    {"profiles", "unsupported: declines an op of the graph"},
    {"several devices", "not applicable: the plugin has one device"},
    {"options", "not applicable: the plugin has no options"},
    {"good outputs", "not applicable: the plugin does not say which outputs"},
    {"late failures", "not applicable: no way is known to make work of this plugin fail"},
    {"index checks", "not applicable: the plugin does not look at indices"},
    {"index checks", "not applicable: no run of this plugin fails on submit"},
    {"pending work", "not applicable: such a run is complete when execute returns"},
    {"threads", "not applicable: the plugin takes one call at a time"},
    {"kept data", "not applicable: the plugin keeps nothing in the host's cache"},
    {"clusters", "not applicable: the plugin claims each node by itself"},
    {"several devices", "not applicable: the plugin has one device"},
    {"peer copies", "not applicable: the devices do not copy to each other"},
    {"opens", "unsupported: the device is one's alone"},
    {"parts", "unsupported: the device copies whole buffers only"},
    {"dtypes", "unsupported: the device has no"},
    {"dtypes", "not applicable: the device has every dtype"},
    {"ops", "unsupported: not claimed"},
};
// Says something of the machine, not of the plugin.
constexpr const char* kUnmeasured = "not applicable: the allocator does not count";

const char* lacking(const std::string& message) {
  const auto it = std::ranges::find_if(kCapabilities, [&](const Capability& c) { return message.starts_with(c.lacking); });
  return it == std::end(kCapabilities) ? nullptr : it->name;
}

bool was_skipped(const Result& result) {
  return result.outcome == Outcome::kUnsupported || result.outcome == Outcome::kNotApplicable;
}

std::set<std::string> split(const std::string& text) {
  std::set<std::string> parts;
  for (size_t at = 0; at < text.size();) {
    const size_t comma = std::min(text.find(", ", at), text.size());
    parts.insert(text.substr(at, comma - at));
    at = comma + 2;
  }
  return parts;
}

}  // namespace

bool MustPass::concerns(const std::string& name) {
  const std::string tier = tier_of(name);
  return tier != "ops" && tier != "programs";
}

MustPass MustPass::built_in() { return parse(kBuiltIn); }

MustPass MustPass::parse(const std::string& text) {
  MustPass list;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line.starts_with('#')) continue;
    constexpr std::string_view kNeeds = " needs ";
    const size_t at = std::min(line.find(kNeeds), line.size());
    const auto needs = at == line.size() ? std::set<std::string>() : split(line.substr(at + kNeeds.size()));
    for (const std::string& need : needs) {
      if (std::ranges::find(kCapabilities, need, &Capability::name) == std::end(kCapabilities))
        fail(Code::kInvalidArgument, "the must-pass list: no capability is called '", need, "': ", line);
    }
    if (!list.needs_.emplace(line.substr(0, at), needs).second)
      fail(Code::kInvalidArgument, "the must-pass list has it twice: ", line);
  }
  return list;
}

void MustPass::judge(Result& result) const {
  const auto check = needs_.find(result.name);
  if (check == needs_.end()) return;
  const char* lacks = lacking(result.message);
  const bool may_skip = result.message.starts_with(kUnmeasured) || (lacks && check->second.contains(lacks));
  if (result.outcome != Outcome::kExpectedFailure && (!was_skipped(result) || may_skip)) return;
  result.message = cat("must pass by ABI ", LTC_ABI_MAJOR, ".", LTC_ABI_MINOR,
                       ", and only a waiver excuses it: ", was_skipped(result) ? "it was skipped: " : "", result.message);
  result.outcome = Outcome::kFailed;
}

void MustPass::learn(const Result& result) {
  if (!concerns(result.name)) return;
  auto& needs = needs_[result.name];
  const char* lacks = was_skipped(result) ? lacking(result.message) : nullptr;
  if (lacks) needs.insert(lacks);
}

std::string MustPass::text(const std::vector<std::string>& names) const {
  std::string result;
  for (const std::string& name : names) {
    if (!concerns(name)) continue;
    result += name;
    const auto check = needs_.find(name);
    const char* separator = " needs ";
    for (const std::string& need : check == needs_.end() ? std::set<std::string>() : check->second) {
      result += separator + need;
      separator = ", ";
    }
    result += "\n";
  }
  return result;
}

}  // namespace ltc::conformance
