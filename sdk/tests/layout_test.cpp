// As a vendor's C++ compiler sees it, and the signature of every slot, which layout alone does not pin.
#include "layout.h"

#include <type_traits>

namespace {

using Status = ltc_status*;
template <typename... Args>
using Fallible = Status (*)(Args...);
template <typename Object>
using End = void (*)(Object*);

#define SLOT(table, name, ...) static_assert(std::is_same<decltype(table::name), __VA_ARGS__>::value, #name)
SLOT(ltc_plugin_api, describe, Fallible<ltc_plugin*, ltc_plugin_info*>);
SLOT(ltc_plugin_api, device_open, Fallible<ltc_plugin*, const ltc_device_args*, ltc_device_info*, ltc_device**>);
SLOT(ltc_plugin_api, device_close, End<ltc_device>);
SLOT(ltc_plugin_api, buffer_create, Fallible<ltc_device*, const ltc_buffer_args*, ltc_buffer**>);
SLOT(ltc_plugin_api, buffer_destroy, End<ltc_buffer>);
SLOT(ltc_plugin_api, transfer, Fallible<ltc_device*, const ltc_transfer_args*, ltc_event**>);
SLOT(ltc_plugin_api, claims, Fallible<ltc_device*, const ltc_claims_args*, uint32_t*>);
SLOT(ltc_plugin_api, lower, Fallible<ltc_device*, const ltc_lower_args*, ltc_program**>);
SLOT(ltc_plugin_api, program_destroy, End<ltc_program>);
SLOT(ltc_plugin_api, compile, Fallible<ltc_device*, const ltc_compile_args*, ltc_executable**>);
SLOT(ltc_plugin_api, executable_destroy, End<ltc_executable>);
SLOT(ltc_plugin_api, execute, Fallible<ltc_device*, const ltc_execute_args*, ltc_buffer**, ltc_event**>);
SLOT(ltc_plugin_api, event_wait, Fallible<ltc_event*, uint64_t, bool*>);
SLOT(ltc_plugin_api, event_destroy, End<ltc_event>);
SLOT(ltc_plugin_api, plugin_close, End<ltc_plugin>);
SLOT(ltc_plugin_api, program_text, Fallible<const ltc_program*, const ltc_sink*>);
SLOT(ltc_plugin_api, executable_save, Fallible<const ltc_executable*, const ltc_sink*>);
SLOT(ltc_plugin_api, executable_load, Fallible<ltc_device*, const ltc_load_args*, ltc_executable**>);
SLOT(ltc_plugin_api, memory_stats, Fallible<ltc_device*, ltc_memory_stats*>);
SLOT(ltc_plugin_api, event_good_outputs, Fallible<ltc_event*, size_t, uint8_t*>);
SLOT(ltc_host_api, status_create, Fallible<void*, ltc_code, uint32_t, const char*, size_t>);
SLOT(ltc_host_api, status_code, ltc_code (*)(const ltc_status*));
SLOT(ltc_host_api, status_destroy, End<ltc_status>);
SLOT(ltc_host_api, log, void (*)(void*, int32_t, const char*, size_t));
SLOT(ltc_host_api, log_enabled, bool (*)(void*, int32_t));
SLOT(ltc_host_api, cache_find, bool (*)(void*, const ltc_string*, const ltc_sink*));
SLOT(ltc_host_api, cache_insert, void (*)(void*, const ltc_string*, const ltc_string*, const ltc_string*));
SLOT(ltc_host_api, is_awaited, bool (*)(void*));
SLOT(ltc_sink, write, bool (*)(void*, const void*, size_t));
static_assert(std::is_same<ltc_plugin_entry_fn, bool(ltc_entry_args*)>::value, "entry");

}  // namespace

int main() { return 0; }
