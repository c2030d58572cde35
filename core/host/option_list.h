// Options as the C ABI wants them: an array of pointers to sized structs that point into the host's strings.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/host/sized.h"

namespace ltc::host {

using Options = std::vector<std::pair<std::string, std::string>>;

// Borrows `options`.
class OptionList {
 public:
  explicit OptionList(const Options& options) {
    structs_.reserve(options.size());
    for (const auto& [name, value] : options) {
      auto option = sized<ltc_option>();
      option.name = {name.data(), name.size()};
      option.value = {value.data(), value.size()};
      pointers_.push_back(&structs_.emplace_back(option));
    }
  }
  OptionList(const OptionList&) = delete;
  OptionList& operator=(const OptionList&) = delete;

  size_t size() const { return pointers_.size(); }
  const ltc_option* const* data() const { return pointers_.data(); }

 private:
  std::vector<ltc_option> structs_;
  std::vector<const ltc_option*> pointers_;
};

}  // namespace ltc::host
