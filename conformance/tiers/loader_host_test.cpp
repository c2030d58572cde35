// The loader tier: hosts that differ from the one that the other checks show, and all that describe writes.
#include <algorithm>
#include <cstring>
#include <set>

#include "conformance/kit/heap.h"
#include "conformance/tiers/loader_fixture.h"
#include "core/base/utf8.h"

namespace ltc::conformance {
namespace {

constexpr ltc_extension kUnknownToAll{sizeof(ltc_extension), 0x7fff0002u, 1, nullptr};

// ---- hosts of another date

TEST(LoaderHost, entry_reads_only_the_fields_it_knows) {
  const Entry entry([](auto& args) { args.grow(); });
  EXPECT_TRUE(entry.accepted) << "refused a larger ltc_entry_args: within a major version old and new work together";
}

TEST(LoaderHost, entry_skips_an_unknown_extension) {
  const Entry entry([](auto& args) { args->ext = &kUnknownToAll; });
  EXPECT_TRUE(entry.accepted) << "the contract: a reader skips kinds that it does not know";
}

TEST(LoaderHost, a_host_may_read_extensions_that_nobody_knows) {
  ltc_host_api table = *HostProbe().table();
  table.ext = &kUnknownToAll;
  const Entry entry([&](auto& args) {
    table.host = const_cast<void*>(args->host->host);
    args->host = &table;
  });
  EXPECT_TRUE(entry.accepted);
}

TEST(LoaderHost, options_of_a_newer_host_are_read) {
  const Instance instance;
  const ltc_plugin_info info = instance.describe();
  if (info.option_count == 0) LTC_NOT_APPLICABLE("the plugin has no options");
  Guarded<ltc_option> option;
  option->name = info.options[0]->name;
  option->value = info.options[0]->default_value;
  option.grow();
  const ltc_option* const options[] = {option.get()};
  const Entry entry([&](auto& args) {
    args->option_count = 1;
    args->options = options;
  });
  EXPECT_TRUE(entry.accepted) << "a larger ltc_option: " << (entry.args->reason ? entry.args->reason : "no reason");
}

TEST(LoaderHost, entry_refuses_an_option_of_a_newer_abi) {
  const host::Options options{{"ltc.of_tomorrow", "1"}};
  const Entry entry({1, 0}, {1, 0}, host::OptionList(options));
  EXPECT_FALSE(entry.accepted) << "took an option that it does not know; names that begin with \"ltc.\" are the ABI's own";
}

TEST(LoaderHost, the_reason_of_a_refusal_is_text) {
  const host::Options options{{"no_such_option", "1"}};
  const Entry entry({1, 0}, {1, 0}, host::OptionList(options));
  ASSERT_FALSE(entry.accepted);
  ASSERT_NE(entry.args->reason, nullptr);
  EXPECT_EQ(entry.args->reason, valid_utf8(entry.args->reason));
}

TEST(LoaderHost, a_refusal_gives_no_table) {
  const Entry entry({2, 0}, {2, 0});
  ASSERT_FALSE(entry.accepted);
  EXPECT_EQ(entry.args->agreed.major, 0u) << "agreed on " << text(entry.args->agreed) << " and refused";
}

// ---- other ltc_host_api

// Hosts without a context: what they are told is kept here.
struct Told {
  std::string first_breach;
  int errors = 0, lines = 0;
} told;

void expect_null(void* host, const char* function) {
  if (host) told.first_breach = cat(function, " was called with another context than ltc_host_api::host, which is NULL here");
}

// Does what makes a plugin call the host: a refusal and, where it computes, a run.
void use(const ltc_host_api& table) {
  auto args = host::sized<ltc_entry_args>();
  args.host = &table;
  args.oldest = args.newest = {1, 0};
  args.option_count = backend_options().size();
  args.options = backend_options().data();
  ASSERT_TRUE(backend_entry()(&args));
  const ltc_plugin_api& api = *args.api;
  auto device_args = host::sized<ltc_device_args>();
  device_args.ordinal = UINT32_MAX;
  auto info = host::sized<ltc_device_info>();
  ltc_device* device = nullptr;
  EXPECT_TRUE(Instance::asked("device_open", [&] { return api.device_open(args.plugin, &device_args, &info, &device); }));
  device_args.ordinal = 0;
  EXPECT_OK(Instance::asked("device_open", [&] { return api.device_open(args.plugin, &device_args, &info, &device); }));
  if (device) api.device_close(device);
  if (const auto close = LTC_GET(&api, ltc_plugin_api, plugin_close)) close(args.plugin);
}

TEST(LoaderHost, a_hosts_context_may_be_null) {
  told = {};
  ltc_host_api table = *HostProbe().table();
  table.host = nullptr;
  table.status_create = [](void* host, ltc_code code, uint32_t node, const char* message, size_t size) noexcept {
    expect_null(host, "status_create");
    ++told.errors;
    return host::status_create(code, node, message, size);
  };
  table.log = [](void* host, int32_t, const char*, size_t) noexcept { expect_null(host, "log"); };
  table.log_enabled = [](void* host, int32_t) noexcept { return expect_null(host, "log_enabled"), false; };
  table.cache_find = [](void* host, const ltc_string*, const ltc_sink*) noexcept {
    return expect_null(host, "cache_find"), false;
  };
  table.cache_insert = [](void* host, const ltc_string*, const ltc_string*, const ltc_string*) noexcept {
    expect_null(host, "cache_insert");
  };
  table.is_awaited = [](void* host) noexcept { return expect_null(host, "is_awaited"), true; };
  use(table);
  EXPECT_EQ(told.first_breach, "");
  EXPECT_GT(told.errors, 0) << "an error was not made with status_create of this host";
}

TEST(LoaderHost, every_line_of_the_log_is_text) {
  told = {};
  HostProbe probe;
  ltc_host_api table = *probe.table();
  table.log_enabled = [](void*, int32_t) noexcept { return true; };
  table.log = [](void*, int32_t level, const char* message, size_t size) noexcept {
    if (!message) return;
    ++told.lines;
    const std::string line(message, size);
    if (line != valid_utf8(line)) told.first_breach = "not UTF-8: " + line;
    if (level < LTC_LOG_TRACE || level > LTC_LOG_ERROR) told.first_breach = cat("level ", level, ": ", line);
  };
  use(table);
  EXPECT_EQ(told.first_breach, "") << "a host that writes every level was told " << told.lines << " lines";
}

// ---- describe

TEST(LoaderHost, describe_reads_only_the_fields_it_knows) {
  const Instance instance;
  Guarded<ltc_plugin_info> info;
  info.grow();
  EXPECT_OK(Instance::asked("describe", [&] { return instance.api().describe(instance.get(), info.get()); }));
  info.expect_untouched("describe wrote fields that ABI 1.0 does not have");
}

TEST(LoaderHost, describe_answers_while_a_device_is_open_and_after) {
  Instance instance;
  const uint32_t before = instance.describe().device_count;
  if (before == 0) return;
  {
    Device device(instance);
    EXPECT_EQ(instance.describe().device_count, before);
  }
  EXPECT_EQ(instance.describe().device_count, before);
}

TEST(LoaderHost, strings_of_describe_live_as_long_as_the_instance) {
  Instance instance;
  const ltc_plugin_info first = instance.describe();
  const std::string name = text(first.name), version = text(first.version), build = text(first.build_id);
  const auto expect_unchanged = [&] {
    ASSERT_EQ(text(first.name), name) << "changed by later calls";
    ASSERT_EQ(text(first.version), version) << "changed by later calls";
    ASSERT_EQ(text(first.build_id), build) << "changed by later calls";
  };
  for (int i = 0; i < 20; ++i) {
    keep_freed_memory_apart();
    (void)instance.describe();
    expect_unchanged();
  }
  if (first.device_count > 0) Device device(instance);
  expect_unchanged();
}

TEST(LoaderHost, strings_of_one_instance_outlive_another) {
  const Instance first;
  const ltc_plugin_info info = first.describe();
  const std::string name = text(info.name);
  {
    const Instance second;
    (void)second.describe();
  }
  EXPECT_EQ(text(info.name), name);
}

TEST(LoaderHost, strings_of_options_are_text) {
  const Instance instance;
  const ltc_plugin_info info = instance.describe();
  if (info.option_count == 0) LTC_NOT_APPLICABLE("the plugin has no options");
  for (size_t i = 0; i < info.option_count; ++i) {
    for (const ltc_string& s : {info.options[i]->name, info.options[i]->default_value, info.options[i]->about}) {
      EXPECT_EQ(text(s), valid_utf8(text(s)));
      if (s.size > 0) {
        EXPECT_EQ(s.data[s.size], '\0') << "the contract: a NUL behind the bytes of '" << text(s) << "'";
      }
    }
    EXPECT_EQ(text(info.options[i]->about).find('\n'), std::string::npos)
        << "about is one line: " << text(info.options[i]->about);
  }
}

TEST(LoaderHost, each_option_is_listed_once) {
  const Instance instance;
  const ltc_plugin_info info = instance.describe();
  if (info.option_count == 0) LTC_NOT_APPLICABLE("the plugin has no options");
  std::set<std::string> names;
  for (size_t i = 0; i < info.option_count; ++i)
    EXPECT_TRUE(names.insert(text(info.options[i]->name)).second) << text(info.options[i]->name) << " is listed twice";
}

TEST(LoaderHost, the_licence_is_an_expression_of_spdx) {
  const Instance instance;
  const std::string licence = text(instance.describe().licence);
  const std::string allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-.+:() ";
  EXPECT_EQ(licence.find_first_not_of(allowed), std::string::npos) << "no SPDX expression: " << licence;
}

TEST(LoaderHost, extensions_are_listed_once) {
  const Instance instance;
  std::set<uint32_t> kinds;
  int count = 0;
  for (const ltc_extension* ext = instance.api().ext; ext && count < 256; ext = ext->next, ++count)
    EXPECT_TRUE(kinds.insert(LTC_EXTENSION_KIND(ext)).second) << "kind " << LTC_EXTENSION_KIND(ext) << " is listed twice";
}

TEST(LoaderHost, each_entry_makes_an_instance_of_its_own) {
  const Instance first, second;
  if (!first.get()) return;  // a plugin without state
  EXPECT_NE(first.get(), second.get()) << "two hosts in one process: each gets its own ltc_plugin";
}

}  // namespace
}  // namespace ltc::conformance
