// Process groups as the queue's thread sees them: it starts collectives in the order of their calls, and waits for each.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <chrono>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/ir/location.h"
#include "core/torch/distributed/device_group.h"

namespace ltc::collectives {

// Ranks that call different things wait for each other until Gloo's time is over, half an hour. So a rank that has waited for two
// seconds, or whose collective has failed, says in the store what it is at, and looks what the others say. If they are at another
// collective, it fails with the lines of both. A collective that ends in time asks nobody.
class Group : public std::enable_shared_from_this<Group> {
 public:
  // `name`: of this rank's process, which `store` has under name/RANK. A store may outlive the processes of a restarted job: what
  // they have said in it is not heeded.
  // `timeout`: how long ranks wait for each other.
  Group(c10::intrusive_ptr<c10d::Backend> on_cpu, c10::intrusive_ptr<c10d::Store> store, std::string name,
        std::chrono::milliseconds timeout)
      : on_cpu_(std::move(on_cpu)), store_(std::move(store)), name_(std::move(name)), timeout_(timeout) {}

  c10d::Backend& on_cpu() { return *on_cpu_; }

  // By which a node on this device names the group: `number`, or another one if the plugin carries out the collectives. The first
  // call of a device waits for those of all ranks.
  int64_t number_on(host::PluginDevice& device, int64_t number);

  // Makes what a plugin carries out fail, now and later.
  void abort();

  // When a collective is to be recorded that the host carries out: its line, for messages. Any thread.
  void note_call(LocationId where);
  // When one was recorded, with that number, that a plugin carries out.
  void note_plugin_call(LazyDevice& device, int64_t number, std::string what, LocationId where);
  // Whether those of plugins may be under way; to be called now and then, and sees whether the ranks mean the same.
  bool look();

  // Takes note of a collective that was started: `result` is complete behind finish(). `what` it is: "all_reduce sum of
  // Float[3, 4]". `staged`: of what Gloo works on, the part that is the result; else that is the result itself. Returns the
  // tensor by which finish() knows it.
  at::Tensor begin(c10::intrusive_ptr<c10d::Work> work, std::string what, const at::Tensor& result, at::Tensor staged = {});

  // Waits for a collective that begin() has returned. Throws its error.
  void finish(const at::Tensor& result);

 private:
  struct UnderWay {
    c10::intrusive_ptr<c10d::Work> work;
    std::string what, where;
    uint64_t sequence;
    at::Tensor staged;
    c10::weak_intrusive_ptr<at::TensorImpl> result;  // as it was returned; gone if a run has failed before it waited
  };

  UnderWay take(const at::Tensor& result);
  void await(const UnderWay& collective);
  void compare_with_others(const UnderWay& collective, std::chrono::milliseconds time);
  std::string key(uint64_t sequence, int rank) const;

  const c10::intrusive_ptr<c10d::Backend> on_cpu_;
  const c10::intrusive_ptr<c10d::Store> store_;
  const std::string name_;
  const std::chrono::milliseconds timeout_;
  std::mutex mutex_;              // guards what follows
  uint64_t sequence_ = 0;         // of collectives that were started
  std::deque<LocationId> calls_;  // recorded, and not started yet
  std::vector<UnderWay> under_way_;

  struct OnDevice {
    host::PluginDevice* device;
    int64_t number;
    std::unique_ptr<DeviceGroup> group;  // null: the host carries out the collectives
  };
  std::mutex joining_;  // guards what follows, also while the ranks wait for each other
  std::vector<OnDevice> on_devices_;
};

// Before the ranks connect, so that each finds the names of all.
void leave_name(c10d::Store& store, int rank, const std::string& name);

// Returns the number of the new group, by which ops name it. It is kept until remove_group(), as are the group's numbers on
// devices.
int64_t add_group(std::shared_ptr<Group> group);
void remove_group(int64_t number);
std::shared_ptr<Group> group_of(int64_t number);  // throws if there is none
bool is_of_plugin(int64_t number);

// Group::look() of all. Returns whether any may be at work.
bool look_at_groups();

}  // namespace ltc::collectives
