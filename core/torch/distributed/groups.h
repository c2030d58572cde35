// Process groups as the queue's thread sees them: it carries collectives out, one at a time and in the order of their calls.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <chrono>
#include <deque>
#include <memory>
#include <mutex>
#include <string>

#include "core/ir/location.h"

namespace ltc::collectives {

// Ranks that call different things wait for each other until Gloo's time is over, half an hour. So a rank that has waited for two
// seconds, or whose collective has failed, says in the store what it is at, and looks what the others say. If they are at another
// collective, it fails with the lines of both. A collective that ends in time asks nobody.
class Group {
 public:
  Group(c10::intrusive_ptr<c10d::Backend> on_cpu, c10::intrusive_ptr<c10d::Store> store)
      : on_cpu_(std::move(on_cpu)), store_(std::move(store)) {}

  c10d::Backend& on_cpu() { return *on_cpu_; }

  // When a collective is recorded: its line, for messages. Any thread.
  void note_call(LocationId where);

  // Ends the collective that was begun last, `what` it is: "all_reduce sum of Float[3, 4]". Throws its error.
  void finish(c10d::Work& work, const std::string& what);

 private:
  void compare_with_others(const std::string& what, const std::string& where, std::chrono::milliseconds time);
  std::string key(int rank) const;

  const c10::intrusive_ptr<c10d::Backend> on_cpu_;
  const c10::intrusive_ptr<c10d::Store> store_;
  uint64_t sequence_ = 0;  // of collectives that were carried out
  std::mutex mutex_;
  std::deque<LocationId> calls_;  // recorded, and not carried out yet
};

// Returns the number of the new group, by which ops name it. It is kept until remove_group().
int64_t add_group(std::shared_ptr<Group> group);
void remove_group(int64_t number);
std::shared_ptr<Group> group_of(int64_t number);  // throws if there is none

}  // namespace ltc::collectives
