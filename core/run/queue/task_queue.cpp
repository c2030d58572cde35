#include "core/run/queue/task_queue.h"

#include <pthread.h>

#include "core/report/timeline.h"
#include "core/run/process/fork.h"
#include "core/run/process/interrupt.h"
#include "core/run/process/process_end.h"

namespace ltc {
namespace {

constexpr size_t kReservedBytes = 256 << 20;
constexpr uint64_t kShortSpin = 20'000;  // ns for which the queue's thread spins at any rate

// The queue whose work the calling thread does. A plugin may end the process in the middle of it, and the end must not wait for
// it.
LTC_THREAD_LOCAL constinit const TaskQueue* t_working = nullptr;

RunsHere g_runs_here = nullptr;

}  // namespace

void set_runs_here(RunsHere may_run) { g_runs_here = may_run; }

TaskQueue::TaskQueue(host::PluginDevice& device, size_t runs_in_flight, std::function<void()> finish)
    : device_(device), finish_(std::move(finish)), in_flight_(runs_in_flight) {}

TaskQueue::~TaskQueue() { stop(); }

bool TaskQueue::is_working_here() const { return t_working == this; }

void TaskQueue::refuse_after_stop() const {
  if (stopping_) fail(Code::kCancelled, "the device queue was stopped: the process is ending");
}

template <typename HasRoom>
void TaskQueue::await(std::unique_lock<std::mutex>& lock, HasRoom has_room) {
  if (has_room()) return;
  host::Waiting waiting(device_);
  wait_in_slices(room_, lock, [&] { return has_room() || stopping_; });
}

void TaskQueue::await_room() {
  std::unique_lock lock(mutex_);
  if (in_flight_.has_room()) return;
  timeline::Span span("wait");
  span.because("ahead");
  await(lock, [&] { return in_flight_.is_half_free(); });
  lock.unlock();
  span.here();
}

void TaskQueue::reserve(size_t bytes) {
  std::unique_lock lock(mutex_);
  await(lock, [&] { return reserved_bytes_ == 0 || reserved_bytes_ + bytes <= kReservedBytes; });
  refuse_after_stop();
  reserved_bytes_ += bytes;
}

void TaskQueue::release(size_t bytes) {
  std::lock_guard lock(mutex_);
  reserved_bytes_ -= bytes;
  room_.notify_all();
}

void TaskQueue::start() {
  std::lock_guard lock(mutex_);
  start_locked();
}

void TaskQueue::start_locked() {
  if (!thread_.joinable() && !ends_process_) thread_ = std::thread([this] { work(); });
}

void TaskQueue::submit(Task task) {
  refuse_after_fork();
  std::unique_lock lock(mutex_);
  if (task.run_ns && !in_flight_.has_room()) {
    host::Waiting waiting(device_);
    room_.wait(lock, [&] { return in_flight_.is_half_free() || stopping_; });
  }
  refuse_after_stop();
  start_locked();
  if (tasks_.empty() && !running_) spin_policy_.note_arrival(timeline::now_ns());
  if (task.run_ns) task.run_ns = in_flight_.add(*task.run_ns);
  tasks_.push_back(std::move(task));
  wanted_ = true;
  const bool wake = std::exchange(sleeping_, false);
  lock.unlock();
  if (wake) wake_.notify_one();  // a busy worker is not notified: that costs microseconds
}

// Steps follow each other: a thread that spins for the next one saves the submitter a system call and starts at once.
void TaskQueue::spin_then_park(std::unique_lock<std::mutex>& lock) {
  const bool spins = spin_policy_.should_spin();
  lock.unlock();
  const bool preempted =
      spin_until(spins ? SpinPolicy::kLongestGap : kShortSpin, [&] { return wanted_.load(std::memory_order_relaxed); });
  lock.lock();
  if (spins && preempted) spin_policy_.note_preempted();
}

bool TaskQueue::take(Task& task) {
  std::unique_lock lock(mutex_);
  bool spun = false;
  while (tasks_.empty() || running_) {
    if (stopping_ && !running_) return false;
    if (!std::exchange(spun, true)) {
      spin_then_park(lock);
      continue;
    }
    sleeping_ = true;  // again after each waking: who wakes takes it back, even while a short program still runs elsewhere
    wake_.wait(lock);
    sleeping_ = false;
  }
  task = std::move(tasks_.front());
  tasks_.pop_front();
  wanted_ = !tasks_.empty();
  running_ = true;
  return true;
}

void TaskQueue::work() {
  pthread_setname_np(pthread_self(), "ltc_queue");  // for debuggers and profilers
  t_working = this;
  Task task;
  while (take(task)) {
    task.work();
    task.work = nullptr;  // its references go before anybody is told that it is done
    {
      std::lock_guard lock(mutex_);
      if (task.run_ns) in_flight_.remove(*task.run_ns);
      running_ = false;
      if (tasks_.empty()) spin_policy_.note_idle(timeline::now_ns());
      if (in_flight_.is_half_free()) room_.notify_all();
    }
    if (task.announce) task.announce();
  }
  finish_();
}

bool TaskQueue::begin_here() {
  if (!g_runs_here || !g_runs_here()) return false;
  std::lock_guard lock(mutex_);
  if (running_ || stopping_ || !tasks_.empty()) return false;
  spin_policy_.note_arrival(timeline::now_ns());
  running_ = true;
  t_working = this;
  return true;
}

void TaskQueue::end_here() {
  t_working = nullptr;
  std::lock_guard lock(mutex_);
  running_ = false;
  spin_policy_.note_idle(timeline::now_ns());
  if ((!tasks_.empty() || stopping_) && std::exchange(sleeping_, false)) wake_.notify_one();
}

void TaskQueue::stop() {
  if (forked()) {
    if (thread_.joinable()) thread_.detach();  // it never existed in this process
    return;
  }
  if (t_working == this) {
    std::lock_guard lock(mutex_);
    ends_process_ = true;
    if (thread_.joinable()) thread_.detach();
    return;
  }
  std::thread thread;
  {
    std::lock_guard lock(mutex_);
    stopping_ = wanted_ = true;
    std::swap(thread, thread_);
  }
  wake_.notify_one();
  room_.notify_all();
  if (thread.joinable()) thread.join();  // it drains first
}

void TaskQueue::rest() {
  const bool was_stopped = stopping_;
  stop();
  std::lock_guard lock(mutex_);
  stopping_ = was_stopped;
  wanted_ = !tasks_.empty();
}

}  // namespace ltc
