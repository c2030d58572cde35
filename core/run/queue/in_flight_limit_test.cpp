#include "core/run/queue/in_flight_limit.h"

#include <gtest/gtest.h>

#include <deque>

namespace ltc {
namespace {

// How many runs of that length find room, one after the other.
int room_for(InFlightLimit& limit, int64_t expected_ns) {
  int runs = 0;
  for (; limit.has_room(); ++runs) limit.add(expected_ns);
  return runs;
}

TEST(InFlightLimitTest, LongRunsAreAsManyAsItIsTold) {
  for (const int64_t expected : {INT64_MAX, 2 * InFlightLimit::kAhead, InFlightLimit::kAhead}) {
    InFlightLimit two(2);
    EXPECT_EQ(room_for(two, expected), 2) << expected;
  }
  InFlightLimit one(1);
  EXPECT_EQ(room_for(one, INT64_MAX), 1);
}

TEST(InFlightLimitTest, ShortRunsAreMoreButNotAnyNumber) {
  InFlightLimit limit(2), shorter(2);
  EXPECT_EQ(room_for(limit, InFlightLimit::kAhead / 10), 10);
  EXPECT_EQ(room_for(shorter, 0), int{InFlightLimit::kMostRuns});
}

TEST(InFlightLimitTest, IsHalfFreeWhereHalfTheRoomIs) {
  InFlightLimit limit(2);
  std::deque<int64_t> runs;
  while (limit.has_room()) runs.push_back(limit.add(InFlightLimit::kAhead / 10));
  while (!limit.is_half_free()) {
    limit.remove(runs.front());
    runs.pop_front();
  }
  EXPECT_EQ(runs.size(), 4);
}

TEST(InFlightLimitTest, OfLongRunsIsHalfFreeWithRoomForOne) {
  InFlightLimit limit(2);
  const int64_t counted = limit.add(INT64_MAX);
  limit.add(INT64_MAX);
  EXPECT_FALSE(limit.is_half_free());
  limit.remove(counted);
  EXPECT_TRUE(limit.is_half_free());
}

}  // namespace
}  // namespace ltc
