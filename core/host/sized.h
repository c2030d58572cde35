// Structs of the C ABI as the host fills them: zero-filled, with the size that this header knows.
#pragma once

#include "ltc/collective.h"
#include "ltc/plugin.h"
#include "ltc/precision.h"
#include "ltc/profile.h"
#include "ltc/symbolic.h"

namespace ltc::host {

template <typename Struct>
inline constexpr size_t kAbiSize = 0;  // specialised for every struct that leads with struct_size

#define LTC_HOST_SIZED(type, last) \
  template <>                      \
  inline constexpr size_t kAbiSize<type> = LTC_SIZE_TO(type, last)
LTC_HOST_SIZED(ltc_option, value);
LTC_HOST_SIZED(ltc_option_info, about);
LTC_HOST_SIZED(ltc_type, sizes);
LTC_HOST_SIZED(ltc_attr, value);
LTC_HOST_SIZED(ltc_node, location);
LTC_HOST_SIZED(ltc_param, alias_output);
LTC_HOST_SIZED(ltc_graph, outputs);
LTC_HOST_SIZED(ltc_host_api, is_awaited);
LTC_HOST_SIZED(ltc_plugin_info, options);
LTC_HOST_SIZED(ltc_device_args, ordinal);
LTC_HOST_SIZED(ltc_device_info, flags);
LTC_HOST_SIZED(ltc_buffer_args, type);
LTC_HOST_SIZED(ltc_transfer_args, source_offset_bytes);
LTC_HOST_SIZED(ltc_claims_args, graph);
LTC_HOST_SIZED(ltc_lower_args, graph);
LTC_HOST_SIZED(ltc_compile_args, effort);
LTC_HOST_SIZED(ltc_execute_args, run_id);
LTC_HOST_SIZED(ltc_load_args, size);
LTC_HOST_SIZED(ltc_memory_stats, largest_free_bytes);
LTC_HOST_SIZED(ltc_plugin_api, event_good_outputs);
LTC_HOST_SIZED(ltc_entry_args, options);
LTC_HOST_SIZED(ltc_precision, allowed);
LTC_HOST_SIZED(ltc_symbolic_sizes, numbers);
LTC_HOST_SIZED(ltc_symbol_values, values);
LTC_HOST_SIZED(ltc_run_profile, scratch);
LTC_HOST_SIZED(ltc_store, erase);
LTC_HOST_SIZED(ltc_group_args, store);
#undef LTC_HOST_SIZED

// auto args = sized<ltc_execute_args>();
template <typename Struct>
constexpr Struct sized() {
  static_assert(kAbiSize<Struct> != 0, "not a struct with struct_size");
  static_assert(sizeof(Struct) - kAbiSize<Struct> < alignof(Struct), "its row above does not name its last field");
  Struct result{};
  result.struct_size = kAbiSize<Struct>;
  return result;
}

// The same of an extension, whose head it fills.
template <typename Struct>
constexpr Struct sized_extension(uint32_t kind, uint32_t version) {
  Struct result{};
  static_assert(kAbiSize<Struct> != 0 && sizeof(Struct) - kAbiSize<Struct> < alignof(Struct));
  result.head = {kAbiSize<Struct>, kind, version, nullptr};
  return result;
}

}  // namespace ltc::host
