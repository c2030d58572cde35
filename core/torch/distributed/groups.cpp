#include "core/torch/distributed/groups.h"

#include <chrono>
#include <thread>
#include <unordered_map>
#include <utility>

#include "core/base/log.h"

namespace ltc::collectives {
namespace {

constexpr auto kPatience = std::chrono::milliseconds(2000), kGlance = std::chrono::milliseconds(20);
constexpr char kBetween = '\n';  // what a rank is at, and the line

struct Groups {
  std::mutex mutex;
  int64_t last = 0;
  std::unordered_map<int64_t, std::shared_ptr<Group>> all;
};

Groups& groups() {
  static auto* instance = new Groups();  // runs may be left at the end of the process
  return *instance;
}

std::string at_line(const std::string& what, const std::string& line) { return line.empty() ? what : cat(what, " at ", line); }

}  // namespace

void Group::note_call(LocationId where) {
  const std::lock_guard lock(mutex_);
  calls_.push_back(where);
}

void Group::finish(c10d::Work& work, const std::string& what) {
  std::string where;
  {
    const std::lock_guard lock(mutex_);
    if (!calls_.empty()) {
      where = location_text(calls_.front());
      calls_.pop_front();
    }
  }
  ++sequence_;
  bool has_waited = false;
  while (true) {
    try {
      work.wait(kPatience);
      break;
    } catch (const std::exception&) {
      const bool has_failed = work.isCompleted();  // else that was the end of patience
      compare_with_others(what, where, has_failed ? kPatience : std::chrono::milliseconds(0));
      if (has_failed) throw;
      if (!std::exchange(has_waited, true))
        log::info("rank ", on_cpu_->getRank(), " waits for the others: ", at_line(what, where));
    }
  }
  if (has_waited) store_->deleteKey(key(on_cpu_->getRank()));
}

std::string Group::key(int rank) const { return cat("ltc_at/", sequence_, '/', rank); }

// Whoever fails first is heard of last, so the others get `time` to say what they are at.
void Group::compare_with_others(const std::string& what, const std::string& where, std::chrono::milliseconds time) {
  const auto until = std::chrono::steady_clock::now() + time;
  const std::string own = what + kBetween + where;
  store_->set(key(on_cpu_->getRank()), std::vector<uint8_t>(own.begin(), own.end()));
  for (int rank = 0; rank < on_cpu_->getSize(); ++rank) {
    if (rank == on_cpu_->getRank()) continue;
    while (!store_->check({key(rank)}) && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(kGlance);
    if (!store_->check({key(rank)})) continue;
    const std::vector<uint8_t> bytes = store_->get(key(rank));
    const std::string other(bytes.begin(), bytes.end());
    const size_t end = other.find(kBetween);
    if (other.substr(0, end) == what) continue;
    TORCH_CHECK(false, "the ranks call different collectives: rank ", on_cpu_->getRank(), " ", at_line(what, where), ", rank ",
                rank, " ", at_line(other.substr(0, end), other.substr(end + 1)));
  }
}

int64_t add_group(std::shared_ptr<Group> group) {
  const std::lock_guard lock(groups().mutex);
  groups().all.emplace(++groups().last, std::move(group));
  return groups().last;
}

void remove_group(int64_t number) {
  const std::lock_guard lock(groups().mutex);
  groups().all.erase(number);
}

std::shared_ptr<Group> group_of(int64_t number) {
  const std::lock_guard lock(groups().mutex);
  const auto found = groups().all.find(number);
  TORCH_CHECK(found != groups().all.end(), "the process group ", number, " was destroyed, or is not of this process");
  return found->second;
}

}  // namespace ltc::collectives
