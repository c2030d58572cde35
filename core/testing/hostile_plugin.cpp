// The test plugin with one fault more. Its option `fault` chooses which; the table of the rows is in core/host/hostile_test.cpp.
//
// The environment chooses faults that a process cannot survive, since some happen before the entry: LTC_TEST_HOSTILE_DEADLY.
#include <cstdlib>
#include <cstring>
#include <map>
#include <new>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "ltc/plugin.h"

extern "C" bool ltc_test_inner_entry(ltc_entry_args* args);

namespace {

const ltc_host_api* host;
ltc_plugin_api inner, table;  // without the fault, and with it

ltc_string string(const char* text) { return {text, std::strlen(text)}; }
ltc_status* error(const char* text) { return host->status_create(host->host, LTC_INTERNAL, LTC_NONE, text, std::strlen(text)); }

// A status that the host did not make.
ltc_status* stray_status() { return reinterpret_cast<ltc_status*>(uintptr_t{0x1001}); }
// One that it made, and that is destroyed.
ltc_status* dead_status() {
  ltc_status* status = error("used twice");
  host->status_destroy(status);
  return status;
}
// A handle that is no address.
template <typename Handle>
Handle* misaligned(int number) {
  return reinterpret_cast<Handle*>(static_cast<uintptr_t>(2 * number + 1));
}

// ---- faults of the entry and its table

bool accept(ltc_entry_args* args) {
  args->agreed = args->newest;
  args->api = &table;
  return true;
}

bool speak(ltc_entry_args* args, ltc_version oldest, ltc_version newest) {
  args->oldest = oldest;
  args->newest = newest;
  return false;
}

template <size_t Size>
bool sized_table(ltc_entry_args* args) {
  table.struct_size = Size;
  return accept(args);
}

bool misaligned_table(ltc_entry_args* args) {
  accept(args);
  args->api = reinterpret_cast<const ltc_plugin_api*>(reinterpret_cast<const char*>(&table) + 1);
  return true;
}

bool listing(ltc_entry_args* args, const ltc_extension* list) {
  table.ext = list;
  return accept(args);
}

bool circle_of_extensions(ltc_entry_args* args) {
  static ltc_extension second{sizeof(ltc_extension), 79, 1, nullptr};
  static ltc_extension first{sizeof(ltc_extension), 78, 1, &second};
  second.next = &first;
  return listing(args, &first);
}

bool empty_extension(ltc_entry_args* args) {
  static ltc_extension empty{0, 78, 1, nullptr};
  return listing(args, &empty);
}

bool stray_extension(ltc_entry_args* args) {
  static ltc_extension first{sizeof(ltc_extension), 78, 1, reinterpret_cast<const ltc_extension*>(uintptr_t{77})};
  return listing(args, &first);
}

bool required_extension(ltc_entry_args* args) {
  static ltc_extension required{sizeof(ltc_extension), LTC_EXTENSION_REQUIRED | 0x70001, 1, nullptr};
  return listing(args, &required);
}

bool latin_1_reason(ltc_entry_args* args) {
  args->reason = "ferm\xe9 le lundi";
  return false;
}

// ---- faults of slots: the entry accepts a table in which one of them is changed

template <void change()>
bool changed(ltc_entry_args* args) {
  change();
  return accept(args);
}

// describe writes what the test plugin writes, and then what `write` does.
template <void write(ltc_plugin_info*)>
bool describing(ltc_entry_args* args) {
  table.describe = [](ltc_plugin* plugin, ltc_plugin_info* info) -> ltc_status* {
    ltc_status* status = inner.describe(plugin, info);
    if (!status) write(info);
    return status;
  };
  return accept(args);
}

const ltc_option_info latin_1_option{LTC_SIZE_TO(ltc_option_info, about), string("m\xf6glich"), string("\xff"), string("\xc3")};
const ltc_option_info empty_option{};
const ltc_option_info* const latin_1_options[] = {&latin_1_option};
const ltc_option_info* const options_with_null[] = {&latin_1_option, nullptr, &latin_1_option};
const ltc_option_info* const options_with_empty[] = {&empty_option};

void latin_1_strings(ltc_plugin_info* info) {
  info->name = string("caf\xe9");
  info->version = string("1.0\xb2");
  info->build_id = string("\x80");
  info->licence = string("\xa9 us");
  info->option_count = 1;
  info->options = latin_1_options;
}

void null_strings(ltc_plugin_info* info) {
  for (ltc_string* text : {&info->name, &info->version, &info->build_id, &info->licence, &info->why_no_device})
    *text = {nullptr, 17};
}

void endless_name(ltc_plugin_info* info) { info->name = {"short", SIZE_MAX}; }

void list_options(ltc_plugin_info* info, size_t count, const ltc_option_info* const* options) {
  info->option_count = count;
  info->options = options;
}

void throw_in_describe() {
  table.describe = [](ltc_plugin*, ltc_plugin_info*) -> ltc_status* { throw std::bad_alloc(); };
}
void stray_status_of_describe() {
  table.describe = [](ltc_plugin*, ltc_plugin_info*) { return stray_status(); };
}
void stray_status_of_buffer_create() {
  table.buffer_create = [](ltc_device*, const ltc_buffer_args*, ltc_buffer**) { return stray_status(); };
}
void dead_status_of_device_open() {
  table.device_open = [](ltc_plugin*, const ltc_device_args*, ltc_device_info*, ltc_device**) { return dead_status(); };
}
void latin_1_error() {
  table.device_open = [](ltc_plugin*, const ltc_device_args*, ltc_device_info*, ltc_device**) { return error("cass\xe9"); };
}
void no_device_opened() {
  table.device_open = [](ltc_plugin*, const ltc_device_args*, ltc_device_info*, ltc_device**) -> ltc_status* { return nullptr; };
}

// Plugin, device and buffer are no addresses; nothing but this plugin may look at them.
bool misaligned_handles(ltc_entry_args* args) {
  inner.plugin_close(args->plugin);
  table = {};
  table.struct_size = LTC_SIZE_TO(ltc_plugin_api, transfer);
  table.describe = [](ltc_plugin*, ltc_plugin_info* info) -> ltc_status* {
    info->device_count = 1;
    return nullptr;
  };
  table.device_open = [](ltc_plugin*, const ltc_device_args*, ltc_device_info* info, ltc_device** device) -> ltc_status* {
    info->dtypes = UINT64_C(1) << LTC_F32;
    *device = misaligned<ltc_device>(1);
    return nullptr;
  };
  table.device_close = [](ltc_device*) {};
  table.buffer_create = [](ltc_device*, const ltc_buffer_args*, ltc_buffer** buffer) -> ltc_status* {
    *buffer = misaligned<ltc_buffer>(2);
    return nullptr;
  };
  table.buffer_destroy = [](ltc_buffer*) {};
  table.transfer = [](ltc_device*, const ltc_transfer_args*, ltc_event**) -> ltc_status* { return nullptr; };
  args->plugin = misaligned<ltc_plugin>(3);
  return accept(args);
}

using Entry = bool (*)(ltc_entry_args*);

// These take the place of the entry.
const std::map<std::string_view, Entry> entries = {
    {"writes_nothing", [](ltc_entry_args*) { return true; }},
    {"gives_no_reason", [](ltc_entry_args*) { return false; }},
    {"throws", [](ltc_entry_args*) -> bool { throw std::runtime_error("no luck today"); }},
    {"throws_a_number", [](ltc_entry_args*) -> bool { throw 42; }},
    {"latin_1_reason", latin_1_reason},
    {"future_version",
     [](ltc_entry_args* args) {
       return speak(args, {2, 0}, {2, 3});
     }},
    {"future_minor",
     [](ltc_entry_args* args) {
       return speak(args, {1, 7}, {1, 9});
     }},
    {"past_version",
     [](ltc_entry_args* args) {
       return speak(args, {0, 1}, {0, 9});
     }},
};

// These go on where it has ended.
const std::map<std::string_view, Entry> faults = {
    {"no_table", [](ltc_entry_args* args) { return accept(args) && !(args->api = nullptr); }},
    {"misaligned_table", misaligned_table},
    {"table_of_nothing", sized_table<0>},
    {"table_too_short", sized_table<LTC_SIZE_TO(ltc_plugin_api, buffer_create)>},
    {"table_of_a_megabyte", sized_table<1 << 20>},
    {"table_without_end", sized_table<SIZE_MAX>},
    {"circle_of_extensions", circle_of_extensions},
    {"empty_extension", empty_extension},
    {"stray_extension", stray_extension},
    {"required_extension", required_extension},
    {"no_transfer", changed<[] { table.transfer = nullptr; }>},
    {"no_executable_destroy", changed<[] { table.executable_destroy = nullptr; }>},
    {"no_event_destroy", changed<[] { table.event_wait = [](ltc_event*, uint64_t, bool*) -> ltc_status* { return nullptr; }; }>},
    {"throws_in_describe", changed<throw_in_describe>},
    {"stray_status_of_describe", changed<stray_status_of_describe>},
    {"stray_status_of_buffer_create", changed<stray_status_of_buffer_create>},
    {"dead_status_of_device_open", changed<dead_status_of_device_open>},
    {"latin_1_error", changed<latin_1_error>},
    {"no_device_opened", changed<no_device_opened>},
    {"latin_1_strings", describing<latin_1_strings>},
    {"null_strings", describing<null_strings>},
    {"endless_name", describing<endless_name>},
    {"null_option", describing<[](ltc_plugin_info* info) { list_options(info, 3, options_with_null); }>},
    {"empty_option", describing<[](ltc_plugin_info* info) { list_options(info, 1, options_with_empty); }>},
    {"no_list_of_options", describing<[](ltc_plugin_info* info) { list_options(info, 3, nullptr); }>},
    {"options_without_end", describing<[](ltc_plugin_info* info) { list_options(info, SIZE_MAX, latin_1_options); }>},
    {"two_hundred_devices", describing<[](ltc_plugin_info* info) { info->device_count = 200; }>},
    {"unknown_flags", describing<[](ltc_plugin_info* info) { info->flags = 64; }>},
    {"foreign_sanitizer", describing<[](ltc_plugin_info* info) { info->sanitizers = LTC_SANITIZER_MEMORY; }>},
    {"misaligned_handles", misaligned_handles},
};

// ---- what ends or stops a process

void crash() {
  volatile int* volatile nowhere = nullptr;
  *nowhere = 1;
}
void spin() {
  static volatile bool for_ever = true;
  while (for_ever) continue;
}

void be_deadly(std::string_view where) {
  const char* wanted = std::getenv("LTC_TEST_HOSTILE_DEADLY");
  const std::string_view deed = wanted ? wanted : "";
  if (!deed.ends_with(where)) return;
  if (deed.starts_with("crashes")) crash();
  if (deed.starts_with("exits")) std::exit(3);
  if (deed.starts_with("aborts")) std::abort();
  if (deed.starts_with("spins")) spin();
}

const bool constructed = [] {
  be_deadly("in its constructor");
  return true;
}();

}  // namespace

extern "C" bool ltc_plugin_entry(ltc_entry_args* args) {
  be_deadly("in ltc_plugin_entry");
  std::string_view fault;
  for (size_t i = 0; i < args->option_count; ++i) {
    const ltc_option& option = *args->options[i];
    if (std::string_view(option.name.data, option.name.size) == "fault") fault = {option.value.data, option.value.size};
  }
  if (const auto entry = entries.find(fault); entry != entries.end()) return entry->second(args);
  args->option_count = 0;
  if (!ltc_test_inner_entry(args)) return false;
  static auto* const instances = new std::vector<ltc_plugin*>();  // some faults keep the host from closing them
  instances->push_back(args->plugin);
  host = args->host;
  inner = table = *args->api;
  table.describe = [](ltc_plugin* plugin, ltc_plugin_info* info) {
    be_deadly("in describe");
    return inner.describe(plugin, info);
  };
  table.device_open = [](ltc_plugin* plugin, const ltc_device_args* device_args, ltc_device_info* info, ltc_device** device) {
    be_deadly("in device_open");
    return inner.device_open(plugin, device_args, info, device);
  };
  args->api = &table;
  const auto found = faults.find(fault);
  return found == faults.end() || found->second(args);
}
