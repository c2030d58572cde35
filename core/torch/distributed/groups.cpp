#include "core/torch/distributed/groups.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <thread>
#include <unordered_map>
#include <utility>

#include "core/base/log.h"
#include "core/torch/distributed/store_text.h"

namespace ltc::collectives {
namespace {

constexpr auto kPatience = std::chrono::milliseconds(2000), kGlance = std::chrono::milliseconds(20);
// Numbers of groups of plugins begin here. They are never those of groups of the host, though the next process has other groups:
// a program on the disk names its groups by number.
constexpr int64_t kOfPlugins = int64_t{1} << 32;
constexpr char kBetween = '\n';  // the rank's name, what it is at, and the line

struct Groups {
  std::mutex mutex;
  int64_t last = 0;
  std::unordered_map<int64_t, std::shared_ptr<Group>> all;
};

Groups& groups() {
  static auto* instance = new Groups();  // runs may be left at the end of the process
  return *instance;
}

void add_number(int64_t number, std::shared_ptr<Group> group) {
  const std::lock_guard lock(groups().mutex);
  groups().all.emplace(number, std::move(group));
}

}  // namespace

int64_t Group::number_on(host::PluginDevice& device, int64_t number) {
  if (on_cpu_->getSize() < 2) return number;
  const std::lock_guard lock(joining_);
  auto known = std::ranges::find_if(on_devices_, [&](const OnDevice& one) { return one.device == &device; });
  if (known == on_devices_.end()) {
    const Ranks ranks{store_, static_cast<uint32_t>(on_cpu_->getRank()), static_cast<uint32_t>(on_cpu_->getSize()), timeout_};
    const std::string key =
        cat("ltc_group/", get_text(*store_, "name/0"), '/', on_devices_.size());  // a store may have older groups
    const int64_t own = kOfPlugins + static_cast<int64_t>(host::kMostDevices) * number + static_cast<int64_t>(on_devices_.size());
    auto joined = DeviceGroup::join(ranks, device, own, key);
    const bool is_plugins = joined != nullptr;
    known = on_devices_.insert(on_devices_.end(), {&device, is_plugins ? own : number, std::move(joined)});
    if (is_plugins) add_number(own, shared_from_this());
  }
  if (known->group) {
    known->group->require_agreement();
    TORCH_CHECK(known->group->is_of_present_opening(),
                "the device was lost, and its process group with it: all ranks must begin anew");
  }
  return known->number;
}

void Group::note_plugin_call(LazyDevice& device, int64_t number, std::string what, LocationId where) {
  const std::lock_guard lock(joining_);
  const auto found = std::ranges::find(on_devices_, number, &OnDevice::number);
  if (found != on_devices_.end() && found->group) found->group->note(device, std::move(what), where);
}

bool Group::look() {
  const std::unique_lock lock(joining_, std::try_to_lock);  // ranks may be waiting for each other there
  if (!lock) return true;
  bool may_work = false;
  for (const OnDevice& one : on_devices_) may_work |= one.group && one.group->look();
  return may_work;
}

void Group::abort() {
  const std::lock_guard lock(joining_);
  for (const OnDevice& one : on_devices_) {
    if (one.group) one.group->abort();
  }
}

void Group::note_call(LocationId where) {
  const std::lock_guard lock(mutex_);
  calls_.push_back(where);
}

at::Tensor Group::begin(c10::intrusive_ptr<c10d::Work> work, std::string what, const at::Tensor& result, at::Tensor staged) {
  at::Tensor given = result.alias();  // Gloo holds the other one as long as the work lives
  const std::lock_guard lock(mutex_);
  std::erase_if(under_way_, [](const UnderWay& one) { return one.result.expired() && one.work->isCompleted(); });
  std::string where;
  if (!calls_.empty()) {
    where = location_text(calls_.front());
    calls_.pop_front();
  }
  under_way_.push_back({std::move(work), std::move(what), std::move(where), ++sequence_, std::move(staged),
                        c10::weak_intrusive_ptr<at::TensorImpl>(given.getIntrusivePtr())});
  return given;
}

Group::UnderWay Group::take(const at::Tensor& result) {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find_if(
      under_way_, [&](const UnderWay& one) { return one.result._unsafe_get_target() == result.unsafeGetTensorImpl(); });
  TORCH_CHECK(found != under_way_.end(), "no such collective is under way: of ", result.scalar_type(), result.sizes());
  UnderWay taken = std::move(*found);
  under_way_.erase(found);
  return taken;
}

void Group::finish(const at::Tensor& result) {
  const UnderWay collective = take(result);
  await(collective);
  if (collective.staged.defined()) at::Tensor(result).copy_(collective.staged);
}

void Group::await(const UnderWay& collective) {
  const auto& [work, what, where, sequence, staged, result] = collective;
  bool has_waited = false;
  while (true) {
    try {
      work->wait(kPatience);
      break;
    } catch (const std::exception& error) {
      const bool has_failed = work->isCompleted();  // else that was the end of patience
      compare_with_others(collective, has_failed ? kPatience : std::chrono::milliseconds(0));
      TORCH_CHECK(!has_failed, what, ": ", error.what());
      if (!std::exchange(has_waited, true))
        log::info("rank ", on_cpu_->getRank(), " waits for the others: ", at_line({what, where}));
    }
  }
  if (has_waited) store_->deleteKey(key(sequence, on_cpu_->getRank()));
}

std::string Group::key(uint64_t sequence, int rank) const { return cat("ltc_at/", sequence, '/', rank); }

// The rank that fails first is heard of last, so the others get `time` to say what they are at.
void Group::compare_with_others(const UnderWay& collective, std::chrono::milliseconds time) {
  const auto until = std::chrono::steady_clock::now() + time;
  const std::string own = name_ + kBetween + collective.what + kBetween + collective.where;
  const auto key_of = [&](int rank) { return key(collective.sequence, rank); };
  set_text(*store_, key_of(on_cpu_->getRank()), own);
  for (int rank = 0; rank < on_cpu_->getSize(); ++rank) {
    if (rank == on_cpu_->getRank()) continue;
    while (!store_->check({key_of(rank)}) && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(kGlance);
    if (!store_->check({key_of(rank)})) continue;
    std::string other = get_text(*store_, key_of(rank));
    const std::string named = get_text(*store_, cat("name/", rank)) + kBetween;
    if (!other.starts_with(named)) continue;
    other.erase(0, named.size());
    const size_t end = other.find(kBetween);
    if (other.substr(0, end) == collective.what) continue;
    TORCH_CHECK(false, difference_text(on_cpu_->getRank(), {collective.what, collective.where}, rank,
                                       {other.substr(0, end), other.substr(end + 1)}));
  }
}

void leave_name(c10d::Store& store, int rank, const std::string& name) { set_text(store, cat("name/", rank), name); }

int64_t add_group(std::shared_ptr<Group> group) {
  const std::lock_guard lock(groups().mutex);
  groups().all.emplace(++groups().last, std::move(group));
  return groups().last;
}

void remove_group(int64_t number) {
  std::shared_ptr<Group> group;  // ends behind the lock
  const std::lock_guard lock(groups().mutex);
  const auto found = groups().all.find(number);
  if (found == groups().all.end()) return;
  group = found->second;
  std::erase_if(groups().all, [&](const auto& one) { return one.second == group; });
}

std::shared_ptr<Group> group_of(int64_t number) {
  const std::lock_guard lock(groups().mutex);
  const auto found = groups().all.find(number);
  TORCH_CHECK(found != groups().all.end(), "the process group ", number, " was destroyed, or is not of this process");
  return found->second;
}

bool is_of_plugin(int64_t number) { return number >= kOfPlugins; }

bool look_at_groups() {
  std::set<std::shared_ptr<Group>> all;
  {
    const std::lock_guard lock(groups().mutex);
    for (const auto& [number, group] : groups().all) {
      if (is_of_plugin(number)) all.insert(group);
    }
  }
  bool may_work = false;
  for (const auto& group : all) may_work |= group->look();
  return may_work;
}

}  // namespace ltc::collectives
