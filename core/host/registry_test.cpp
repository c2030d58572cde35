// Backends by ordinal.
#include "core/host/registry.h"

#include <cstdlib>
#include <thread>

#include "core/host/testing/test_support.h"
#include "core/testing/test_plugins.h"

namespace ltc::host {
namespace {

using ::ltc::testing::kPluginFolder;
using ::ltc::testing::plugin_path;
using ::testing::HasSubstr;

class RegistryTest : public HostTest {};

Registry::Config config(std::string backends) { return {std::move(backends), {kPluginFolder}, false}; }

TEST_F(RegistryTest, ordinals_follow_the_list) {
  Registry registry(config("test_two; test ;" + plugin_path("test_async")));
  EXPECT_EQ(registry.device_count(), 4u);
  const char* names[] = {"test_two", "test_two", "test", "test_async"};
  for (uint32_t ordinal = 0; ordinal < 4; ++ordinal) EXPECT_EQ(registry.open(ordinal)->plugin().name(), names[ordinal]);
  EXPECT_THAT(message_of([&] { registry.open(4); }), HasSubstr("no device 4: there are 4"));
  const auto backends = registry.backends();
  ASSERT_EQ(backends.size(), 3u);
  EXPECT_EQ(backends[1].plugin->name(), "test");
  EXPECT_EQ(backends[1].first_ordinal, 2u);
  EXPECT_EQ(backends[2].info.name, "test_async");
}

TEST_F(RegistryTest, an_entry_chooses_devices) {
  Registry registry(config("test_two:device=1;test;test_two:device=1+0"));
  EXPECT_EQ(registry.device_count(), 4u);
  EXPECT_EQ(registry.backends()[0].devices, std::vector<uint32_t>{1});
  EXPECT_EQ(registry.backends()[2].first_ordinal, 2u);
  EXPECT_EQ(registry.open(3)->plugin().name(), "test_two");
  EXPECT_EQ(message_of([] { Registry(config("test_two:device=2")).device_count(); }),
            "[test_two] no device 2 (LTC_BACKEND): the plugin has 2, counted from 0");
}

TEST_F(RegistryTest, an_option_that_a_plugin_does_not_have_is_refused) {
  EXPECT_THAT(message_of([] { Registry(config("test:speed=2")).device_count(); }), HasSubstr("the plugin has no options"));
  ::setenv("LTC_TEST_SPEED", "2", 1);
  EXPECT_THAT(message_of([] { Registry(config("test")).device_count(); }), HasSubstr("the plugin has no options"));
  ::unsetenv("LTC_TEST_SPEED");
}

TEST_F(RegistryTest, more_devices_than_can_be_numbered_are_refused) {
  EXPECT_EQ(Registry(config("test_many;test_two;test")).device_count(), 103u);
  EXPECT_THAT(
      message_of([] { Registry(config("test;test_many;test_many")).device_count(); }),
      HasSubstr("[test_many] has 100 devices behind 101 of the backends before it (LTC_BACKEND); PyTorch numbers at most 127"));
}

TEST_F(RegistryTest, one_plugin_twice_is_two_instances) {
  Registry registry(config("test;test"));
  const auto backends = registry.backends();
  ASSERT_EQ(backends.size(), 2u);
  EXPECT_NE(backends[0].plugin, backends[1].plugin);
  EXPECT_NE(&registry.open(0)->plugin(), &registry.open(1)->plugin());
}

TEST_F(RegistryTest, a_failure_stays_until_reset) {
  Registry registry(config("test;nowhere"));
  const std::string first = message_of([&] { registry.device_count(); });
  EXPECT_THAT(first, HasSubstr("no backend 'nowhere'"));
  EXPECT_EQ(message_of([&] { registry.open(0); }), first);
  EXPECT_EQ(message_of([&] { registry.backends(); }), first);
}

TEST_F(RegistryTest, the_environment_is_read_at_the_first_question) {
  Registry& registry = Registry::instance();
  registry.reset();
  ::setenv("LTC_BACKEND", "nowhere", 1);
  EXPECT_THAT(message_of([&] { registry.device_count(); }), HasSubstr("no backend 'nowhere'"));
  ::setenv("LTC_BACKEND", "test_two", 1);
  EXPECT_THAT(message_of([&] { registry.device_count(); }), HasSubstr("no backend 'nowhere'"));
  registry.reset();
  EXPECT_EQ(registry.device_count(), 2u);
  ::unsetenv("LTC_BACKEND");
  registry.reset();
}

TEST_F(RegistryTest, an_open_device_outlives_a_reset) {
  Registry registry(config("test"));
  const auto device = registry.open(0);
  registry.reset();
  EXPECT_EQ(device->plugin().describe().device_count, 1u);
}

TEST_F(RegistryTest, many_threads_load_once) {
  Registry registry(config("test_two"));
  std::vector<std::thread> threads;
  std::vector<const Plugin*> seen(8);
  for (size_t i = 0; i < seen.size(); ++i) {
    threads.emplace_back([&, i] { seen[i] = registry.backends().front().plugin.get(); });
  }
  for (auto& thread : threads) thread.join();
  for (const Plugin* plugin : seen) EXPECT_EQ(plugin, seen[0]);
}

}  // namespace
}  // namespace ltc::host
