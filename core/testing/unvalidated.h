// For tests that break the contract of ltc/plugin.h on purpose, that compare handles with those that the plugin sees, or that
// count what the host alone does.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>

namespace ltc::testing {

// Plugins that are entered while one lives are not validated, whatever LTC_VALIDATE says.
class Unvalidated {
 public:
  Unvalidated() {
    if (const char* value = std::getenv("LTC_VALIDATE")) before_ = value;
    unsetenv("LTC_VALIDATE");
  }
  ~Unvalidated() {
    if (before_) setenv("LTC_VALIDATE", before_->c_str(), 1);
  }
  Unvalidated(const Unvalidated&) = delete;
  Unvalidated& operator=(const Unvalidated&) = delete;

 private:
  std::optional<std::string> before_;
};

}  // namespace ltc::testing
