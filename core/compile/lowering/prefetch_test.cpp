#include "core/compile/lowering/prefetch.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "core/base/disk_cache.h"
#include "core/base/error.h"
#include "core/testing/test_plugins.h"

namespace ltc {
namespace {

namespace fs = std::filesystem;

class PrefetchTest : public ::testing::Test {
 protected:
  PrefetchTest() { fs::remove_all(folder); }
  ~PrefetchTest() override { fs::remove_all(folder); }

  // A value without executables.
  void insert(const std::string& key, std::string_view rest) {
    ByteWriter out;
    save_executables(out, {}, *device);
    cache.insert(key, "", out.take() + std::string(rest));
  }

  const fs::path folder = fs::temp_directory_path() / cat("ltc_prefetch_test_", getpid());
  DiskCache cache{folder};
  std::unique_ptr<host::PluginDevice> device = testing::load_plugin("test")->open_device(0);
  const CompileTarget target{*device};
};

TEST_F(PrefetchTest, HasWhatWasSavedForTheDevice) {
  insert(target_key(target) + "a", "value a");
  insert(target_key({*device, {}, 1}) + "b", "value b");
  insert("of another device", "value c");
  Prefetch prefetch(cache, target);
  prefetch.wait();
  fs::remove_all(folder);
  const auto a = prefetch.take(target_key(target) + "a");
  ASSERT_TRUE(a);
  EXPECT_EQ(a->rest(), "value a");
  EXPECT_TRUE(a->executables.empty());
  EXPECT_TRUE(prefetch.take(target_key({*device, {}, 1}) + "b"));
  EXPECT_FALSE(prefetch.take("of another device"));
  EXPECT_FALSE(prefetch.take(target_key(target) + "a")) << "it was taken";
}

TEST_F(PrefetchTest, FindsOnTheDiskWhatItHasNot) {
  Prefetch prefetch(cache, target);
  prefetch.wait();
  CompileTarget with_prefetch = target;
  with_prefetch.prefetch = &prefetch;
  EXPECT_FALSE(find_saved(cache, "key", with_prefetch));
  insert("key", "value");
  EXPECT_EQ(find_saved(cache, "key", with_prefetch)->rest(), "value");
  EXPECT_EQ(find_saved(cache, "key", target)->rest(), "value");
}

TEST_F(PrefetchTest, ReadsTheNewestOnly) {
  const auto now = fs::file_time_type::clock::now();
  for (size_t i = 0; i <= Prefetch::kMostValues; ++i) {
    const std::string key = target_key(target) + std::to_string(i);
    insert(key, "value");
    fs::last_write_time(cache.path_of(key), now - std::chrono::hours(i));
  }
  Prefetch prefetch(cache, target);
  prefetch.wait();
  for (size_t i = 0; i <= Prefetch::kMostValues; ++i)
    EXPECT_EQ(prefetch.take(target_key(target) + std::to_string(i)) != nullptr, i < Prefetch::kMostValues) << i;
}

TEST_F(PrefetchTest, DamagedValuesAreLeftToTheOneWhoAsks) {
  cache.insert(target_key(target), "", "no executables");
  Prefetch prefetch(cache, target);
  prefetch.wait();
  EXPECT_FALSE(prefetch.take(target_key(target)));
  EXPECT_THROW(find_saved(cache, target_key(target), target), Error);
}

TEST_F(PrefetchTest, WarmsUpBeforeItReads) {
  insert(target_key(target), "value");
  int calls = 0;
  Prefetch prefetch(cache, target, [&] {
    ++calls;
    fs::remove_all(folder);
  });
  prefetch.wait();
  EXPECT_EQ(calls, 1);
  EXPECT_FALSE(prefetch.take(target_key(target)));
}

TEST_F(PrefetchTest, HasNothingWhenItIsStopped) {
  insert(target_key(target), "value");
  Prefetch prefetch(cache, target);
  prefetch.wait();
  prefetch.stop();
  EXPECT_FALSE(prefetch.take(target_key(target)));
  prefetch.stop();
}

}  // namespace
}  // namespace ltc
