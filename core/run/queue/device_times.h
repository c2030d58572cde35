// When an asynchronous device does what runs: "device" events of the timeline.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

namespace ltc {

class Completion;
class RunProfile;
struct Program;

// A thread of its own waits for each run, one after the other, and notes when it is over; the device does them in that order. It
// begins with the first run while the timeline is on, and ends with finish().
// Threads: watch() and finish() by the queue's work, one at a time.
class DeviceTimes {
 public:
  DeviceTimes();
  ~DeviceTimes();

  // Just submitted by a call that began at `begin_ns`: a plugin may let the device work before it returns, to check what it
  // reads. `profile` is reported behind the run; may be null.
  void watch(std::shared_ptr<Completion> run, uint64_t run_id, const Program& program, uint64_t begin_ns,
             std::unique_ptr<RunProfile> profile);
  void finish();  // returns when all runs are over that are watched

 private:
  struct Watched {
    std::shared_ptr<Completion> completion;
    uint64_t run_id, program, begin_ns;
    int64_t ops;
    std::unique_ptr<RunProfile> profile;
  };

  void work();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Watched> watched_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace ltc
