// The host's reading of a plugin's table and flags, and its own table, as ltc/plugin.h says.
#include <cstring>
#include <functional>
#include <thread>

#include "core/host/host_api.h"
#include "core/host/library.h"
#include "core/host/search.h"
#include "core/host/testing/test_rig.h"

namespace ltc::host {
namespace {

using ::ltc::testing::plugin_path;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class ContractTableTest : public HostTest {};

// A table of a later version.
struct Table {
  ltc_plugin_api api;
  const void* later[2];
};

// The plugin itself does not see the changes of a test.
ltc_plugin_api inner;
ltc_plugin* instance;
const void* const kNowhere = reinterpret_cast<const void*>(uintptr_t{1});

// The test plugin with a changed table, which the host copies.
std::shared_ptr<Plugin> enter_with(std::function<void(Table&)> change) {
  static std::function<void(Table&)> wanted;
  static Table table;
  wanted = std::move(change);
  return Plugin::enter("changed", [](ltc_entry_args* args) {
    static Library library = Library::open(plugin_path("test"));
    if (!reinterpret_cast<ltc_plugin_entry_fn*>(library.find("ltc_plugin_entry"))(args)) return false;
    inner = *args->api;
    instance = args->plugin;
    table = {inner, {kNowhere, kNowhere}};
    wanted(table);
    args->api = &table.api;
    return true;
  });
}

void expect_memory_works(Plugin& plugin) {
  Rig rig(plugin.open_device(0));
  ltc_buffer* buffer = rig.upload({1, 2, 3});
  EXPECT_THAT(rig.download(buffer, 3), ElementsAre(1, 2, 3));
  rig.device->destroy_buffer(buffer);
}

// ---- sizes

TEST_F(ContractTableTest, slots_beyond_its_size_are_absent) {
  auto plugin = enter_with([](Table& table) {
    const size_t size = LTC_SIZE_TO(ltc_plugin_api, transfer);
    for (size_t at = size; at < sizeof table.api; at += sizeof kNowhere)
      std::memcpy(reinterpret_cast<char*>(&table.api) + at, &kNowhere, sizeof kNowhere);
    table.api.struct_size = size;
  });
  EXPECT_FALSE(plugin->can_compute());
  EXPECT_FALSE(plugin->is_asynchronous());
  expect_memory_works(*plugin);
  plugin.reset();
  inner.plugin_close(instance);  // nobody else does
}

TEST_F(ContractTableTest, slots_of_a_later_version_are_ignored) {
  const auto plugin = enter_with([](Table& table) { table.api.struct_size = sizeof table; });
  EXPECT_TRUE(plugin->can_compute());
  expect_memory_works(*plugin);
}

TEST_F(ContractTableTest, optional_slots_may_be_null) {
  auto plugin = enter_with([](Table& table) {
    table.api.plugin_close = nullptr;
    table.api.program_text = nullptr;
    table.api.executable_save = nullptr;
    table.api.executable_load = nullptr;
    table.api.memory_stats = nullptr;
    table.api.event_good_outputs = nullptr;
  });
  {
    Rig rig(plugin->open_device(0));
    CGraph graph = scaled_graph();
    ltc_program* program = rig.device->lower(graph.get());
    ltc_executable* executable = rig.device->compile(program, 0);
    EXPECT_EQ(rig.device->program_text(program), std::nullopt);
    EXPECT_EQ(rig.device->save_executable(executable), std::nullopt);
    EXPECT_EQ(rig.device->load_executable("x", 1), nullptr);
    EXPECT_EQ(rig.device->memory_stats().in_use_bytes, std::nullopt);
    EXPECT_THAT(rig.device->good_outputs(nullptr, 2, rig.device->generation()), ElementsAre(0, 0));
    rig.device->destroy_program(program);
    rig.device->destroy_executable(executable);
  }
  plugin.reset();
  inner.plugin_close(instance);
}

// ---- unknowns

TEST_F(ContractTableTest, an_unknown_flag_of_a_plugin_is_refused) {
  const Error error = error_of([] {
    enter_with([](Table& table) {
      table.api.describe = [](ltc_plugin* plugin, ltc_plugin_info* info) {
        info->flags = 1u << 20;
        return inner.describe(plugin, info);
      };
    });
  });
  EXPECT_EQ(error.code(), Code::kUnsupported);
  EXPECT_THAT(error.what(), HasSubstr("ltc_plugin_info::flags is 1048576"));
}

int closed_devices;

TEST_F(ContractTableTest, an_unknown_flag_of_a_device_is_refused_and_the_device_closed) {
  closed_devices = 0;
  const auto plugin = enter_with([](Table& table) {
    table.api.device_open = [](ltc_plugin* of, const ltc_device_args* args, ltc_device_info* info, ltc_device** device) {
      ltc_status* status = inner.device_open(of, args, info, device);
      info->flags |= uint64_t{1} << 40;
      return status;
    };
    table.api.device_close = [](ltc_device* device) {
      ++closed_devices;
      inner.device_close(device);
    };
  });
  const Error error = error_of([&] { plugin->open_device(0); });
  EXPECT_EQ(error.code(), Code::kUnsupported);
  EXPECT_THAT(error.what(), HasSubstr("ltc_device_info::flags is 1099511627776; this host knows 3"));
  EXPECT_EQ(closed_devices, 1);
}

TEST_F(ContractTableTest, an_endless_list_of_extensions_is_refused) {
  static ltc_extension circle{sizeof(ltc_extension), 78, 1, &circle};
  EXPECT_THAT(message_of([] { enter_with([](Table& table) { table.api.ext = &circle; }); }),
              HasSubstr("its list of extensions does not end"));
}

// ---- ends

std::vector<std::string> ends;

TEST_F(ContractTableTest, an_instance_ends_after_its_last_device) {
  ends.clear();
  auto plugin = enter_with([](Table& table) {
    table.api.device_close = [](ltc_device* device) {
      ends.emplace_back("device");
      inner.device_close(device);
    };
    table.api.plugin_close = [](ltc_plugin* of) {
      ends.emplace_back("plugin");
      inner.plugin_close(of);
    };
  });
  auto first = plugin->open_device(0), second = plugin->open_device(0);
  plugin.reset();
  first.reset();
  EXPECT_THAT(ends, ElementsAre("device"));
  second.reset();
  EXPECT_THAT(ends, ElementsAre("device", "device", "plugin"));
}

// ---- options

TEST_F(ContractTableTest, each_option_is_given_once) {
  EXPECT_THAT(message_of([] { parse_entry("chip:clock=200,clock=300"); }), HasSubstr("the option 'clock' is there twice"));
  ::setenv("LTC_TABLE_CHIP_CLOCK", "300", 1);
  EXPECT_THAT(with_environment({{"clock", "200"}}, "table-chip"),
              ElementsAre(std::pair<std::string, std::string>("clock", "200")));
  ::unsetenv("LTC_TABLE_CHIP_CLOCK");
}

// ---- the host's own table

TEST_F(ContractTableTest, every_slot_of_the_host_is_set) {
  const HostApi api("mine");
  const ltc_host_api& table = *api.table();
  EXPECT_EQ(table.struct_size, LTC_SIZE_TO(ltc_host_api, is_awaited));
  EXPECT_TRUE(table.status_create && table.status_code && table.status_destroy && table.log && table.log_enabled &&
              table.cache_find && table.cache_insert && table.is_awaited);
}

TEST_F(ContractTableTest, the_log_has_the_plugins_name_and_unknown_levels_are_errors) {
  const HostApi api("logging");
  const ltc_host_api& table = *api.table();
  for (const int32_t level : {-1, 5, 99}) {
    EXPECT_EQ(table.log_enabled(table.host, level), table.log_enabled(table.host, LTC_LOG_ERROR));
    ::testing::internal::CaptureStderr();
    table.log(table.host, level, "a line of text", 6);
    const std::string written = ::testing::internal::GetCapturedStderr();
    EXPECT_THAT(written, HasSubstr("[error]"));
    EXPECT_THAT(written, HasSubstr("[logging] a line"));
    EXPECT_THAT(written, Not(HasSubstr("text")));
  }
  ASSERT_FALSE(table.log_enabled(table.host, LTC_LOG_TRACE));
  ::testing::internal::CaptureStderr();
  table.log(table.host, LTC_LOG_TRACE, "not shown", 9);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST_F(ContractTableTest, host_functions_are_called_in_several_threads) {
  const HostApi api("threads");
  const ltc_host_api& table = *api.table();
  const ltc_string key{"key", 3};
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (int k = 0; k < 500; ++k) {
        ltc_status* status = table.status_create(table.host, LTC_NOT_FOUND, i, "lost", 4);
        EXPECT_EQ(table.status_code(status), static_cast<ltc_code>(LTC_NOT_FOUND));
        table.status_destroy(status);
        table.log(table.host, LTC_LOG_TRACE, "a line", 6);
        table.cache_insert(table.host, &key, &key, &key);
        EXPECT_FALSE(table.is_awaited(table.host));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(live_statuses(), 0u);
}

}  // namespace
}  // namespace ltc::host
