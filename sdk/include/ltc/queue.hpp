// Helper for plugins in C++20: makes a synchronous library asynchronous.
#pragma once
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "ltc/plugin.hpp"

namespace ltc::plugin {

// The in-order queue of a device: one thread that runs what it is given. It makes a synchronous library asynchronous. Objects
// are destroyed through the queue too, by post(): so they live as long as earlier work needs them.
//
// Events are handles of the C ABI; the slots for them are here. Any thread may call. The queue outlives its events.
class WorkQueue {
 public:
  using Work = std::function<void()>;

  explicit WorkQueue(const ltc_host_api* host, Translate translate = current_error)
      : host_(host), translate_(translate), thread_([this] { work_off(); }) {}
  // Runs all that is left.
  ~WorkQueue() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  // Work that nobody waits for. Its exception is logged.
  void post(Work work) { push(std::make_shared<Entry>(Entry{std::move(work), true})); }
  // Work whose event is the caller's. Its exception is the event's error.
  [[nodiscard]] ltc_event* submit(Work work) {
    auto event = std::make_unique<Event>(Event{this, std::make_shared<Entry>(Entry{std::move(work)})});
    push(event->entry);
    return reinterpret_cast<ltc_event*>(event.release());
  }
  // Runs the work behind all that was submitted before, and throws what it throws. A run with donated inputs that may fail
  // had better come here: it then answers with an error before anything is consumed.
  void run(Work work) {
    const auto entry = std::make_shared<Entry>(Entry{std::move(work)});
    push(entry);
    (void)wait(*entry, LTC_FOREVER);
    if (entry->error) throw Failure(*entry->error);
  }

  static ltc_status* LTC_CALL event_wait(ltc_event* handle, uint64_t timeout_ns, bool* finished) noexcept {
    Event& event = *reinterpret_cast<Event*>(handle);
    return guarded(event.queue->host_, [&] {
      *finished = event.queue->wait(*event.entry, timeout_ns);
      if (*finished && event.entry->error) throw Failure(*event.entry->error);
    });
  }
  // Answers from the error of the work; see Error.
  static ltc_status* LTC_CALL event_good_outputs(ltc_event* handle, size_t output_count, uint8_t* good) noexcept {
    const Event& event = *reinterpret_cast<const Event*>(handle);
    return guarded(event.queue->host_, [&] {
      if (event.entry->error) event.entry->error->tell_good_outputs(output_count, good);
    });
  }
  static void LTC_CALL event_destroy(ltc_event* handle) noexcept { delete reinterpret_cast<Event*>(handle); }

 private:
  struct Entry {
    Work work;
    bool is_posted = false, is_done = false;
    std::optional<Error> error = {};
  };
  using EntryRef = std::shared_ptr<Entry>;
  struct Event {
    WorkQueue* queue;
    EntryRef entry;
  };

  void push(EntryRef entry) {
    {
      const std::lock_guard lock(mutex_);
      entries_.push_back(std::move(entry));
    }
    changed_.notify_all();
  }

  // Whether it is done within the time.
  bool wait(const Entry& entry, uint64_t timeout_ns) {
    const auto is_done = [&] { return entry.is_done; };
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, limit_of(timeout_ns), is_done);
  }

  void work_off() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return stopping_ || !entries_.empty(); });
      if (entries_.empty()) return;
      const EntryRef entry = std::move(entries_.front());
      entries_.pop_front();
      lock.unlock();
      std::optional<Error> error = perform(*entry);
      lock.lock();
      entry->error = std::move(error);
      entry->is_done = true;
      changed_.notify_all();
    }
  }
  // The objects that the work holds end with it.
  std::optional<Error> perform(Entry& entry) noexcept {
    std::optional<Error> error;
    try {
      std::exchange(entry.work, nullptr)();
    } catch (...) {
      error = translate_();
    }
    if (error && entry.is_posted) log(host_, LTC_LOG_ERROR, error->message);
    return error;
  }

  const ltc_host_api* const host_;
  const Translate translate_;
  std::mutex mutex_;
  std::condition_variable changed_;  // work came or ended, or the end
  std::deque<EntryRef> entries_;
  bool stopping_ = false;
  std::thread thread_;
};

// A slot that ends an object behind the work that uses it. Its device has a WorkQueue `queue`.
template <typename Object>
void LTC_CALL destroy_in_order(Object* object) noexcept {
  try {
    object->device->queue.post([object] { delete object; });
  } catch (...) {
    log(host_of(*object), LTC_LOG_ERROR, current_error().message);
  }
}

}  // namespace ltc::plugin
