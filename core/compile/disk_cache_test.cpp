#include "core/compile/disk_cache.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <thread>
#include <vector>

#include "core/base/error.h"

namespace ltc {
namespace {

namespace fs = std::filesystem;

class DiskCacheTest : public ::testing::Test {
 protected:
  DiskCacheTest() { fs::remove_all(folder); }
  ~DiskCacheTest() override { fs::remove_all(folder); }

  size_t files() const { return fs::exists(folder) ? static_cast<size_t>(std::distance(fs::directory_iterator(folder), {})) : 0; }
  void overwrite(const fs::path& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }
  std::string bytes_of(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  const fs::path folder = fs::temp_directory_path() / cat("ltc_disk_cache_test_", getpid());
  DiskCache cache{folder};
};

TEST_F(DiskCacheTest, KeepsAValue) {
  EXPECT_FALSE(cache.find("key"));
  cache.insert("key", "about", "value");
  EXPECT_EQ(cache.find("key"), "value");
  EXPECT_EQ(DiskCache(folder).find("key"), "value");
  EXPECT_FALSE(cache.find("other"));
  EXPECT_EQ(files(), 1u);
}

TEST_F(DiskCacheTest, ReplacesAValue) {
  cache.insert("key", "", "value");
  cache.insert("key", "", "another");
  EXPECT_EQ(cache.find("key"), "another");
}

TEST_F(DiskCacheTest, AnotherKeyUnderTheSameNameIsNotTaken) {
  cache.insert("key", "", "value");
  fs::rename(cache.path_of("key"), cache.path_of("other"));
  EXPECT_FALSE(cache.find("other"));
}

TEST_F(DiskCacheTest, EveryDamageIsNoticed) {
  cache.insert("key", "about", "value");
  const std::string whole = bytes_of(cache.path_of("key"));
  for (size_t size = 0; size < whole.size(); ++size) {
    overwrite(cache.path_of("key"), whole.substr(0, size));
    EXPECT_FALSE(cache.find("key")) << size;
  }
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] ^= 1;
    overwrite(cache.path_of("key"), damaged);
    EXPECT_FALSE(cache.find("key")) << i;
  }
  overwrite(cache.path_of("key"), "not of this kind");
  EXPECT_FALSE(cache.find("key"));
  cache.insert("key", "about", "value");
  EXPECT_EQ(cache.find("key"), "value");
}

TEST_F(DiskCacheTest, WhatWasUsedLongestAgoGoes) {
  DiskCache small(folder, 4000);
  const std::string value(1000, 'x');
  for (int i = 0; i < 3; ++i) {
    small.insert(std::to_string(i), "", value);
    fs::last_write_time(small.path_of(std::to_string(i)), fs::file_time_type::clock::now() - std::chrono::hours(9 - i));
  }
  EXPECT_TRUE(small.find("0"));  // used just now
  small.insert("3", "", value);
  EXPECT_TRUE(small.find("0"));
  EXPECT_FALSE(small.find("1"));
  EXPECT_TRUE(small.find("2"));
  EXPECT_TRUE(small.find("3"));
  small.insert("large", "", std::string(5000, 'x'));
  EXPECT_FALSE(small.find("large"));
}

TEST_F(DiskCacheTest, AbandonedTemporaryFilesGo) {
  DiskCache small(folder, 1000);
  small.insert("key", "", "value");
  const fs::path old = folder / "a.tmp", young = folder / "b.tmp", foreign = folder / "notes.txt";
  for (const fs::path& path : {old, young, foreign}) overwrite(path, "x");
  fs::last_write_time(old, fs::file_time_type::clock::now() - std::chrono::hours(2));
  DiskCache(folder, 1000).insert("key", "", "value");
  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(fs::exists(young));
  EXPECT_TRUE(fs::exists(foreign));
}

TEST_F(DiskCacheTest, AFolderThatCannotBeWrittenIsNoError) {
  overwrite(folder, "a file in its place");
  cache.insert("key", "", "value");
  EXPECT_FALSE(cache.find("key"));
  DiskCache full("/dev/full/ltc");
  full.insert("key", "", "value");
  EXPECT_FALSE(full.find("key"));
}

TEST_F(DiskCacheTest, ManyThreadsAtOnce) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      DiskCache own(folder, 20000);
      for (int i = 0; i < 100; ++i) {
        const std::string key = std::to_string(i % 10);
        own.insert(key, "", std::string(1000, key[0]));
        const auto found = own.find(key);
        EXPECT_TRUE(!found || *found == std::string(1000, key[0]));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace ltc
