// The same work in several threads at once.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <latch>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace ltc::conformance {

// All begin together. Ends when all have ended; an exception of one fails the test.
inline void in_threads(int count, const std::function<void(int)>& body) {
  std::latch begin(count);
  std::mutex mutex;
  std::string failed;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < count; ++i) {
      threads.emplace_back([&, i] {
        begin.arrive_and_wait();
        try {
          body(i);
        } catch (const std::exception& e) {
          const std::lock_guard lock(mutex);
          failed = e.what();
        }
      });
    }
  }
  EXPECT_EQ(failed, "");
}

}  // namespace ltc::conformance
