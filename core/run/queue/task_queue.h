// The thread of a device's queue: it does tasks in the order in which they were submitted, one at a time.
//
// The thread starts at the first submission and ends with stop(). Short work is done at once by who submits it, if the queue is
// idle: waking the thread would cost more than the work. Where it comes at the rate of small steps the thread spins instead and
// does it beside what the program does next. Threads: all members from any thread, except where stated. Signals: what waits in a
// thread of the program throws what check_interrupt() throws; what was submitted goes on.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "core/base/spin_lock.h"
#include "core/host/plugin.h"
#include "core/run/queue/adaptive_spin.h"
#include "core/run/queue/in_flight_limit.h"

namespace ltc {

// Whether work may be handed to a plugin in the calling thread: installed by the part of the core that knows which state of a
// thread would leak into a plugin. Without one, everything is the queue's thread's.
using RunsHere = bool (*)();
void set_runs_here(RunsHere may_run);

class TaskQueue {
 public:
  struct Task {
    std::function<void()> work;
    std::optional<int64_t> run_ns = {};   // of a run: how long it is expected to take; once queued, as the limit counts it
    std::function<void()> announce = {};  // that it is done; called when the queue no longer counts as busy with it
  };

  // `device`: told when a thread waits for it. `runs_in_flight`: runs of any length that may be queued or running before submit()
  // blocks; short ones may be more. `finish` is the thread's last work.
  TaskQueue(host::PluginDevice& device, size_t runs_in_flight, std::function<void()> finish);
  ~TaskQueue();

  void start();  // the thread, which else begins with the first task

  // Returns when the task is queued; for a run, when there is room. Throws Error(kCancelled) after stop().
  void submit(Task task);
  // Does `work` in the place of the queue's thread, if nothing is queued or running; whether it did.
  template <typename Work>
  bool try_here(Work work) {
    if (!begin_here()) return false;
    struct End {
      TaskQueue& queue;
      ~End() { queue.end_here(); }
    } end{*this};
    host::Waiting waiting(device_);  // the program's thread has nothing else to do
    work();
    return true;
  }
  bool is_working_here() const;                                    // whether the calling thread does this queue's work
  bool should_spin() const { return spin_policy_.should_spin(); }  // work has been coming at the rate of small steps

  // Returns when there is room for a run, until another thread takes it. To be called where signal handlers may run, which
  // submit() does not let them.
  void await_room();
  // Host memory that tasks hold. Returns when it has room in their share, or when no other task holds any.
  void reserve(size_t bytes);
  void release(size_t bytes);

  void refuse_after_stop() const;
  // Does what is queued, ends the thread; afterwards every submission throws. From inside of this queue's own work, whose plugin
  // ends the process, it waits for nothing.
  void stop();
  void rest();  // the same, but a later submission begins another thread

 private:
  template <typename HasRoom>
  void await(std::unique_lock<std::mutex>& lock, HasRoom has_room);  // or that the queue stops; in slices
  void start_locked();
  void work();
  bool take(Task& task);
  void spin_then_park(std::unique_lock<std::mutex>& lock);
  bool begin_here();
  void end_here();

  host::PluginDevice& device_;
  const std::function<void()> finish_;
  std::mutex mutex_;
  std::condition_variable wake_, room_;
  std::deque<Task> tasks_;
  InFlightLimit in_flight_;  // of runs queued or running
  size_t reserved_bytes_ = 0;
  SpinPolicy spin_policy_;
  alignas(kCacheLine) std::atomic<bool> wanted_{false};  // there is a reason not to sleep
  bool running_ = false;                                 // the queue's thread runs a task, or somebody does in its place
  bool sleeping_ = false;
  std::atomic<bool> stopping_{false};  // set under the mutex
  bool ends_process_ = false;          // a task called exit(): what comes is kept, and nobody works on it
  std::thread thread_;
};

}  // namespace ltc
