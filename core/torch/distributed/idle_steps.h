// Ends the step of a rank that has recorded a collective and then records nothing more.
//
// A collective starts with its step, and a rank that reads no result, such as the source of a broadcast, may do something else
// before its step ends. The others would wait for it as long. A thread looks four times a second whether the trace has grown.
//
// Errors: a step that fails leaves its error in its values, as any step. Threads: any.
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "core/base/api.h"
#include "core/run/device/lazy_device.h"

namespace ltc::collectives {

class LTC_API IdleSteps {
 public:
  static IdleSteps& instance();

  // A collective was just recorded on the device.
  void note_collective(LazyDevice& device);

  // Ends all such steps now: the process is about to end.
  void end_all();

  // Ends the thread, which the next collective starts again: a fork would copy the locks that it holds.
  void rest();

 private:
  struct Pending {
    TraceExtent extent;  // of the trace when it was looked at last
    int quiet_looks = 0;
  };

  void watch();
  void look();

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::map<LazyDevice*, Pending> pending_;
  int empty_looks_ = 0;
  bool is_asleep_ = false, stopping_ = false;
  std::thread thread_;
};

}  // namespace ltc::collectives
