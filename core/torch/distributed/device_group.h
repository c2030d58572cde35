// A process group as the plugin of one device carries it out (ltc/collective.h).
#pragma once

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <chrono>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/host/plugin.h"
#include "core/ir/location.h"
#include "core/run/device/lazy_device.h"

namespace ltc::collectives {

// A process group's ranks, and where they leave words for each other.
struct Ranks {
  c10::intrusive_ptr<c10d::Store> store;
  uint32_t rank, size;
  std::chrono::milliseconds timeout;  // to wait for the others
};

// The plugin does not see which collectives the ranks mean. So a rank that has waited for two seconds leaves the last ones that
// it has recorded in the store. Where the ranks' lists differ the group is aborted, with the lines of both in the log.
class DeviceGroup {
 public:
  // Blocks until all ranks have called it. Null where not all of them have one and the same plugin that carries out collectives,
  // or where it cannot for one of them: the host is to do it, at all ranks. `number`: by which the nodes will name the group.
  // `key`: the same at all ranks, and nothing else's in the store. Throws where a rank does not come in time.
  static std::unique_ptr<DeviceGroup> join(const Ranks& ranks, host::PluginDevice& device, int64_t number,
                                           const std::string& key);
  ~DeviceGroup();  // what is still queued fails
  DeviceGroup(const DeviceGroup&) = delete;
  DeviceGroup& operator=(const DeviceGroup&) = delete;

  bool is_of_present_opening() const { return generation_ == device_.generation(); }  // else the device was lost
  void abort() noexcept { device_.abort_group(group_, generation_); }

  // A collective was just recorded. `what` it is: "all_reduce sum of Float[3, 4]".
  void note(LazyDevice& device, std::string what, LocationId where);
  // To be called now and then. Returns whether a collective may be under way.
  bool look();
  void require_agreement() const;  // throws where the ranks' lists have differed

 private:
  struct Call {
    uint64_t sequence;
    std::string what;
    LocationId where;
  };
  struct Waiting {
    LazyDevice* device = nullptr;  // null: for nothing
    TraceExtent recorded;
    std::shared_ptr<Event> event;  // behind the newest collective
    std::chrono::steady_clock::time_point since;
    bool is_told = false;  // the others
  };

  static constexpr size_t kMostCalls = 64;  // in a list: more than ranks are apart

  void compare_calls();
  std::string list_of_calls() const;  // a line for each: number, what, where
  std::string difference(int rank, const std::string& own, const std::string& other) const;  // empty: none
  DeviceGroup(const Ranks& ranks, host::PluginDevice& device, std::string key);
  std::vector<std::string> exchange(const std::string& about, const std::string& own) const;
  std::string create(int64_t number);

  static bool LTC_CALL set(void* self, const ltc_string* key, const ltc_string* value);
  static bool LTC_CALL get(void* self, const ltc_string* key, uint64_t timeout_ns, const ltc_sink* value);
  static void LTC_CALL erase(void* self, const ltc_string* key);

  const Ranks ranks_;
  host::PluginDevice& device_;
  const std::string key_;
  ltc_store store_;
  ltc_group* group_ = nullptr;
  uint32_t generation_ = 0;

  mutable std::mutex mutex_;  // guards what follows
  uint64_t sequence_ = 0;
  std::deque<Call> calls_;
  Waiting waiting_;
  std::string difference_;
};

}  // namespace ltc::collectives
