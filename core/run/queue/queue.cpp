#include "core/run/queue/queue.h"

#include <pthread.h>

#include <future>

#include "core/report/timeline.h"
#include "core/run/process/fork.h"
#include "core/run/process/interrupt.h"
#include "core/run/process/process_end.h"
#include "core/run/queue/copy_out.h"

namespace ltc {

namespace {

// About what handing work to a sleeping thread costs both sides: what is shorter is done by who brings it.
constexpr int64_t kShortRun = 30'000;       // ns
constexpr int64_t kTinyRun = 7'000;         // ns: the same for a thread that spins
constexpr size_t kShortUpload = 256 << 10;  // bytes
constexpr size_t kStagedBytes = 256 << 20;

constexpr uint64_t kShortSpin = 20'000;  // ns for which the queue's thread spins at any rate

// The queue whose work the calling thread does. A plugin may end the process in the middle of it, and the end must not wait for
// it.
LTC_THREAD_LOCAL constinit const DeviceQueue* t_working = nullptr;

RunsHere g_runs_here = nullptr;
ThrowToReader g_throw_to_reader = nullptr;

}  // namespace

void set_runs_here(RunsHere may_run) { g_runs_here = may_run; }
void set_throw_to_reader(ThrowToReader throw_to_reader) { g_throw_to_reader = throw_to_reader; }

void throw_to_reader(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& ours) {
    if (g_throw_to_reader) g_throw_to_reader(ours);
    throw;
  }
}

DeviceQueue::DeviceQueue(std::unique_ptr<host::PluginDevice> device, size_t runs_in_flight)
    : DeviceMemory(std::move(device)),
      demotion_(TypeDemotion::of(*device_)),
      pending_limit_(runs_in_flight),
      in_flight_(runs_in_flight) {}

DeviceQueue::~DeviceQueue() { stop(); }

void DeviceQueue::refuse_after_stop() const {
  if (stopping_) fail(Code::kCancelled, "the device queue was stopped: the process is ending");
}

template <typename HasRoom>
void DeviceQueue::await_room(std::unique_lock<std::mutex>& lock, HasRoom has_room) {
  if (has_room()) return;
  host::Waiting waiting(*device_);
  wait_in_slices(room_, lock, [&] { return has_room() || stopping_; });
}

void DeviceQueue::await_room() {
  std::unique_lock lock(mutex_);
  if (!in_flight_.has_room()) await_room(lock, [&] { return in_flight_.is_half_free(); });
}

void DeviceQueue::submit(Task task) {
  refuse_after_fork();
  std::unique_lock lock(mutex_);
  if (task.run_ns && !in_flight_.has_room()) {
    host::Waiting waiting(*device_);
    room_.wait(lock, [&] { return in_flight_.is_half_free() || stopping_; });
  }
  refuse_after_stop();
  if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
  if (tasks_.empty() && !running_) spin_policy_.note_arrival(timeline::now_ns());
  if (task.run_ns) task.run_ns = in_flight_.add(*task.run_ns);
  tasks_.push_back(std::move(task));
  wanted_ = true;
  const bool wake = std::exchange(sleeping_, false);
  lock.unlock();
  if (wake) wake_.notify_one();  // a busy worker is not notified: that costs microseconds
}

// Steps follow each other: a thread that spins for the next one saves the submitter a system call and starts at once.
void DeviceQueue::spin_then_park(std::unique_lock<std::mutex>& lock) {
  const bool spins = spin_policy_.should_spin();
  lock.unlock();
  const bool preempted =
      spin_until(spins ? SpinPolicy::kLongestGap : kShortSpin, [&] { return wanted_.load(std::memory_order_relaxed); });
  lock.lock();
  if (spins && preempted) spin_policy_.note_preempted();
}

bool DeviceQueue::take(Task& task) {
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

void DeviceQueue::work() {
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
  limit_pending(0);
  limit_sending(0);
}

// Does `work` in the place of the queue's thread, if nothing is queued or running; whether it did.
template <typename Work>
bool DeviceQueue::try_here(Work work) {
  if (!g_runs_here || !g_runs_here()) return false;
  {
    std::lock_guard lock(mutex_);
    if (running_ || stopping_ || !tasks_.empty()) return false;
    spin_policy_.note_arrival(timeline::now_ns());
    running_ = true;
    t_working = this;
  }
  struct End {
    DeviceQueue& queue;
    ~End() {
      t_working = nullptr;
      std::lock_guard lock(queue.mutex_);
      queue.running_ = false;
      queue.spin_policy_.note_idle(timeline::now_ns());
      if ((!queue.tasks_.empty() || queue.stopping_) && std::exchange(queue.sleeping_, false)) queue.wake_.notify_one();
    }
  } end{*this};
  host::Waiting waiting(*device_);  // the program's thread has nothing else to do
  work();
  return true;
}

std::shared_ptr<Fence> DeviceQueue::add_fence(bool timed) {
  refuse_after_fork();
  auto fence = std::make_shared<Fence>(*device_);
  bool passed = false;
  try_here([&] {
    if (timed && newest_ && !newest_->is_over()) return;  // would be waited for here
    fence->arrive(newest_);
    passed = true;
  });
  if (passed) return fence->announce(), fence;
  const auto arrive = [this, timed, fence] {
    if (timed && newest_) newest_->wait_until_over();
    fence->arrive(newest_);
  };
  submit({.work = arrive, .announce = [fence] { fence->announce(); }});
  return fence;
}

void DeviceQueue::drain() {
  if (forked() || t_working == this) return;
  try {
    add_fence(/*timed=*/true)->wait();  // so the queue's thread is the one that waits in the plugin, where no signal ends a wait
  } catch (const Error&) {              // stopped meanwhile, which drains too
  }
}

void DeviceQueue::rest() {
  const bool was_stopped = stopping_;
  drain();
  stop();
  std::lock_guard lock(mutex_);
  stopping_ = was_stopped;
  wanted_ = !tasks_.empty();
}

void DeviceQueue::stop() {
  if (forked() || t_working == this) {
    if (thread_.joinable()) thread_.detach();  // it never existed in this process, or ends with it
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

// A long value on its way, which has its share of the room until it is gone.
struct DeviceQueue::Staged {
  ~Staged() {
    const size_t bytes = type_of(value.type).size_bytes();
    value = {};
    std::lock_guard lock(queue.mutex_);
    queue.staged_bytes_ -= bytes;
    queue.room_.notify_all();
  }

  DeviceQueue& queue;
  HostValue value;
};

BufferRef DeviceQueue::upload(HostValue value) {
  refuse_after_fork();
  auto buffer = std::make_shared<Buffer>(*this, value.type);
  const size_t size = type_of(value.type).size_bytes();
  if (size <= kShortUpload) {
    refuse_after_stop();
    buffer->host = std::move(value);  // uploaded by whoever reads it first
    return buffer;
  }
  LongCall call;
  reserve_staging(size);
  const std::shared_ptr<Staged> staged(new Staged{*this, std::move(value)});  // a std::function must be copyable
  submit({[this, staged, buffer] { run_upload(staged->value, *buffer); }});
  return buffer;
}

void DeviceQueue::reserve_staging(size_t bytes) {
  std::unique_lock lock(mutex_);
  await_room(lock, [&] { return staged_bytes_ == 0 || staged_bytes_ + bytes <= kStagedBytes; });
  refuse_after_stop();
  staged_bytes_ += bytes;
}

bool DeviceQueue::copies_from(const DeviceQueue& other, TypeId type) const {
  return &device_->plugin() == &other.device_->plugin() && (device_->info().flags & LTC_DEVICE_PEER_COPY) &&
         demotion_.storage_type(type) == other.demotion_.storage_type(type);
}

template <typename Make>
BufferRef DeviceQueue::make_from(BufferRef source, TypeId type, Make make) {
  auto buffer = std::make_shared<Buffer>(*this, type);
  submit({[source = std::move(source), buffer, make = std::move(make)]() mutable {
    try {
      make(*source, *buffer);
      buffer->failure = source->failure;
    } catch (...) {
      buffer->error = std::current_exception();
    }
    source.reset();
  }});
  return buffer;
}

// Queues wait for what was submitted before, so never for each other.
BufferRef DeviceQueue::copy_from_peer(BufferRef source) {
  refuse_after_fork();
  const auto ready = std::make_shared<std::promise<void>>();
  auto& other = static_cast<DeviceQueue&>(source->memory);  // buffers come from queues
  other.submit({[source, ready, &other] {
    try {
      other.require(*source);
      ready->set_value();
    } catch (...) {
      ready->set_exception(std::current_exception());
    }
  }});
  const TypeId type = source->type;
  return make_from(std::move(source), type, [this, ready](const Buffer& from, Buffer& buffer) {
    ready->get_future().get();
    run_copy_from_peer(from, buffer);
  });
}

BufferRef DeviceQueue::resized(BufferRef source, TypeId type) {
  refuse_after_fork();
  return make_from(std::move(source), type, [this](Buffer& from, Buffer& buffer) { run_resize(from, buffer); });
}

// Whether the queue's thread had better do it, rather than who submits it.
bool DeviceQueue::runs_beside(const Run& run) const {
  if (!run.program) return true;
  const int64_t typical = run.program->typical_ns.load(std::memory_order_relaxed);
  return typical > kShortRun || (spin_policy_.should_spin() && typical > kTinyRun && !run.is_awaited);
}

void DeviceQueue::execute(Run run) {
  refuse_after_fork();
  bool ran = false;
  const auto run_here = [&] {
    if (would_wait(run)) return;
    run_program(run);
    ran = true;
  };
  if (!runs_beside(run)) try_here(run_here);
  if (ran) return;
  // How long an asynchronous device takes is not known.
  const bool is_known = run.program && !is_asynchronous_;
  const int64_t expected_ns = is_known ? run.program->typical_ns.load(std::memory_order_relaxed) : INT64_MAX;
  auto shared = std::make_shared<Run>(std::move(run));  // a std::function must be copyable
  try {
    submit({[this, shared] { run_program(*shared); }, expected_ns});
  } catch (...) {
    for (const BufferRef& output : shared->outputs) output->error = std::current_exception();
    throw;
  }
}

// A copy that the queue's thread makes; shared with it, as who waits may be interrupted and go.
struct DeviceQueue::Download {
  CopyOut copy;
  std::mutex mutex = {};
  std::condition_variable changed = {};
  std::atomic<bool> finished{false};
  std::exception_ptr error = {};

  void work() {
    try {
      tell(*copy.buffer);
      copy.finish();
    } catch (...) {
      error = std::current_exception();
    }
  }
  void announce() {
    std::lock_guard lock(mutex);
    finished = true;
    changed.notify_one();
  }
  void wait() {
    const auto is_finished = [&] { return finished.load(); };
    spin_until(kSpinForResult, is_finished);
    std::unique_lock lock(mutex);  // even if it has finished: the announcement must have ended
    wait_in_slices(changed, lock, is_finished);
  }
};

void DeviceQueue::download(const BufferRef& buffer, void* to, std::shared_ptr<void> memory) {
  LongCall call;
  CopyOut copy(*this, buffer, to, std::move(memory));
  std::exception_ptr error;
  bool is_over = false;
  try_here([&] {
    timeline::Span span("download");
    try {
      tell(*buffer);
      is_over = copy.finish_soon();
    } catch (...) {
      error = std::current_exception();
      is_over = true;
    }
  });
  if (!is_over) {
    host::Waiting waiting(*device_);
    const auto download = std::make_shared<Download>(std::move(copy));
    submit({.work =
                [download] {
                  timeline::Span span("download");
                  download->work();
                },
            .announce = [download] { download->announce(); }});
    download->wait();
    error = download->error;
  }
  if (error) throw_to_reader(error);
}

}  // namespace ltc
