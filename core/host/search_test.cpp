// Which file a name stands for, and what a user reads when there is none.
#include "core/host/search.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "core/host/library.h"
#include "core/host/testing/test_support.h"
#include "core/testing/test_plugins.h"

namespace ltc::host {
namespace {

namespace fs = std::filesystem;
using ::ltc::testing::kPluginFolder;
using ::ltc::testing::plugin_path;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class SearchTest : public HostTest {
 protected:
  void SetUp() override {
    // One per test: the dynamic loader takes a path that it has seen for the same library, whatever lies there now.
    const std::string test = ::testing::UnitTest::GetInstance()->current_test_info()->name();
    folder_ = fs::path(::testing::TempDir()) / cat("ltc_", test, "_", ::getpid());
    fs::create_directories(folder_);
  }
  void TearDown() override {
    fs::remove_all(folder_);
    ::unsetenv("LTC_PLUGIN_PATH");
    HostTest::TearDown();
  }

  // Puts a test plugin into this test's own folder under another name.
  std::string install(const std::string& plugin, const std::string& as) {
    const fs::path target = folder_ / ("libltc_" + as + ".so");
    fs::copy_file(plugin_path(plugin), target);
    return target.string();
  }

  fs::path folder_;
};

std::vector<std::string> names(std::string_view list) {
  std::vector<std::string> result;
  for (const BackendEntry& entry : parse_backends(list)) result.push_back(entry.plugin);
  return result;
}

TEST_F(SearchTest, reads_options) {
  const auto entries = parse_backends("cuda: with=activations , device=1+0; /a:b/c.so:speed=2,path=/x:/y;opencl:device=pthread");
  ASSERT_EQ(entries.size(), 3u);
  EXPECT_EQ(entries[0].plugin, "cuda");
  EXPECT_EQ(entries[0].options, (Options{{"with", "activations"}}));
  EXPECT_EQ(entries[0].devices, (std::vector<uint32_t>{1, 0}));
  EXPECT_EQ(entries[1].plugin, "/a:b/c.so");
  EXPECT_EQ(entries[1].options, (Options{{"speed", "2"}, {"path", "/x:/y"}}));
  EXPECT_EQ(entries[2].options, (Options{{"device", "pthread"}}));
  EXPECT_EQ(message_of([] { parse_entry("cuda:fast=1,slow"); }),
            "LTC_BACKEND: 'slow' of 'cuda:fast=1,slow' is no option: NAME=VALUE is");
  EXPECT_THAT(message_of([] { parse_entry("cuda:a=1,a=2"); }), HasSubstr("the option 'a' is there twice"));
  EXPECT_THAT(message_of([] { parse_entry("cuda:device=1,device=2"); }), HasSubstr("the option 'device' is there twice"));
}

TEST_F(SearchTest, reads_lists) {
  EXPECT_THAT(names(""), ElementsAre("torchscript"));
  EXPECT_THAT(names(" ; ;"), ElementsAre("torchscript"));
  EXPECT_THAT(names("opencl"), ElementsAre("opencl"));
  EXPECT_THAT(names(" opencl ;\ttorchscript; opencl;/a b/c.so "), ElementsAre("opencl", "torchscript", "opencl", "/a b/c.so"));
}

TEST_F(SearchTest, folders_of_the_user_come_first) {
  EXPECT_THAT(plugin_folders("/own", false), ElementsAre("/own"));
  ::setenv("LTC_PLUGIN_PATH", "/a: /b ::", 1);
  EXPECT_THAT(plugin_folders("/own", false), ElementsAre("/a", "/b", "/own"));
  EXPECT_THAT(plugin_folders(false).back(), own_folder() + "/plugins");
}

TEST_F(SearchTest, an_elevated_process_uses_nothing_of_the_user) {
  ::setenv("LTC_PLUGIN_PATH", "/a", 1);
  EXPECT_THAT(plugin_folders("/own", true), ElementsAre("/own"));
  EXPECT_THAT(message_of([] { find_plugin({plugin_path("test")}, {}, true); }), HasSubstr("it takes names and no paths"));
  EXPECT_FALSE(running_elevated());
}

TEST_F(SearchTest, the_plugins_beside_this_library_are_found) {
  EXPECT_TRUE(fs::equivalent(own_folder() + "/plugins", kPluginFolder));
  EXPECT_EQ(find_plugin({"test"}, plugin_folders(false))->name(), "test");
}

TEST_F(SearchTest, the_first_folder_wins) {
  const std::string own = install("test_two", "test");
  EXPECT_EQ(find_plugin({"test"}, {folder_, kPluginFolder})->path(), own);
  EXPECT_EQ(find_plugin({"test"}, {kPluginFolder, folder_})->path(), plugin_path("test"));
}

TEST_F(SearchTest, a_refused_candidate_does_not_end_the_search) {
  install("test_old_abi", "test");
  EXPECT_EQ(find_plugin({"test"}, {folder_, kPluginFolder})->path(), plugin_path("test"));
}

TEST_F(SearchTest, a_path_is_taken_as_it_is) {
  EXPECT_EQ(find_plugin({plugin_path("test_async")}, {})->name(), "test_async");
  const auto before = fs::current_path();
  fs::current_path(kPluginFolder);
  EXPECT_EQ(find_plugin({"libltc_test.so"}, {})->name(), "test");
  EXPECT_EQ(find_plugin({"./libltc_test.so"}, {})->name(), "test");
  fs::current_path(before);
}

TEST_F(SearchTest, no_such_backend_lists_what_was_tried_and_what_there_is) {
  install("test", "mine");
  const std::string refused = install("test_old_abi", "nothere");
  const Error error = error_of([&] { find_plugin({"nothere"}, {folder_, kPluginFolder}); });
  EXPECT_EQ(error.code(), Code::kNotFound);
  EXPECT_THAT(error.what(),
              AllOf(HasSubstr("no backend 'nothere' (LTC_BACKEND). Tried:"),
                    HasSubstr("\n  [nothere] " + refused + ": the plugin speaks ABI 0.0 to 0.9, this host 1.0 to 1.0"),
                    HasSubstr("\n  [nothere] " + plugin_path("nothere") + ": not there"),
                    HasSubstr("\navailable backends: mine, nothere, test, ")));
}

TEST_F(SearchTest, an_empty_machine_says_so) {
  EXPECT_THAT(message_of([&] { find_plugin({"opencl"}, {folder_}); }),
              HasSubstr("available backends: none in " + folder_.string()));
}

TEST_F(SearchTest, a_plugin_without_devices_says_why) {
  EXPECT_THAT(message_of([] { find_plugin({"test_no_device"}, {kPluginFolder}); }),
              HasSubstr("[test_no_device] " + plugin_path("test_no_device") +
                        ": no devices: this build of the test plugin pretends to have none"));
}

TEST_F(SearchTest, files_are_listed_by_folder_and_name) {
  const std::string second = install("test", "second"), first = install("test_not_a_plugin", "first");
  EXPECT_EQ(plugin_files({folder_, "/no/such/folder"}), (std::vector<std::string>{first, second}));
}

}  // namespace
}  // namespace ltc::host
