// The loader tier: the file, the entry, the versions, the table and what it says of itself.
#include <elf.h>

#include <fstream>
#include <iterator>

#include "conformance/kit/heap.h"
#include "conformance/tiers/loader_fixture.h"
#include "core/base/utf8.h"
#include "core/host/host_api.h"

namespace ltc::conformance {
namespace {

using ::testing::HasSubstr;

bool older(ltc_version a, ltc_version b) { return a.major != b.major ? a.major < b.major : a.minor < b.minor; }
// The names in the dynamic symbol table.
struct Symbols {
  std::vector<std::string> defined, undefined;
};

Symbols read_symbols(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  Symbols symbols;
  if (bytes.size() < sizeof(Elf64_Ehdr)) return symbols;
  const auto at = [&](uint64_t offset) { return bytes.data() + offset; };
  const auto* header = reinterpret_cast<const Elf64_Ehdr*>(at(0));
  const auto* sections = reinterpret_cast<const Elf64_Shdr*>(at(header->e_shoff));
  for (int i = 0; i < header->e_shnum; ++i) {
    if (sections[i].sh_type != SHT_DYNSYM) continue;
    const char* names = at(sections[sections[i].sh_link].sh_offset);
    const auto* entries = reinterpret_cast<const Elf64_Sym*>(at(sections[i].sh_offset));
    for (size_t s = 1; s < sections[i].sh_size / sizeof(Elf64_Sym); ++s) {
      const bool hidden =
          ELF64_ST_VISIBILITY(entries[s].st_other) != STV_DEFAULT || ELF64_ST_BIND(entries[s].st_info) == STB_LOCAL;
      if (hidden) continue;
      (entries[s].st_shndx == SHN_UNDEF ? symbols.undefined : symbols.defined).emplace_back(names + entries[s].st_name);
    }
  }
  return symbols;
}

TEST(Loader, the_library_loads_with_all_its_symbols) { EXPECT_NO_THROW(backend_entry()); }

TEST(Loader, loading_leaves_floating_point_numbers_alone) {
  EXPECT_TRUE(loading_kept_float_control())
      << "the contract: loading leaves how the thread computes floating-point numbers as it was; a library linked with "
      << "-ffast-math makes subnormal numbers zero in the thread that loads it: link without";
}

TEST(Loader, the_library_exports_only_the_entry) {
  EXPECT_THAT(read_symbols(backend_path()).defined, ::testing::ElementsAre("ltc_plugin_entry"))
      << "the contract: a plugin exports one function; build with hidden visibility and the SDK's export map";
}

TEST(Loader, the_library_imports_nothing_of_the_host) {
  for (const std::string& name : read_symbols(backend_path()).undefined) {
    EXPECT_FALSE(name.starts_with("ltc_")) << "the contract: a plugin imports nothing from the host; it wants " << name;
  }
}

TEST(Loader, the_process_ends_well) {
  Instance instance;
  if (instance.describe().device_count > 0) Device device(instance);
}

// ---- versions

TEST(Loader, entry_agrees_on_the_newest_common_version) {
  const Entry entry({1, 0}, {1, 0});
  ASSERT_TRUE(entry.accepted) << "refused ABI 1.0: " << (entry.args->reason ? entry.args->reason : "no reason");
  EXPECT_EQ(text(entry.args->agreed), "1.0");
}

TEST(Loader, entry_writes_its_own_range) {
  const Entry entry({1, 0}, {1, 0});
  EXPECT_FALSE(older(entry.args->newest, entry.args->oldest))
      << "its range is from " << text(entry.args->oldest) << " to " << text(entry.args->newest);
  EXPECT_EQ(entry.args->newest.major, 1u) << "the plugin accepts 1.0 and says that it speaks " << text(entry.args->newest);
}

TEST(Loader, entry_accepts_a_host_with_newer_minors) {
  const Entry entry({1, 0}, {1, 900});
  ASSERT_TRUE(entry.accepted) << "the contract: old and new work together within a major version";
  EXPECT_FALSE(older(entry.args->newest, entry.args->agreed))
      << "agreed on " << text(entry.args->agreed) << ", beyond its own " << text(entry.args->newest);
}

void expect_refusal(ltc_version oldest, ltc_version newest) {
  const Entry entry(oldest, newest);
  ASSERT_FALSE(entry.accepted) << "the plugin accepted a host that speaks " << text(oldest) << " to " << text(newest)
                               << " and agreed on " << text(entry.args->agreed);
  EXPECT_FALSE(older(entry.args->newest, entry.args->oldest)) << "on refusal too the plugin writes its range";
  EXPECT_NE(entry.args->newest.major, newest.major) << "on refusal too the plugin writes its own range, not the host's";
  EXPECT_EQ(entry.args->plugin, nullptr) << "a refusal makes no instance";
}

TEST(Loader, entry_refuses_an_older_major) { expect_refusal({0, 1}, {0, 9}); }
TEST(Loader, entry_refuses_a_newer_major) { expect_refusal({2, 0}, {2, 3}); }
TEST(Loader, entry_refuses_a_much_newer_major) { expect_refusal({700, 0}, {701, 3}); }

TEST(Loader, entry_refuses_a_range_of_two_majors) {
  const Entry entry({0, 5}, {1, 0});
  EXPECT_FALSE(entry.accepted)
      << "the contract: oldest and newest have one major, and the host's table is of that major; here it "
         "cannot be known of which";
}

TEST(Loader, entry_again_after_a_refusal) {
  { const Entry refused({2, 0}, {2, 0}); }
  const Entry entry({1, 0}, {1, 0});
  EXPECT_TRUE(entry.accepted);
}

TEST(Loader, refusals_leave_nothing_behind) {
  { const Entry loaded({1, 0}, {1, 0}); }
  const host::Options options{{"no_such_option", "1"}};
  const host::OptionList unknown(options);
  const auto growth = growth_per_time(200, [&] {
    EXPECT_FALSE(Entry({2, 0}, {2, 0}).accepted);
    EXPECT_FALSE(Entry({1, 0}, {1, 0}, unknown).accepted);
  });
  if (!growth) LTC_NOT_APPLICABLE("the allocator does not count");
  EXPECT_LT(*growth, kLeakBytes) << "bytes of host memory lost with each two refusals: after one there is no instance";
}

TEST(Loader, entry_refuses_an_unknown_option) {
  const host::Options options{{"no_such_option", "1"}};
  const Entry entry({1, 0}, {1, 0}, host::OptionList(options));
  ASSERT_FALSE(entry.accepted) << "the plugin took the option 'no_such_option'";
  ASSERT_NE(entry.args->reason, nullptr) << "the reason lists the options that there are";
  const Instance instance;
  const ltc_plugin_info info = instance.describe();
  for (size_t i = 0; i < info.option_count; ++i)
    EXPECT_NE(std::string(entry.args->reason).find(text(info.options[i]->name)), std::string::npos) << entry.args->reason;
}

TEST(Loader, entry_takes_each_option_that_is_listed) {
  const Instance instance;
  const ltc_plugin_info info = instance.describe();
  for (size_t i = 0; i < info.option_count; ++i) {
    const ltc_option_info& option = *info.options[i];
    EXPECT_NE(text(option.name), "");
    EXPECT_EQ(text(option.name).find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_"), std::string::npos)
        << "the name of an option: lower case, with '_' between words: " << text(option.name);
    EXPECT_NE(text(option.about), "") << "people must read what " << text(option.name) << " does";
    const host::Options options{{text(option.name), text(option.default_value)}};
    const Entry entry({1, 0}, {1, 0}, host::OptionList(options));
    EXPECT_TRUE(entry.accepted) << "its own default is refused: " << text(option.name) << "='" << text(option.default_value)
                                << "': " << (entry.args->reason ? entry.args->reason : "no reason");
  }
}

TEST(Loader, entry_writes_nothing_beyond_struct_size) {
  const Entry entry({1, 0}, {1, 0});
  entry.args.expect_untouched("ltc_plugin_entry wrote behind the ltc_entry_args");
}

TEST(Loader, entry_works_with_a_larger_host_table) {
  HostProbe host;
  Guarded<ltc_host_api> table;
  *table.get() = *host.table();
  table.grow();
  auto args = host::sized<ltc_entry_args>();
  args.host = table.get();
  args.oldest = args.newest = {1, 0};
  args.option_count = backend_options().size();
  args.options = backend_options().data();
  ASSERT_TRUE(backend_entry()(&args));
  if (const auto close = LTC_GET(args.api, ltc_plugin_api, plugin_close)) close(args.plugin);
}

// ---- the table

// The size of the table that the plugin gave, not of our copy.
size_t table_size() {
  const Entry entry({1, 0}, {1, 0});
  return entry.args->api ? entry.args->api->struct_size : 0;
}

TEST(Loader, entry_gives_a_table) {
  const Entry entry({1, 0}, {1, 0});
  ASSERT_TRUE(entry.accepted);
  EXPECT_NE(entry.args->api, nullptr);
}

TEST(Loader, table_says_its_size) {
  const size_t least = LTC_SIZE_TO(ltc_plugin_api, transfer);
  EXPECT_GE(table_size(), least) << "struct_size must reach at least to transfer";
  EXPECT_EQ(table_size() % sizeof(void*), 0u) << "a table of slots ends behind a slot";
}

#define LTC_SLOT_TEST(slot)                                                                       \
  TEST(Loader, table_has_##slot) {                                                                \
    ASSERT_GE(table_size(), LTC_SIZE_TO(ltc_plugin_api, slot)) << "the table ends before " #slot; \
    const Entry entry({1, 0}, {1, 0});                                                            \
    EXPECT_NE(entry.args->api->slot, nullptr) << "every plugin must have " #slot;                 \
  }
LTC_SLOT_TEST(describe)
LTC_SLOT_TEST(device_open)
LTC_SLOT_TEST(device_close)
LTC_SLOT_TEST(buffer_create)
LTC_SLOT_TEST(buffer_destroy)
LTC_SLOT_TEST(transfer)
#undef LTC_SLOT_TEST

void expect_all_or_none(const char* group, std::initializer_list<bool> slots) {
  const auto set = std::count(slots.begin(), slots.end(), true);
  EXPECT_TRUE(set == 0 || static_cast<size_t>(set) == slots.size())
      << group << ": all of this group or none, and the table has " << set << " of " << slots.size();
}

TEST(Loader, computing_slots_are_all_there_or_none) {
  const Instance instance;
  const ltc_plugin_api& api = instance.api();
  expect_all_or_none("claims, lower, program_destroy, compile, executable_destroy, execute",
                     {api.claims != nullptr, api.lower != nullptr, api.program_destroy != nullptr, api.compile != nullptr,
                      api.executable_destroy != nullptr, api.execute != nullptr});
}

TEST(Loader, event_slots_are_both_there_or_none) {
  const Instance instance;
  expect_all_or_none("event_wait, event_destroy",
                     {instance.api().event_wait != nullptr, instance.api().event_destroy != nullptr});
}

TEST(Loader, table_stays_where_it_is) {
  const Entry first({1, 0}, {1, 0});
  const ltc_plugin_api before = *first.args->api;
  const Entry second({1, 0}, {1, 0});
  EXPECT_EQ(std::memcmp(&before, first.args->api, std::min(before.struct_size, sizeof before)), 0)
      << "the table lives as long as the library and does not change";
}

TEST(Loader, its_list_of_extensions_ends_and_requires_what_hosts_have) {
  const Instance instance;
  int count = 0;
  for (const ltc_extension* ext = instance.api().ext; ext && count < 256; ext = ext->next, ++count) {
    const uint32_t kind = LTC_EXTENSION_KIND(ext);
    EXPECT_TRUE(!(ext->kind & LTC_EXTENSION_REQUIRED) || host::HostApi::knows(kind))
        << "the plugin requires the extension " << kind << ", which no host of ABI 1.0 has";
    EXPECT_GE(ext->version, 1u) << "of the extension " << kind << ": the newest version that the plugin reads, from 1";
    EXPECT_GE(ext->struct_size, LTC_SIZE_TO(ltc_extension, next));
  }
  EXPECT_LT(count, 256) << "the list of extensions does not end";
}

// ---- describe

TEST(Loader, describe_says_what_the_plugin_is) {
  Instance instance;
  const ltc_plugin_info info = instance.describe();
  RecordProperty("plugin_name", text(info.name));
  RecordProperty("plugin_version", text(info.version));
  RecordProperty("build_id", text(info.build_id));
  EXPECT_NE(text(info.name), "") << "people must see a name";
  EXPECT_NE(text(info.version), "") << "people must see a version";
  if (info.device_count > 0) {
    const Device device(instance);
    RecordProperty("device", text(device.info().name));
  }
}

TEST(Loader, describe_gives_strings_that_end_with_nul) {
  const Instance instance;
  const ltc_plugin_info info = instance.describe();
  for (const ltc_string& s : {info.name, info.version, info.build_id, info.why_no_device, info.licence}) {
    if (s.size == 0) continue;
    ASSERT_NE(s.data, nullptr) << "a string of " << s.size << " bytes has no data";
    EXPECT_EQ(s.data[s.size], '\0') << "the contract: a NUL behind the bytes";
    EXPECT_EQ(std::strlen(s.data), s.size);
  }
}

TEST(Loader, describe_gives_strings_in_utf8) {
  const Instance instance;
  const ltc_plugin_info info = instance.describe();
  for (const ltc_string& s : {info.name, info.version, info.build_id, info.why_no_device, info.licence}) {
    EXPECT_EQ(text(s), valid_utf8(text(s))) << "the contract: strings are UTF-8";
  }
}

TEST(Loader, describe_counts_devices_that_can_be_numbered) {
  const Instance instance;
  EXPECT_LE(instance.describe().device_count, 127u) << "PyTorch numbers devices in 8 bits: the host refuses more";
}

TEST(Loader, describe_answers_the_same_again) {
  const Instance instance;
  const ltc_plugin_info first = instance.describe();
  for (int i = 0; i < 100; ++i) {
    const ltc_plugin_info again = instance.describe();
    ASSERT_EQ(text(again.name), text(first.name));
    ASSERT_EQ(again.device_count, first.device_count);
  }
}

TEST(Loader, describe_writes_nothing_beyond_struct_size) {
  const Instance instance;
  Guarded<ltc_plugin_info> info;
  EXPECT_OK(Instance::asked("describe", [&] { return instance.api().describe(instance.get(), info.get()); }));
  info.expect_untouched("describe wrote behind the ltc_plugin_info");
}

TEST(Loader, describe_keeps_struct_size) {
  const Instance instance;
  EXPECT_EQ(instance.describe().struct_size, host::kAbiSize<ltc_plugin_info>)
      << "struct_size is set by the side that fills the struct";
}

TEST(Loader, describe_explains_a_missing_device) {
  const Instance instance;
  const ltc_plugin_info info = instance.describe();
  if (info.device_count > 0) {
    EXPECT_EQ(text(info.why_no_device), "") << "why_no_device is empty where there is a device";
  } else {
    EXPECT_NE(text(info.why_no_device), "") << "device_count 0 comes with what is missing and what to do";
  }
}

TEST(Loader, there_is_a_device_to_test) {
  const Instance instance;
  const ltc_plugin_info info = instance.describe();
  EXPECT_GT(info.device_count, 0u) << "nothing beyond the loader can be tested: " << text(info.why_no_device);
}

TEST(Loader, describe_sets_known_flags_only) {
  const Instance instance;
  const uint32_t flags = instance.describe().flags;
  EXPECT_EQ(flags & ~uint32_t{LTC_PLUGIN_ONE_CALL_AT_A_TIME}, 0u) << "unknown bits";
  EXPECT_FALSE(flags && instance.is_asynchronous()) << "LTC_PLUGIN_ONE_CALL_AT_A_TIME does not go with event slots";
}

TEST(Loader, describe_names_the_sanitizers_of_the_build) {
  const Instance instance;
  const uint32_t known = LTC_SANITIZER_ADDRESS | LTC_SANITIZER_THREAD | LTC_SANITIZER_MEMORY;
  EXPECT_EQ(instance.describe().sanitizers & ~known, 0u) << "unknown bits";
  const auto symbols = read_symbols(backend_path()).undefined;
  const bool instrumented = std::ranges::any_of(symbols, [](const auto& s) { return s.starts_with("__asan_report"); });
  EXPECT_EQ(instrumented, (instance.describe().sanitizers & LTC_SANITIZER_ADDRESS) != 0)
      << "the library " << (instrumented ? "wants" : "does not want") << " the address sanitizer's run time";
}

// ---- instances

TEST(Loader, two_instances_live_side_by_side) {
  Instance first;
  {
    Instance second;
    EXPECT_EQ(second.describe().device_count, first.describe().device_count);
  }
  EXPECT_NE(text(first.describe().name), "") << "closing one instance leaves the other";
}

TEST(Loader, instances_come_and_go) {
  for (int i = 0; i < 200; ++i) {
    Instance instance;
    ASSERT_NE(text(instance.describe().name), "");
  }
}

TEST(Loader, closing_makes_no_later_calls_to_the_host) {
  // The destructor of Instance makes every call after plugin_close a failure.
  Instance instance;
  if (instance.describe().device_count > 0) Device device(instance);
}

}  // namespace
}  // namespace ltc::conformance
