// The clauses of ltc/plugin.h that the validation layer checks, one row each. Ids are stable: tests, logs and counters name them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

namespace ltc::host::validation {

enum class Side : uint8_t { kHost, kPlugin };  // who broke it

struct Clause {
  std::string_view id;
  Side side;
  std::string_view sentence;
};

inline constexpr Clause kClauses[] = {
    // every call
    {"handle.alive", Side::kHost, "A handle is used only between the call that gave it and its destroy, close or donation."},
    {"handle.same_device", Side::kHost, "An object is used with the device that it came from."},
    {"handle.destroy_alone", Side::kHost, "An object's destroy or close comes alone: no other call uses the object meanwhile."},
    {"handle.not_null", Side::kPlugin, "A function that succeeds writes its handle, which is not null."},
    {"handle.once", Side::kPlugin, "A handle is handed out once, until its destroy or donation."},
    {"args.struct_size", Side::kHost, "struct_size is LTC_SIZE_TO of the last field of a version that was agreed on."},
    {"args.extensions", Side::kHost, "A sender sends only kinds that the other side lists, in at most that version."},
    {"args.not_null", Side::kHost,
     "A pointer is non-null unless its comment says otherwise; an array may be NULL where its count is 0."},
    {"args.string", Side::kHost, "A string is UTF-8, with a NUL behind its `size` bytes."},
    {"out.preset", Side::kHost, "The host presets out parameters: NULL, false or zero; memory statistics to UINT64_MAX."},
    {"out.unchanged", Side::kPlugin, "After an error every out parameter is unchanged."},
    {"out.within_size", Side::kPlugin, "A side that writes a struct touches only what lies inside both sides' sizes."},
    {"out.string", Side::kPlugin, "A string is UTF-8, with a NUL behind its `size` bytes."},
    {"out.string_lives", Side::kPlugin, "Strings of describe and device_open live until the instance or the device is closed."},
    {"slot.no_exception", Side::kPlugin, "No C++ exception leaves a function."},
    {"thread.float_control", Side::kPlugin, "A call leaves how the thread computes floating-point numbers as it was."},
    {"plugin.one_call_at_a_time", Side::kHost, "With LTC_PLUGIN_ONE_CALL_AT_A_TIME the host enters one slot at a time."},
    {"device.one_submit_at_a_time", Side::kHost, "The host calls one transfer or execute of a device at a time."},
    {"device.lost_is_sticky", Side::kPlugin, "DEVICE_LOST is sticky: every later submit fails with it."},
    // Statuses.
    {"status.owned", Side::kPlugin, "A status is made with status_create, and given back or destroyed once."},
    {"status.ended", Side::kPlugin, "Each status that was made is returned or destroyed before the instance ends."},
    {"status.node", Side::kPlugin, "The node of a status is an index into the graph's nodes, or LTC_NONE."},
    {"status.code", Side::kPlugin, "A function answers INTERNAL, DEVICE_LOST, a refusal, or a code that its comment lists."},
    // The entry, and what describes.
    {"entry.agreed", Side::kPlugin, "The agreed version is the newest in both ranges."},
    {"entry.extensions", Side::kPlugin, "A list of extensions ends, and each head has its size and a version from 1."},
    {"describe.no_device", Side::kPlugin, "why_no_device is given for device_count 0, else it is empty."},
    {"describe.flags", Side::kPlugin, "Neither side sends a flag that is newer than the agreed version."},
    {"describe.options", Side::kPlugin, "Each option has its size, a name, and a default that are strings."},
    {"device_open.ordinal", Side::kHost, "The ordinal is below ltc_plugin_info::device_count."},
    {"device_open.dtypes", Side::kPlugin, "A device lists at least one dtype."},
    {"device_open.flags", Side::kPlugin, "Neither side sends a flag that is newer than the agreed version."},
    {"device_close.objects_ended", Side::kHost, "Every object that came from a device is destroyed before device_close."},
    {"plugin_close.devices_ended", Side::kHost, "An instance ends after its last device was closed."},
    {"group_create.rank", Side::kHost, "A group has 2 ranks or more, and the rank is below their number."},
    // Memory.
    {"type.dtype", Side::kHost, "A dtype is one of the agreed version or a vendor's."},
    {"type.sizes", Side::kHost, "Sizes are not NULL, for rank 0 neither, and none is negative."},
    {"buffer_create.dtype", Side::kHost, "The host asks for no buffer of a dtype that the device does not list."},
    {"transfer.direction", Side::kHost, "A direction is LTC_TO_DEVICE, LTC_FROM_DEVICE or LTC_ON_DEVICE; there are no flags."},
    {"transfer.range", Side::kHost, "A transfer stays within its buffers."},
    {"transfer.memory", Side::kHost, "Host memory is given exactly on the side that the direction names."},
    {"transfer.source", Side::kHost, "A source is given for LTC_ON_DEVICE only, and is another buffer."},
    {"transfer.peer", Side::kHost, "A source is of another device of the instance only where both have LTC_DEVICE_PEER_COPY."},
    // Graphs.
    {"graph.values", Side::kHost, "Value ids are below value_count, and each value is made once, by a param or a node."},
    {"graph.order", Side::kHost, "Nodes are in order: operands before users."},
    {"graph.scalars", Side::kHost, "A scalar param has rank 0 and is F64, I64, BOOL or C128."},
    {"graph.param_flags", Side::kHost, "Param flags are LTC_PARAM_SCALAR or none."},
    {"graph.aliases", Side::kHost, "alias_output names an output of the same dtype and bytes, and no two params name the same."},
    {"graph.node_name", Side::kHost, "A node's name is always given."},
    {"graph.attrs", Side::kHost, "An attribute has a name, a known kind, and as many values as its kind says."},
    {"graph.outputs", Side::kHost, "A graph's outputs are distinct values, each made by a node."},
    {"graph.symbols", Side::kHost,
     "A symbolic number names a number of the graph and a symbol below symbol_count; its scale is not 0."},
    {"claims.deterministic", Side::kPlugin, "Claims are deterministic for the life of the device."},
    // Runs and events.
    {"execute.input_count", Side::kHost, "Inputs are the params without LTC_PARAM_SCALAR."},
    {"execute.input_type", Side::kHost, "Inputs are of the types in the graph."},
    {"execute.donate", Side::kHost, "An input is donated, by a 1, only where its param has an alias_output."},
    {"execute.donated_once", Side::kHost, "A donated input is no other input of the same run."},
    {"execute.scalar_count", Side::kHost, "Scalars are the params with LTC_PARAM_SCALAR."},
    {"execute.scalar_bool", Side::kHost, "A BOOL scalar is 0 or 1."},
    {"execute.output_count", Side::kHost, "output_count is that of the graph."},
    {"execute.symbols", Side::kHost, "ltc_symbol_values are given exactly where the executable comes from a graph with symbols."},
    {"execute.outputs_not_null", Side::kPlugin, "A run that succeeds gives output_count buffers."},
    {"execute.outputs_once", Side::kPlugin,
     "Each output is a buffer of its own: no other output and no input but a donated one."},
    {"submit.no_event", Side::kPlugin, "A plugin without event slots leaves every event NULL."},
    {"event_wait.forever", Side::kPlugin, "A wait without a limit that succeeds writes that the work is over."},
    {"event_wait.stays_over", Side::kPlugin, "Work that is over stays over."},
    {"event_wait.same_answer", Side::kPlugin,
     "With *finished true a wait returns the error of the work, however often it is asked."},
    {"event_wait.in_order", Side::kPlugin, "An event is over only when all that was submitted to its device before it is."},
    {"event_destroy.no_wait", Side::kHost, "An event is not ended while a wait on it runs."},
    {"event_good_outputs.after_error", Side::kHost, "event_good_outputs is called after event_wait gave the error of that run."},
    {"event_good_outputs.count", Side::kHost, "output_count is that of the run."},
    {"event_good_outputs.values", Side::kPlugin, "1 says that an output is good, 0 that it is not."},
    {"executable_load.alignment", Side::kHost, "The bytes lie at a multiple of 64."},
    // the host's functions
    {"sink.during_call", Side::kPlugin, "A sink is called only during the call that was given it, by its thread."},
    {"sink.gives_up", Side::kPlugin, "A sink that answered false gets no more, and the function then returns NULL."},
    {"host_api.host", Side::kPlugin, "The first argument of the host's functions is ltc_host_api::host."},
    {"host_api.not_after_close", Side::kPlugin, "No call to ltc_host_api after plugin_close returns."},
    {"host_api.no_call_back", Side::kHost, "Functions of ltc_host_api never call back into the plugin."},
    {"status_create.code", Side::kPlugin, "A code is one of the agreed version or a vendor's."},
    {"status_create.message", Side::kPlugin, "A message is UTF-8, and NULL only where its size is 0."},
    {"log.level", Side::kPlugin, "A level is one of the agreed version."},
    {"log.message", Side::kPlugin, "A message is UTF-8, and NULL only where its size is 0."},
    {"cache.strings", Side::kPlugin,
     "Key, line and value are given, each NULL only where its size is 0; the line for people is UTF-8."},
    {"cache.sink", Side::kPlugin, "A sink has a write."},
};

inline constexpr size_t kClauseCount = std::size(kClauses);

// The row of an id, found by the compiler: an id without a row does not compile.
class ClauseId {
 public:
  consteval ClauseId(const char* id) : index_(find(id)) {}
  constexpr size_t index() const { return index_; }
  constexpr const Clause& clause() const { return kClauses[index_]; }

 private:
  static consteval size_t find(std::string_view id) {
    size_t i = 0;
    while (kClauses[i].id != id) ++i;  // beyond the table is no constant
    return i;
  }
  size_t index_;
};

}  // namespace ltc::host::validation
