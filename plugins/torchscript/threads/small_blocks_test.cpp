#include "torchscript/threads/small_blocks.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <thread>
#include <vector>

namespace ltc::torchscript {
namespace {

std::atomic<int> g_released{0};
void release(void* block) {
  std::free(block);
  ++g_released;
}
void* make() { return std::malloc(64); }

TEST(SmallBlocks, ThoseOfAThreadComeBackToIt) {
  EXPECT_EQ(take_small_block(), nullptr);
  void* const block = make();
  ASSERT_TRUE(keep_small_block(block, &release));
  std::thread([] { EXPECT_EQ(take_small_block(), nullptr); }).join();
  EXPECT_EQ(take_small_block(), block);
  EXPECT_EQ(take_small_block(), nullptr);
  std::free(block);
}

TEST(SmallBlocks, AThreadKeepsWhatOthersMadeUntilItEnds) {
  g_released = 0;
  std::vector<void*> blocks(1000);
  for (void*& block : blocks) block = make();
  int kept = 0;
  std::thread([&] {
    for (void* block : blocks) keep_small_block(block, &release) ? void(++kept) : release(block);
    EXPECT_EQ(g_released, 1000 - kept);
  }).join();
  EXPECT_EQ(kept, 256);
  EXPECT_EQ(g_released, 1000);
}

// A block that a thread frees after its list has gone.
struct Late {
  ~Late() { EXPECT_FALSE(keep_small_block(block, &release)); }
  void* block = nullptr;
};

TEST(SmallBlocks, AnEndingThreadKeepsNone) {
  g_released = 0;
  std::thread([] {
    thread_local Late late;  // made before the list's end is arranged, so it goes after it
    late.block = nullptr;
    keep_small_block(make(), &release);
  }).join();
  EXPECT_EQ(g_released, 1);
}

}  // namespace
}  // namespace ltc::torchscript
