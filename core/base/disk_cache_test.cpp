#include "core/base/disk_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
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

TEST_F(DiskCacheTest, CountsItsPrograms) {
  EXPECT_EQ(cache.contents().programs, 0u);
  cache.insert("key", "about", "value");
  cache.insert("other", "about", "value");
  overwrite(folder / "foreign", "bytes");
  EXPECT_EQ(cache.contents().folder, folder);
  EXPECT_EQ(cache.contents().programs, 2u);
  EXPECT_EQ(cache.contents().bytes, fs::file_size(cache.path_of("key")) + fs::file_size(cache.path_of("other")));
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

// Names of the cache: 32 digits and ".ltc"; those of temporary files end in 16 more and ".tmp".
TEST_F(DiskCacheTest, OnlyItsOwnFilesGo) {
  cache.insert("key", "", "value");
  const std::string own = cache.path_of("key").filename(), digits(32, 'a'), magic = "ltcprog\n";
  const auto temporary = [](const std::string& name) { return name + ".0123456789abcdef.tmp"; };
  const std::vector<std::pair<std::string, std::string>> foreign = {
      {"thesis.tmp", "x"},
      {"notes.ltc", "x"},
      {"notes.ltc.1.2.tmp", magic},
      {digits + ".ltc", "a file of that name"},
      {digits + ".ltc.tmp", magic},
      {digits + "b.ltc", magic},
      {std::string(32, 'A') + ".ltc", magic},
      {temporary(digits + ".ltc"), "another's"},
      {temporary("notes.ltc"), magic},
  };
  const std::vector<std::pair<std::string, std::string>> abandoned = {
      {temporary(own), magic}, {temporary(std::string(32, 'b') + ".ltc"), ""}, {temporary(std::string(32, 'c') + ".ltc"), "ltc"}};
  for (const auto& list : {foreign, abandoned}) {
    for (const auto& [name, bytes] : list) {
      overwrite(folder / name, bytes);
      fs::last_write_time(folder / name, fs::file_time_type::clock::now() - std::chrono::hours(2));
    }
  }
  const fs::path young = folder / temporary(std::string(32, 'd') + ".ltc");
  overwrite(young, magic);
  DiskCache(folder, 1).insert("", "", "");  // more than it may have, so it looks through the folder
  DiskCache(folder, 100).insert("new", "", "value");
  for (const auto& [name, bytes] : foreign) EXPECT_EQ(bytes_of(folder / name), bytes) << name;
  for (const auto& [name, bytes] : abandoned) EXPECT_FALSE(fs::exists(folder / name)) << name;
  EXPECT_TRUE(fs::exists(young));
  EXPECT_FALSE(fs::exists(folder / own));
}

TEST_F(DiskCacheTest, AFolderThatOthersMayWriteIsNotUsed) {
  cache.insert("key", "", "value");
  fs::permissions(folder, fs::perms::all);
  DiskCache other(folder);
  ::testing::internal::CaptureStderr();
  EXPECT_FALSE(other.find("key"));
  other.insert("another", "", "value");
  EXPECT_FALSE(other.find("another"));
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(files(), 1u);
  const std::string expected = cat(folder.string(), ": others than its owner may write it (mode 0777)");
  ASSERT_NE(log.find(expected), log.npos) << log;
  EXPECT_EQ(log.find(expected, log.find(expected) + 1), log.npos) << log;
}

TEST_F(DiskCacheTest, SharedFoldersAreOnlyRead) {
  const fs::path shared = folder / "shared", own = folder / "own";
  DiskCache(shared).insert("key", "", "theirs");
  fs::permissions(shared, fs::perms::owner_read | fs::perms::owner_exec);
  const auto written = fs::last_write_time(DiskCache(shared).path_of("key"));
  DiskCache both(own, 1 << 20, {shared});
  EXPECT_EQ(both.find("key"), "theirs");
  EXPECT_FALSE(fs::exists(own));
  both.insert("other", "", "ours");
  EXPECT_EQ(both.find("other"), "ours");
  EXPECT_EQ(both.find("key"), "theirs");
  both.insert("key", "", "ours");
  EXPECT_EQ(both.find("key"), "ours");
  EXPECT_EQ(fs::last_write_time(DiskCache(shared).path_of("key")), written);
  EXPECT_EQ(DiskCache(shared).contents().programs, 1u);
  fs::permissions(shared, fs::perms::owner_all);
}

TEST_F(DiskCacheTest, VisitsTheNewestFirst) {
  const fs::path shared = folder / "shared", own = folder / "own";
  DiskCache(shared).insert("theirs", "", "value of theirs");
  DiskCache both(own, 1 << 20, {shared});
  const auto now = fs::file_time_type::clock::now();
  for (const auto& [key, age] : {std::pair("old", 3), {"new", 1}, {"damaged", 0}, {"middle", 2}}) {
    both.insert(key, "", cat("value of ", key));
    fs::last_write_time(both.path_of(key), now - std::chrono::hours(age));
  }
  overwrite(both.path_of("damaged"), "ltcprog\nx");
  const auto visited = [&](size_t most) {
    std::vector<std::string> keys;
    both.visit_newest([&](const std::string& key, const std::string& value) {
      EXPECT_EQ(value, "value of " + key);
      keys.push_back(key);
      return keys.size() < most;
    });
    return keys;
  };
  using Keys = std::vector<std::string>;
  EXPECT_EQ(visited(10), (Keys{"new", "middle", "old", "theirs"}));
  EXPECT_EQ(visited(2), (Keys{"new", "middle"}));
  both.touch("old");
  both.touch("theirs");
  EXPECT_EQ(visited(10), (Keys{"old", "new", "middle", "theirs"}));
  DiskCache(folder / "nowhere").visit_newest([](auto...) {
    ADD_FAILURE();
    return false;
  });
}

TEST_F(DiskCacheTest, SharedFoldersThatOthersMayWriteAreIgnored) {
  const fs::path shared = folder / "shared";
  DiskCache(shared).insert("key", "", "value");
  fs::permissions(shared, fs::perms::all);
  DiskCache both(folder / "own", 1 << 20, {folder / "nowhere", shared});
  ::testing::internal::CaptureStderr();
  EXPECT_FALSE(both.find("key"));
  EXPECT_FALSE(both.find("key"));
  EXPECT_THAT(
      ::testing::internal::GetCapturedStderr(),
      ::testing::EndsWith(cat("ignored of LTC_CACHE_SHARED: ", (folder / "nowhere").string(), ": there is no such folder\n")));
  DiskCache one(folder / "own", 1 << 20, {shared});
  ::testing::internal::CaptureStderr();
  EXPECT_FALSE(one.find("key"));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              ::testing::HasSubstr("shared: others than its owner may write it (mode 0777)"));
}

TEST_F(DiskCacheTest, AFolderOfSomebodyElseIsNotUsed) {
  if (geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  cache.insert("key", "", "value");
  ASSERT_EQ(chown(cache.path_of("key").c_str(), 65534, 65534), 0);
  EXPECT_FALSE(DiskCache(folder).find("key"));
  ASSERT_EQ(chown(cache.path_of("key").c_str(), 0, 0), 0);
  EXPECT_TRUE(DiskCache(folder).find("key"));
  ASSERT_EQ(chown(folder.c_str(), 65534, 65534), 0);
  EXPECT_FALSE(DiskCache(folder).find("key"));
}

// None of these may wait or fill the memory.
TEST_F(DiskCacheTest, WhatIsNoFileOfItIsIgnored) {
  cache.insert("key", "", "value");
  const fs::path path = cache.path_of("key");
  const std::string whole = bytes_of(path);
  fs::remove(path);
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_FALSE(cache.find("key"));
  fs::remove(path);
  fs::create_symlink("/dev/zero", path);
  EXPECT_FALSE(cache.find("key"));
  fs::remove(path);
  overwrite(path, whole);
  fs::resize_file(path, uint64_t{200} << 30);  // all of it a hole
  EXPECT_FALSE(cache.find("key"));
  std::string head = whole.substr(0, 24);
  const uint64_t size = (uint64_t{200} << 30) - 24;
  head.replace(16, 8, reinterpret_cast<const char*>(&size), 8);
  overwrite(path, head);
  fs::resize_file(path, uint64_t{200} << 30);
  EXPECT_FALSE(cache.find("key"));
  cache.insert("key", "", "value");
  EXPECT_EQ(cache.find("key"), "value");
}

TEST(ElevatedProcess, DISABLED_HasNoCache) {
  EXPECT_EQ(DiskCache::instance(), nullptr);
  _exit(HasFailure());  // before LeakSanitizer, which cannot look at such a process and would end it with an error
}

// This program, owned by one user and started by another, with a folder that the first one's cache would take.
TEST_F(DiskCacheTest, AnElevatedProcessHasNone) {
  if (geteuid() != 0) GTEST_SKIP() << "only root makes such programs";
  fs::create_directory(folder);
  const fs::path program = folder / "program", caches = folder / "caches";
  fs::copy_file("/proc/self/exe", program);
  fs::create_directory(caches);
  ASSERT_EQ(chown(program.c_str(), 65533, 65533) + chown(caches.c_str(), 65533, 65533), 0);
  ASSERT_EQ(chmod(program.c_str(), 04755), 0);
  const pid_t child = fork();
  if (child == 0) {
    setenv("LTC_CACHE", "1", 1);
    setenv("LTC_CACHE_DIR", caches.c_str(), 1);
    if (setgid(65534) != 0 || setuid(65534) != 0) _exit(99);
    execl(program.c_str(), program.c_str(), "--gtest_filter=ElevatedProcess.*", "--gtest_also_run_disabled_tests",
          "--gtest_brief=1", nullptr);
    _exit(98);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), 0);
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
