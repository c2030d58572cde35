#include "core/host/status.h"

#include <memory>
#include <mutex>
#include <unordered_set>

#include "core/base/utf8.h"

namespace ltc::host {
namespace {

// The statuses that were made and not yet destroyed. Leaked: a plugin's thread may fail while static objects are destroyed.
class Statuses {
 public:
  static Statuses& instance() {
    static auto* statuses = new Statuses();
    return *statuses;
  }
  void add(const ltc_status* status) {
    std::lock_guard lock(mutex_);
    live_.insert(status);
  }
  // Whether it was there.
  bool remove(const ltc_status* status) {
    std::lock_guard lock(mutex_);
    return live_.erase(status) > 0;
  }
  bool contains(const ltc_status* status) {
    std::lock_guard lock(mutex_);
    return live_.contains(status);
  }
  size_t count() {
    std::lock_guard lock(mutex_);
    return live_.size();
  }

 private:
  std::mutex mutex_;
  std::unordered_set<const ltc_status*> live_;
};

// status_create hands this out when there is no memory for a status; shared, never freed, not counted.
ltc_status& no_memory_status() {
  static auto* status = new ltc_status{LTC_RESOURCE_EXHAUSTED, LTC_NONE, "out of host memory, and none left to say for what"};
  return *status;
}

// Made while there is memory.
[[maybe_unused]] const ltc_status& made_early = no_memory_status();

}  // namespace

PluginError::PluginError(Code code, std::string_view plugin, std::string_view slot, std::string_view said)
    : Error(code, cat("[", plugin, "] ", slot, slot.empty() ? "" : ": ", said)), plugin_(plugin), said_(message_text(said)) {}

Code code_of(ltc_code code) {
  const bool known = code >= LTC_INVALID_ARGUMENT && code <= LTC_OUT_OF_RANGE;
  return known ? static_cast<Code>(code) : Code::kInternal;
}

void throw_status(std::string_view plugin, const char* slot, ltc_status* status) {
  if (!status_exists(status)) {
    throw BrokenContract(plugin, cat(slot, " returned a status that this host did not make, or that is destroyed already"));
  }
  struct Owned {
    ltc_status* status;
    ~Owned() { status_destroy(status); }
  } owned{status};
  const Code code = code_of(status->code);
  const std::string said = status->message.empty() ? code_name(code) : status->message;
  if (status->node == LTC_NONE) throw PluginError(code, plugin, slot, said);
  if (code == Code::kUnsupported) throw UnsupportedNode(plugin, slot, said, status->node);
  throw NodeError(code, plugin, slot, said, status->node);
}

size_t live_statuses() { return Statuses::instance().count(); }

bool status_exists(const ltc_status* status) { return status == &no_memory_status() || Statuses::instance().contains(status); }

ltc_status* status_create(ltc_code code, uint32_t node, const char* message, size_t size) noexcept {
  try {
    auto status =
        std::unique_ptr<ltc_status>(new ltc_status{code, node, message ? message_text({message, size}) : std::string()});
    Statuses::instance().add(status.get());
    return status.release();
  } catch (...) {
    return &no_memory_status();
  }
}

void status_destroy(ltc_status* status) noexcept {
  if (status && status != &no_memory_status() && Statuses::instance().remove(status)) delete status;
}

}  // namespace ltc::host
