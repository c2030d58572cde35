// How a bad index in a kernel becomes the error of its run.
//
// A kernel that finds one writes a code into a word of the device's memory: the number of the run, and of the check in its
// compiled plan. Behind the kernels of each run that has checks, the word is copied to the host. It is never cleared, since a
// later run has another number.
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "device/driver.h"

namespace ltc::device {

// Memory of the host that such copies go to. Any thread.
class FaultWords {
 public:
  explicit FaultWords(Driver& driver) : driver_(driver) {}
  ~FaultWords();  // the queue is empty
  FaultWords(const FaultWords&) = delete;
  FaultWords& operator=(const FaultWords&) = delete;

  // Throws RESOURCE_EXHAUSTED.
  uint64_t* take();
  // `copy`: the last command that writes it; null: there is none.
  void give(uint64_t* word, EventRef copy) noexcept;

 private:
  Driver& driver_;
  std::mutex lock_;
  std::vector<void*> pages_;
  std::deque<std::pair<uint64_t*, EventRef>> free_;  // in the order of the queue
};

// Used under the lock of the host's submissions: one call at a time.
class Faults {
 public:
  explicit Faults(Driver& driver) : driver_(driver), words_(driver) {}
  ~Faults();  // the queue is empty
  Faults(const Faults&) = delete;
  Faults& operator=(const Faults&) = delete;

  // Submits a run. The event of one with checks fails with OUT_OF_RANGE and the node of a check that has failed. Where so many
  // `launches_to_await` hold all checks, waits for them and throws the same before it submits the others.
  EventRef submit(LoadedPlan& loaded_plan, Run& run, std::shared_ptr<const CompiledPlan> compiled_plan, size_t launches_to_await);

 private:
  Driver& driver_;
  FaultWords words_;
  Memory word_ = nullptr;
  uint32_t run_ = 0;
};

}  // namespace ltc::device
