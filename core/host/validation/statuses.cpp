#include "core/host/validation/statuses.h"

#include <algorithm>

namespace ltc::host::validation {

Statuses& Statuses::instance() {
  static auto* statuses = new Statuses();  // leaked: plugins call until the end of the process
  return *statuses;
}

void Statuses::add(const ltc_status* status, const Made& made) {
  std::lock_guard lock(lock_);
  if (const auto [place, is_new] = made_.emplace(status, made); !is_new) ++place->second.times;
}

std::optional<Statuses::Made> Statuses::find(const ltc_status* status) {
  std::lock_guard lock(lock_);
  const auto found = made_.find(status);
  return found == made_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<Statuses::Made> Statuses::take(const ltc_status* status) {
  std::lock_guard lock(lock_);
  const auto found = made_.find(status);
  if (found == made_.end()) return std::nullopt;
  const Made made = found->second;
  if (--found->second.times == 0) made_.erase(found);
  return made;
}

size_t Statuses::count(const Instance& instance) {
  std::lock_guard lock(lock_);
  return static_cast<size_t>(std::ranges::count_if(made_, [&](const auto& one) { return one.second.instance == &instance; }));
}

}  // namespace ltc::host::validation
