// The statuses that plugins made and hold.
#pragma once

#include <cstddef>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "ltc/plugin.h"

namespace ltc::host::validation {

struct Instance;

class Statuses {
 public:
  struct Made {
    Instance* instance;
    ltc_code code;
    uint32_t node;
    uint32_t times = 1;  // the host's one status of "no memory left" may be handed out again and again
  };

  static Statuses& instance();

  void add(const ltc_status* status, const Made& made);
  std::optional<Made> find(const ltc_status* status);
  std::optional<Made> take(const ltc_status* status);  // it belongs to somebody else, or to nobody, from here on
  size_t count(const Instance& instance);

 private:
  std::mutex lock_;
  std::unordered_map<const ltc_status*, Made> made_;
};

}  // namespace ltc::host::validation
