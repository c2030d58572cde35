#include "core/run/queue/window.h"

#include <gtest/gtest.h>

#include <deque>

namespace ltc {
namespace {

// How many runs of that length find room, one after the other.
int room_for(Window& window, int64_t expected_ns) {
  int runs = 0;
  for (; window.has_room(); ++runs) window.add(expected_ns);
  return runs;
}

TEST(WindowTest, LongRunsAreAsManyAsItIsTold) {
  for (const int64_t expected : {INT64_MAX, 2 * Window::kAhead, Window::kAhead}) {
    Window two(2);
    EXPECT_EQ(room_for(two, expected), 2) << expected;
  }
  Window one(1);
  EXPECT_EQ(room_for(one, INT64_MAX), 1);
}

TEST(WindowTest, ShortRunsAreMoreButNotAnyNumber) {
  Window window(2), shorter(2);
  EXPECT_EQ(room_for(window, Window::kAhead / 10), 10);
  EXPECT_EQ(room_for(shorter, 0), int{Window::kMostRuns});
}

TEST(WindowTest, IsHalfFreeWhereHalfTheRoomIs) {
  Window window(2);
  std::deque<int64_t> runs;
  while (window.has_room()) runs.push_back(window.add(Window::kAhead / 10));
  while (!window.is_half_free()) {
    window.remove(runs.front());
    runs.pop_front();
  }
  EXPECT_EQ(runs.size(), 4);
}

TEST(WindowTest, OfLongRunsIsHalfFreeWithRoomForOne) {
  Window window(2);
  const int64_t counted = window.add(INT64_MAX);
  window.add(INT64_MAX);
  EXPECT_FALSE(window.is_half_free());
  window.remove(counted);
  EXPECT_TRUE(window.is_half_free());
}

}  // namespace
}  // namespace ltc
