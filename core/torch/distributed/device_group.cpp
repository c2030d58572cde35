#include "core/torch/distributed/device_group.h"

#include <algorithm>
#include <exception>
#include <map>
#include <sstream>
#include <string_view>
#include <thread>
#include <utility>

#include "core/base/log.h"
#include "core/host/sized.h"
#include "core/run/process/interrupt.h"
#include "core/torch/distributed/store_text.h"

namespace ltc::collectives {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kBetweenLooks = std::chrono::microseconds(500);
constexpr auto kPatienceBeforeAsking = std::chrono::seconds(2);
constexpr char kJoined[] = "joined";

std::string calls_key(const std::string& group, uint32_t rank) { return cat(group, "/calls/", rank); }

std::string text(const ltc_string* string) { return {string->data ? string->data : "", string->data ? string->size : 0}; }

// Whether somebody has set the key in time. It asks again and again: to wait in the store would keep out other threads.
bool await_key(c10d::Store& store, const std::string& key, Clock::time_point until, bool can_be_interrupted) {
  while (!store.check({key})) {
    if (Clock::now() >= until) return false;
    if (can_be_interrupted) check_interrupt();
    std::this_thread::sleep_for(kBetweenLooks);
  }
  return true;
}

Clock::time_point end_of(std::chrono::nanoseconds time) {
  return time < std::chrono::hours(24 * 365) ? Clock::now() + time : Clock::time_point::max();
}

// "" where the plugin has no collectives, or while it waits for the others could do nothing else. Ranks of other plugins do not
// understand each other.
std::string kind_of(const host::Plugin& plugin) {
  return plugin.has_collectives() && !plugin.takes_one_call_at_a_time()
             ? cat(plugin.describe().name, ' ', plugin.describe().version)
             : std::string();
}

}  // namespace

DeviceGroup::DeviceGroup(const Ranks& ranks, host::PluginDevice& device, std::string key)
    : ranks_(ranks), device_(device), key_(std::move(key)), store_(host::sized<ltc_store>()) {
  store_.store = this;
  store_.set = set;
  store_.get = get;
  store_.erase = erase;
}

DeviceGroup::~DeviceGroup() {
  if (!group_) return;
  abort();
  device_.destroy_group(group_, generation_);
}

std::unique_ptr<DeviceGroup> DeviceGroup::join(const Ranks& ranks, host::PluginDevice& device, int64_t number,
                                               const std::string& key) {
  std::unique_ptr<DeviceGroup> made(new DeviceGroup(ranks, device, key));
  const std::string kind = kind_of(device.plugin());
  if (kind.empty()) {
    set_text(*ranks.store, cat(key, "/plugin/", ranks.rank), kind);
    return nullptr;
  }
  const std::vector<std::string> kinds = made->exchange("plugin", kind);
  if (const auto other = std::ranges::find_if(kinds, [&](const std::string& one) { return one != kind; }); other != kinds.end()) {
    log::info("the host carries out collectives: rank ", other - kinds.begin(), " has ",
              other->empty() ? "a plugin without them" : *other, ", rank ", ranks.rank, " has ", kind);
    return nullptr;
  }
  const std::vector<std::string> answers = made->exchange("answer", made->create(number));
  for (size_t rank = 0; rank < answers.size(); ++rank) {
    if (answers[rank] == kJoined) continue;
    log::warn("the host carries out collectives, since the plugin of rank ", rank, " cannot: ", answers[rank]);
    return nullptr;
  }
  log::info("rank ", ranks.rank, " of ", ranks.size, ": ", kind, " carries out collectives");
  return made;
}

// Returns the words of each rank.
std::vector<std::string> DeviceGroup::exchange(const std::string& about, const std::string& own) const {
  const auto key_of = [&](uint32_t rank) { return cat(key_, '/', about, '/', rank); };
  set_text(*ranks_.store, key_of(ranks_.rank), own);
  std::vector<std::string> said;
  const Clock::time_point until = end_of(ranks_.timeout);
  for (uint32_t rank = 0; rank < ranks_.size; ++rank) {
    TORCH_CHECK(await_key(*ranks_.store, key_of(rank), until, /*can_be_interrupted=*/true), "rank ", ranks_.rank, " waited ",
                ranks_.timeout.count(), " ms for rank ", rank, " to call the first collective of the group");
    said.push_back(get_text(*ranks_.store, key_of(rank)));
  }
  return said;
}

// Returns the words for the others.
std::string DeviceGroup::create(int64_t number) {
  auto args = host::sized<ltc_group_args>();
  args.number = number;
  args.rank = ranks_.rank;
  args.size = ranks_.size;
  args.timeout_ns = static_cast<uint64_t>(std::chrono::nanoseconds(ranks_.timeout).count());
  args.store = &store_;
  try {
    group_ = device_.create_group(args, &generation_);
    return kJoined;
  } catch (const Error& error) {
    return error.what();
  }
}

// ---- whether the ranks mean the same

void DeviceGroup::note(LazyDevice& device, std::string what, LocationId where) {
  const TraceExtent recorded = device.trace_extent();
  auto event = device.record_event(/*timed=*/false);
  const std::lock_guard lock(mutex_);
  calls_.push_back({++sequence_, std::move(what), where});
  if (calls_.size() > kMostCalls) calls_.pop_front();
  waiting_ = {&device, recorded, std::move(event), Clock::now()};
}

bool DeviceGroup::look() {
  Waiting waiting;
  {
    const std::lock_guard lock(mutex_);
    waiting = waiting_;
  }
  if (!waiting.device) return false;
  if (waiting.device->trace_extent().epoch == waiting.recorded.epoch) return true;  // to ask the event would end the step
  const bool is_over = waiting.event->reached();
  if (!is_over && Clock::now() - waiting.since < kPatienceBeforeAsking) return true;
  if (!is_over) compare_calls();
  const std::lock_guard lock(mutex_);
  if (waiting_.event != waiting.event) return true;
  if (is_over && waiting_.is_told) ranks_.store->deleteKey(calls_key(key_, ranks_.rank));
  if (is_over || !difference_.empty()) waiting_ = {};
  return waiting_.device;
}

std::string DeviceGroup::list_of_calls() const {
  std::string list;
  for (const Call& call : calls_) list += cat(call.sequence, '\t', call.what, '\t', location_text(call.where), '\n');
  return list;
}

void DeviceGroup::compare_calls() {
  std::string own;
  bool is_told = false;
  {
    const std::lock_guard lock(mutex_);
    own = list_of_calls();
    is_told = std::exchange(waiting_.is_told, true);
  }
  if (!is_told) set_text(*ranks_.store, calls_key(key_, ranks_.rank), own);
  for (uint32_t rank = 0; rank < ranks_.size; ++rank) {
    const std::string key = calls_key(key_, rank);
    if (rank == ranks_.rank || !ranks_.store->check({key})) continue;
    std::string found = difference(static_cast<int>(rank), own, get_text(*ranks_.store, key));
    if (found.empty()) continue;
    log::error(found);
    {
      const std::lock_guard lock(mutex_);
      difference_ = std::move(found);
    }
    return abort();
  }
}

std::string DeviceGroup::difference(int rank, const std::string& own, const std::string& other) const {
  const auto calls_of = [](const std::string& list) {
    std::map<std::string, CallText> calls;  // by number
    std::istringstream lines(list);
    for (std::string number, what, where; std::getline(lines, number, '\t') && std::getline(lines, what, '\t');) {
      std::getline(lines, where);
      calls[number] = {what, where};
    }
    return calls;
  };
  const auto others = calls_of(other);
  for (const auto& [number, call] : calls_of(own)) {
    const auto theirs = others.find(number);
    if (theirs == others.end() || theirs->second.what == call.what) continue;
    return difference_text(static_cast<int>(ranks_.rank), call, rank, theirs->second);
  }
  return {};
}

void DeviceGroup::require_agreement() const {
  const std::lock_guard lock(mutex_);
  TORCH_CHECK(difference_.empty(), difference_);
}

// ---- the store, as the plugin sees it: any thread, and no exception leaves it

bool DeviceGroup::set(void* self, const ltc_string* key, const ltc_string* value) {
  const auto& group = *static_cast<DeviceGroup*>(self);
  try {
    set_text(*group.ranks_.store, cat(group.key_, "/of_plugin/", text(key)), text(value));
    return true;
  } catch (const std::exception& error) {
    log::info("the store of a process group: ", error.what());
    return false;
  }
}

bool DeviceGroup::get(void* self, const ltc_string* key, uint64_t timeout_ns, const ltc_sink* value) {
  const auto& group = *static_cast<DeviceGroup*>(self);
  try {
    const std::string name = cat(group.key_, "/of_plugin/", text(key));
    const auto time = std::chrono::nanoseconds(static_cast<int64_t>(std::min<uint64_t>(timeout_ns, INT64_MAX)));
    if (!await_key(*group.ranks_.store, name, end_of(time), /*can_be_interrupted=*/false)) return false;
    const std::string found = get_text(*group.ranks_.store, name);
    return value->write(value->context, found.data(), found.size());
  } catch (const std::exception& error) {
    log::info("the store of a process group: ", error.what());
    return false;
  }
}

void DeviceGroup::erase(void* self, const ltc_string* key) {
  const auto& group = *static_cast<DeviceGroup*>(self);
  try {
    group.ranks_.store->deleteKey(cat(group.key_, "/of_plugin/", text(key)));
  } catch (const std::exception& error) {
    log::debug("the store of a process group: ", error.what());
  }
}

}  // namespace ltc::collectives
