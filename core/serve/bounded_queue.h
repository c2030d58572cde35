// A queue between threads, which refuses what is more than it may hold.
//
// Threads: every function from any thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>

#include "core/base/error.h"

namespace ltc::serve {

using Clock = std::chrono::steady_clock;

template <typename Item>
class BoundedQueue {
 public:
  using ItemRef = std::shared_ptr<Item>;

  explicit BoundedQueue(size_t limit) : limit_(limit) {}

  // Throws RESOURCE_EXHAUSTED where the queue is full, CANCELLED where it is closed.
  void put(ItemRef item) {
    {
      std::lock_guard lock(mutex_);
      if (closed_) fail(Code::kCancelled, "the server is shutting down");
      if (items_.size() >= limit_) fail(Code::kResourceExhausted, "the queue is full: ", limit_, " requests wait");
      items_.push_back(std::move(item));
    }
    changed_.notify_one();
  }

  // The oldest that `wanted` takes. Waits for one until that time at most, and null then; null also where the queue is closed.
  template <typename Wanted>
  ItemRef take_if(const Wanted& wanted, Clock::time_point until) {
    std::unique_lock lock(mutex_);
    while (true) {
      const auto found = std::ranges::find_if(items_, [&](const ItemRef& item) { return wanted(*item); });
      if (found != items_.end()) {
        ItemRef item = std::move(*found);
        items_.erase(found);
        return item;
      }
      if (closed_ || Clock::now() >= until) return nullptr;
      // The clock has no time that is later than `max`: a wait for it would overflow.
      if (until == Clock::time_point::max()) {
        changed_.wait(lock);
      } else {
        changed_.wait_until(lock, until);
      }
    }
  }

  ItemRef take(Clock::time_point until = Clock::time_point::max()) {
    return take_if([](const Item&) { return true; }, until);
  }

  // Whether it waited there. It does no more.
  bool remove(const Item& item) {
    std::lock_guard lock(mutex_);
    return std::erase_if(items_, [&](const ItemRef& one) { return one.get() == &item; }) > 0;
  }

  // Nothing is put any more; those that wait are still taken.
  void close() {
    {
      std::lock_guard lock(mutex_);
      closed_ = true;
    }
    changed_.notify_all();
  }

 private:
  const size_t limit_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<ItemRef> items_;
  bool closed_ = false;
};

}  // namespace ltc::serve
