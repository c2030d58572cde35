// A point in a queue's order, to ask about and to wait for.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>

namespace ltc {

class Completion;
namespace host {
class PluginDevice;
}

// Reached when all that was submitted before it is over on the device, well or not: errors stay in the buffers.
//
// Threads: all members from any thread, several at once. After a fork they throw in the child.
class Fence {
 public:
  explicit Fence(const host::PluginDevice& device) : device_(device) {}

  bool reached();  // never waits
  void wait();

  // When a timed fence was reached, on the clock of timeline::now_ns(). Only once it is.
  uint64_t time_ns();

 private:
  friend class DeviceQueue;
  void arrive(std::shared_ptr<Completion> newest);  // the queue has come to it; `newest`: what the device may still be doing
  void announce();                                  // after arrive()

  const host::PluginDevice& device_;  // gone, perhaps, once it is passed
  std::mutex mutex_;
  std::condition_variable passed_;
  std::atomic<bool> is_passed_{false};  // set under the mutex
  std::shared_ptr<Completion> newest_;  // null once it is known to be over
  uint64_t time_ns_ = 0;
};

}  // namespace ltc
