// Options that a plugin gets, as the SDK checks them. Input: lines of NAME=VALUE.
#include "ltc/options.hpp"

#include <algorithm>

#include "core/host/option_list.h"
#include "fuzz/target.h"

namespace ltc::fuzz {
namespace {

constexpr plugin::OptionRow kRows[] = {
    {"kernels", "async", "async|sync|off", "a choice"},
    {"layouts", "", "|random:SEED", "nothing or a number"},
    {"path", "", "", "any text"},
};

bool is_legal(std::string_view name, std::string_view value) {
  constexpr std::string_view kRandom = "random:";
  if (name == "kernels") return value == "async" || value == "sync" || value == "off";
  if (name == "layouts" && value.starts_with(kRandom)) {
    return value.size() > kRandom.size() &&
           std::ranges::all_of(value.substr(kRandom.size()), [](char c) { return c >= '0' && c <= '9'; });
  }
  return name == "path" || (name == "layouts" && value.empty());
}

host::Options split(std::string_view input) {
  host::Options options;
  while (!input.empty()) {
    const std::string_view line = input.substr(0, input.find('\n'));
    input.remove_prefix(std::min(input.size(), line.size() + 1));
    const size_t equals = std::min(line.find('='), line.size());
    options.emplace_back(line.substr(0, equals), line.substr(std::min(equals + 1, line.size())));
  }
  return options;
}

}  // namespace

bool accept(std::string_view input) {
  const host::Options given = split(input);
  const host::OptionList list(given);
  auto args = host::sized<ltc_entry_args>();
  args.option_count = list.size();
  args.options = list.data();
  const bool all_legal = std::ranges::all_of(given, [](const auto& option) { return is_legal(option.first, option.second); });
  try {
    const plugin::Options options(kRows, args);
    require(all_legal, "a legal option");
    for (auto option = given.rbegin(); option != given.rend(); ++option) {
      const bool is_last =
          std::find_if(given.rbegin(), option, [&](const auto& later) { return later.first == option->first; }) == option;
      require(!is_last || options[option->first] == option->second, "an option has the value that was given last");
    }
    auto info = host::sized<ltc_plugin_info>();
    options.list(info);
    require(info.option_count == std::size(kRows), "every row is listed");
  } catch (const std::invalid_argument&) {
    require(!all_legal, "a refused option is not legal");
    return false;
  }
  return true;
}

std::vector<std::string> sound_inputs() { return {"", "kernels=sync\npath=/a:/b", "layouts=random:17\nkernels=off", "layouts="}; }

}  // namespace ltc::fuzz
