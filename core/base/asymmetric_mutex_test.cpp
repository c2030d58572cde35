#include "core/base/asymmetric_mutex.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <mutex>
#include <thread>
#include <vector>

namespace ltc {
namespace {

using namespace std::chrono_literals;

TEST(AsymmetricMutex, readers_never_see_half_a_write) {
  AsymmetricMutex mutex;
  uint64_t first = 0, second = 0;
  std::atomic<bool> is_over{false};
  std::atomic<uint64_t> torn{0}, reads{0};
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      while (!is_over) {
        const std::shared_lock lock(mutex);
        torn += first != second;
        ++reads;
      }
    });
  }
  for (int i = 0; i < 50; ++i) {
    const std::lock_guard lock(mutex);
    ++first;
    std::this_thread::yield();
    ++second;
  }
  while (reads < 1000) std::this_thread::yield();
  is_over = true;
  threads.clear();
  EXPECT_EQ(torn, 0u);
}

TEST(AsymmetricMutex, a_writer_waits_for_readers_and_keeps_new_ones_out) {
  AsymmetricMutex mutex;
  std::shared_lock reader(mutex);
  std::promise<void> written;
  std::atomic<bool> is_written{false};
  auto writer = std::async(std::launch::async, [&] {
    const std::lock_guard lock(mutex);
    written.get_future().wait();
    is_written = true;
  });
  EXPECT_EQ(writer.wait_for(20ms), std::future_status::timeout);
  auto late = std::async(std::launch::async, [&] {
    const std::shared_lock lock(mutex);
    return is_written.load();
  });
  EXPECT_EQ(late.wait_for(20ms), std::future_status::timeout);
  reader.unlock();
  EXPECT_EQ(late.wait_for(20ms), std::future_status::timeout);
  written.set_value();
  EXPECT_TRUE(late.get());
}

TEST(AsymmetricMutex, a_reader_of_one_may_read_another) {
  AsymmetricMutex one, other;
  std::shared_lock outer(one), inner(other);
  auto writer = std::async(std::launch::async, [&] { const std::lock_guard lock(other); });
  EXPECT_EQ(writer.wait_for(20ms), std::future_status::timeout);
  outer.unlock();
  EXPECT_EQ(writer.wait_for(20ms), std::future_status::timeout);
  inner.unlock();
  writer.get();
  const std::lock_guard all_are_free(one);
}

TEST(AsymmetricMutex, readers_whose_threads_have_ended_hold_nothing) {
  AsymmetricMutex mutex;
  for (int i = 0; i < 8; ++i) std::jthread([&] { const std::shared_lock lock(mutex); });
  const std::lock_guard lock(mutex);
}

}  // namespace
}  // namespace ltc
