// Entering a plugin: the ladder and each of its refusals.
#include "core/host/plugin.h"

#include "core/host/host_api.h"
#include "core/host/sized.h"
#include "core/host/testing/test_support.h"
#include "core/testing/test_plugins.h"

namespace ltc::host {
namespace {

using ::ltc::testing::load_plugin;
using ::ltc::testing::plugin_path;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class PluginTest : public HostTest {};

std::string refusal(const std::string& name) {
  return message_of([&] { load_plugin(name); });
}

TEST_F(PluginTest, describes_itself) {
  const auto plugin = load_plugin("test");
  EXPECT_EQ(plugin->name(), "test");
  EXPECT_EQ(plugin->version().major, LTC_ABI_MAJOR);
  EXPECT_TRUE(plugin->can_compute());
  EXPECT_FALSE(plugin->is_asynchronous());
  const PluginInfo info = plugin->describe();
  EXPECT_EQ(info.name, "test");
  EXPECT_EQ(info.device_count, 1u);
  EXPECT_EQ(info.build_id, "");
  EXPECT_TRUE(load_plugin("test_async")->is_asynchronous());
  EXPECT_FALSE(load_plugin("test_memory")->can_compute());
}

TEST_F(PluginTest, every_refusal_names_the_plugin_the_file_and_the_reason) {
  for (const auto& [name, reason] : std::vector<std::pair<std::string, std::string>>{
           {"test_nowhere", "not there"},
           {"test_not_a_plugin", "not a plugin: it exports no ltc_plugin_entry"},
           {"test_corrupt", "invalid ELF header"},
           {"test_old_abi", "the plugin speaks ABI 0.0 to 0.9, this host 1.0 to 1.0; it says: update the test plugin"},
           {"test_wrong_abi",
            "agreed on ABI 0.9, outside this host's range; the plugin speaks ABI 0.0 to 0.9, this host 1.0 to 1.0"},
           {"test_no_table", "the entry accepted and gave no table"},
           {"test_short_table", "the table lacks buffer_destroy, which every plugin must have"},
           {"test_missing_slot", "the table lacks transfer, which every plugin must have"},
           {"test_half_group", "the table lacks executable_destroy, which goes with claims"},
           {"test_requires_extension", "requires the extension 77"}}) {
    EXPECT_THAT(refusal(name), AllOf(StartsWith("[" + name + "] " + plugin_path(name) + ": "), HasSubstr(reason)));
  }
}

TEST_F(PluginTest, refusals_have_codes) {
  const auto code = [](const std::string& name) { return error_of([&] { load_plugin(name); }).code(); };
  EXPECT_EQ(code("test_nowhere"), Code::kNotFound);
  EXPECT_EQ(code("test_corrupt"), Code::kNotFound);
  EXPECT_EQ(code("test_old_abi"), Code::kUnsupported);
  EXPECT_EQ(code("test_missing_slot"), Code::kInternal);
}

TEST_F(PluginTest, a_folder_is_no_plugin) {
  EXPECT_THAT(message_of([] { Plugin::load(testing::kPluginFolder); }), HasSubstr("a folder, not a library"));
}

TEST_F(PluginTest, two_loads_are_two_instances) {
  const auto first = load_plugin("test");
  const auto second = load_plugin("test");
  EXPECT_NE(first, second);
  EXPECT_TRUE(first->open_device(0) && second->open_device(0));
}

TEST_F(PluginTest, a_device_keeps_its_plugin) {
  auto plugin = load_plugin("test");
  auto device = plugin->open_device(0);
  plugin.reset();
  EXPECT_EQ(device->plugin().name(), "test");
  EXPECT_EQ(device->info().name, "host memory");
  EXPECT_TRUE(device->supports(LTC_F32));
  EXPECT_FALSE(device->supports(LTC_F64));
  EXPECT_FALSE(device->supports(200));
}

TEST_F(PluginTest, opening_fails_with_a_reason) {
  EXPECT_THAT(message_of([] { load_plugin("test")->open_device(3); }), HasSubstr("[test] no device 3: the plugin has 1"));
  EXPECT_THAT(message_of([] { load_plugin("test_no_device")->open_device(0); }), HasSubstr("the plugin has 0: this build"));
}

TEST_F(PluginTest, an_unknown_option_is_refused) {
  const Error error = error_of([] { Plugin::load(plugin_path("test"), {{"speed", "11"}}); });
  EXPECT_EQ(error.code(), Code::kInvalidArgument);
  EXPECT_EQ(std::string(error.what()), cat("[test] ", plugin_path("test"), ": the plugin has no options"));
}

// Plugins that are linked in, each as bad as one function can be.

ltc_status* describe_with_sanitizer(ltc_plugin*, ltc_plugin_info* info) {
  info->sanitizers = LTC_SANITIZER_MEMORY;
  return nullptr;
}

ltc_status* describe_with_nulls(ltc_plugin*, ltc_plugin_info* info) {
  info->name = {nullptr, 17};
  return nullptr;
}

template <auto describe>
bool entry_with(ltc_entry_args* args) {
  static const ltc_plugin_api table = [] {
    auto api = sized<ltc_plugin_api>();
    api.describe = describe;
    api.device_open = [](ltc_plugin*, const ltc_device_args*, ltc_device_info*, ltc_device**) -> ltc_status* { return nullptr; };
    api.device_close = [](ltc_device*) {};
    api.buffer_create = [](ltc_device*, const ltc_buffer_args*, ltc_buffer**) -> ltc_status* { return nullptr; };
    api.buffer_destroy = [](ltc_buffer*) {};
    api.transfer = [](ltc_device*, const ltc_transfer_args*, ltc_event**) -> ltc_status* { return nullptr; };
    return api;
  }();
  args->agreed = args->newest;
  args->api = &table;
  return true;
}

TEST_F(PluginTest, a_foreign_sanitizer_is_refused) {
  EXPECT_THAT(message_of([] { Plugin::enter("msan", entry_with<describe_with_sanitizer>); }),
              StartsWith("[msan] the plugin was built with the sanitizer memory"));
}

TEST_F(PluginTest, null_strings_read_as_empty) {
  EXPECT_EQ(Plugin::enter("nulls", entry_with<describe_with_nulls>)->describe().name, "");
}

TEST_F(PluginTest, an_entry_that_throws_is_an_error) {
  EXPECT_THAT(message_of([] { Plugin::enter("bad", [](ltc_entry_args*) -> bool { throw std::runtime_error("boo"); }); }),
              StartsWith("[bad] the plugin threw from ltc_plugin_entry: boo"));
}

TEST_F(PluginTest, the_host_api_is_robust) {
  const HostApi api("robust");
  const ltc_host_api* table = api.table();
  ltc_status* status = table->status_create(table->host, 1234, 7, nullptr, 99);
  EXPECT_EQ(live_statuses(), 1u);
  EXPECT_EQ(table->status_code(status), 1234u);
  try {
    throw_status("robust", "lower", status);
  } catch (const NodeError& e) {
    EXPECT_EQ(e.node(), 7u);
    EXPECT_EQ(e.code(), Code::kInternal);  // no such code
    EXPECT_STREQ(e.what(), "[robust] lower: INTERNAL");
  }
  EXPECT_EQ(live_statuses(), 0u);
  table->status_destroy(nullptr);
  table->log(table->host, 99, nullptr, 5);
  EXPECT_EQ(table->log_enabled(table->host, LTC_LOG_TRACE), false);
}

TEST_F(PluginTest, the_host_keeps_bytes_for_a_plugin) {
  const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) / cat("host_cache_", getpid());
  DiskCache cache(folder);
  const auto string = [](std::string_view text) { return ltc_string{text.data(), text.size()}; };
  const auto found = [&](const HostApi& api, std::string_view key) {
    std::string bytes;
    const ltc_sink sink{&bytes, [](void* context, const void* data, size_t size) {
                          static_cast<std::string*>(context)->append(static_cast<const char*>(data), size);
                          return true;
                        }};
    const ltc_string name = string(key);
    const bool any = api.table()->cache_find(api.table()->host, &name, &sink);
    return any ? bytes : "nothing";
  };
  const HostApi one("one", &cache), other("other", &cache), without("one", nullptr);
  const auto insert = [&](const HostApi& api, std::string_view key, std::string_view bytes) {
    const ltc_string name = string(key), about = string("a test"), value = string(bytes);
    api.table()->cache_insert(api.table()->host, &name, &about, &value);
  };
  insert(one, "key", std::string_view("a\0b", 3));
  insert(without, "lost", "c");
  EXPECT_EQ(found(one, "key"), std::string("a\0b", 3));
  EXPECT_EQ(found(one, "another key"), "nothing");
  EXPECT_EQ(found(one, "lost"), "nothing");
  EXPECT_EQ(found(other, "key"), "nothing");  // plugins do not see what others keep
  EXPECT_EQ(found(without, "key"), "nothing");
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace ltc::host
