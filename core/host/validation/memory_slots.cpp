// The slots that every plugin has, and memory_stats.
#include "core/base/utf8.h"
#include "core/host/validation/answers.h"
#include "core/host/validation/graph.h"
#include "core/host/validation/slots.h"
#include "core/host/validation/submit.h"

namespace ltc::host::validation {
namespace {

// ---- describe and open

using Strings = std::vector<std::pair<const char*, std::string>>;

void check_string(Call& call, Strings& strings, const ltc_string& text, const char* what) {
  if (!call.require(is_string(text), "out.string", what) || !text.data) return;
  const std::pair<const char*, std::string> kept(text.data, std::string(text.data, text.size));
  if (std::ranges::find(strings, kept) == strings.end()) strings.push_back(kept);
}

// Before they may go: they must be what they were.
void check_strings(Call& call, const Strings& strings) {
  for (const auto& [data, text] : strings)
    call.require(std::string_view(data, text.size()) == text, "out.string_lives", "it was '", valid_utf8(text), "'");
}

void check_info(Call& call, const ltc_plugin_info& info) {
  Instance& instance = call.instance();
  std::lock_guard guard(instance.lock);
  check_string(call, instance.strings, info.name, "name");
  check_string(call, instance.strings, info.version, "version");
  check_string(call, instance.strings, info.build_id, "build_id");
  check_string(call, instance.strings, info.why_no_device, "why_no_device");
  check_string(call, instance.strings, info.licence, "licence");
  call.require((info.device_count == 0) == (info.why_no_device.size > 0), "describe.no_device", info.device_count, " devices");
  call.require((info.flags & 0xffff & ~LTC_PLUGIN_ONE_CALL_AT_A_TIME) == 0, "describe.flags", "flags ", info.flags);
  for (size_t i = 0; i < info.option_count; ++i) {
    const ltc_option_info* option = info.options ? info.options[i] : nullptr;
    const bool is_good = option && option->struct_size >= LTC_SIZE_TO(ltc_option_info, about) && option->name.size > 0;
    if (!call.require(is_good, "describe.options", "option ", i)) return;
    for (const ltc_string* text : {&option->name, &option->default_value, &option->about})
      check_string(call, instance.strings, *text, "an option");
  }
}

ltc_status* LTC_CALL describe(ltc_plugin* handle, ltc_plugin_info* out) {
  Call call("describe");
  const Use<Instance> instance = call.use<Instance>(handle);
  if (!call.is_possible()) return call.refusal();
  Written<ltc_plugin_info> info(call, out, LTC_SIZE_TO(ltc_plugin_info, options));
  if (!call.is_possible()) return call.refusal();
  ltc_status* const status = call.ask(0, 0, [&] { return instance->plugin_api.describe(instance->plugin, info.get()); });
  info.give(status);
  if (status) return status;
  instance->device_count = info.get()->device_count;
  instance->one_call_at_a_time = (info.get()->flags & LTC_PLUGIN_ONE_CALL_AT_A_TIME) != 0;
  check_info(call, *info.get());
  return nullptr;
}

ltc_status* LTC_CALL device_open(ltc_plugin* handle, const ltc_device_args* args, ltc_device_info* out, ltc_device** device) {
  Call call("device_open");
  const Use<Instance> instance = call.use<Instance>(handle);
  if (!call.is_possible() || !call.sized(args, LTC_SIZE_TO(ltc_device_args, ordinal)) || !call.not_null(device, "device"))
    return call.refusal();
  call.sends(args->ext);
  const uint32_t count = instance->device_count;
  call.require(count == Instance::kUnknown || args->ordinal < count, "device_open.ordinal", args->ordinal, " of ", count);
  Written<ltc_device_info> info(call, out, LTC_SIZE_TO(ltc_device_info, flags));
  if (!call.is_possible()) return call.refusal();
  auto* opened = Call::unwritten<ltc_device>();
  ltc_status* const status = call.ask(code_bits(LTC_NOT_FOUND, LTC_RESOURCE_EXHAUSTED), 0, [&] {
    return instance->plugin_api.device_open(instance->plugin, args, info.get(), &opened);
  });
  info.give(status);
  return call.give<Device>(status, opened, device, [&] {
    auto* made = new Device(Kind::kDevice, *instance.get(), nullptr, opened);
    const ltc_device_info& said = *info.get();
    made->dtypes = said.dtypes;
    made->flags = said.flags;
    check_string(call, made->strings, said.name, "name");
    check_string(call, made->strings, said.fingerprint, "fingerprint");
    call.require(said.dtypes != 0, "device_open.dtypes");
    call.require((said.flags & 0xffff & ~uint64_t{LTC_DEVICE_PEER_COPY | LTC_DEVICE_QUICK_COMPILE}) == 0, "device_open.flags",
                 "flags ", said.flags);
    return made;
  });
}

void LTC_CALL device_close(ltc_device* handle) {
  Call call("device_close");
  Device* const device = call.end<Device>(handle);
  if (!device) return;
  Instance& instance = call.instance();
  for (const auto& [kind, name] :
       {std::pair(Kind::kBuffer, "buffers"), std::pair(Kind::kProgram, "programs"), std::pair(Kind::kExecutable, "executables"),
        std::pair(Kind::kEvent, "events"), std::pair(Kind::kGroup, "groups")}) {
    const size_t count = instance.count(kind, device);
    call.require(count == 0, "device_close.objects_ended", count, " ", name);
  }
  check_strings(call, device->strings);
  instance.let_go(device);
  call.tell([&] { instance.plugin_api.device_close(static_cast<ltc_device*>(device->real)); });
  instance.forget(device);
}

void LTC_CALL plugin_close(ltc_plugin* handle) {
  Call call("plugin_close");
  Instance* const instance = call.end<Instance>(handle);
  if (!instance) return;
  const size_t devices = instance->count(Kind::kDevice, nullptr);
  call.require(devices == 0, "plugin_close.devices_ended", devices, " devices");
  check_strings(call, instance->strings);
  call.tell([&] { instance->plugin_api.plugin_close(instance->plugin); });
  instance->closed = true;
  const size_t statuses = Statuses::instance().count(*instance);
  call.require(statuses == 0, "status.ended", statuses, " statuses");
}

ltc_status* LTC_CALL memory_stats(ltc_device* handle, ltc_memory_stats* out) {
  Call call("memory_stats");
  const Use<Device> device = call.use<Device>(handle);
  if (!call.is_possible()) return call.refusal();
  Written<ltc_memory_stats> stats(call, out, LTC_SIZE_TO(ltc_memory_stats, largest_free_bytes));
  if (!call.is_possible()) return call.refusal();
  ltc_status* const status = call.ask(0, 0, [&] { return call.instance().plugin_api.memory_stats(device.real(), stats.get()); });
  stats.give(status);
  return status;
}

// ---- buffers

ltc_status* LTC_CALL buffer_create(ltc_device* handle, const ltc_buffer_args* args, ltc_buffer** buffer) {
  Call call("buffer_create");
  const Use<Device> device = call.use<Device>(handle);
  if (!call.is_possible() || !call.sized(args, LTC_SIZE_TO(ltc_buffer_args, type)) || !call.not_null(buffer, "buffer"))
    return call.refusal();
  call.sends(args->ext);
  if (!check_type(call, args->type)) return call.refusal();
  const ltc_dtype dtype = args->type->dtype;
  call.require(dtype >= 64 || (device->dtypes >> dtype & 1), "buffer_create.dtype", "dtype ", dtype);
  auto* made = Call::unwritten<ltc_buffer>();
  ltc_status* const status = call.ask(code_bits(LTC_RESOURCE_EXHAUSTED), 0,
                                      [&] { return call.instance().plugin_api.buffer_create(device.real(), args, &made); });
  return call.give<Buffer>(status, made, buffer, [&] {
    auto* object = new Buffer(Kind::kBuffer, call.instance(), device.get(), made);
    object->type = Type::of(*args->type);
    return object;
  });
}

void LTC_CALL buffer_destroy(ltc_buffer* handle) {
  end_object<Buffer, &ltc_plugin_api::buffer_destroy>("buffer_destroy", handle);
}

// ---- transfers

void check_range(Call& call, const Buffer& buffer, uint64_t offset, uint64_t size) {
  const auto bytes = buffer.type ? buffer.type->bytes() : std::nullopt;
  const bool is_within = !bytes || (offset <= *bytes && size <= *bytes - offset);
  call.require(is_within, "transfer.range", size, " bytes from ", offset, " of ", bytes.value_or(0));
}

void check_host_memory(Call& call, const ltc_transfer_args& args) {
  const bool to_device = args.direction == LTC_TO_DEVICE, from_device = args.direction == LTC_FROM_DEVICE;
  const bool is_good = (args.from ? to_device : !to_device || args.size_bytes == 0) &&
                       (args.to ? from_device : !from_device || args.size_bytes == 0);
  call.require(is_good, "transfer.memory", "direction ", args.direction, args.from ? ", from" : "", args.to ? ", to" : "");
}

void check_source(Call& call, const Device& device, const Buffer& source, const ltc_transfer_args& args) {
  check_range(call, source, args.source_offset_bytes, args.size_bytes);
  if (source.device == &device) return;
  const bool are_peers = &source.instance == &device.instance && (source.device->flags & device.flags & LTC_DEVICE_PEER_COPY);
  call.require(are_peers, "transfer.peer");
}

ltc_status* LTC_CALL transfer(ltc_device* handle, const ltc_transfer_args* args, ltc_event** done) {
  Call call("transfer");
  const Use<Device> device = call.use<Device>(handle);
  if (!call.is_possible() || !call.sized(args, LTC_SIZE_TO(ltc_transfer_args, source_offset_bytes))) return call.refusal();
  call.sends(args->ext);
  const bool is_known = args->direction >= LTC_TO_DEVICE && args->direction <= LTC_ON_DEVICE;
  call.require(is_known && args->flags == 0, "transfer.direction", args->direction, ", flags ", args->flags);
  const Use<Buffer> buffer = call.use_of<Buffer>(device, args->buffer);
  if (!buffer) return call.refusal();
  check_range(call, *buffer.get(), args->offset_bytes, args->size_bytes);
  check_host_memory(call, *args);
  const bool has_source = args->source != nullptr;
  if (!call.require(has_source == (args->direction == LTC_ON_DEVICE) && args->source != args->buffer, "transfer.source"))
    return call.refusal();
  std::optional<Use<Buffer>> source;
  if (has_source) source.emplace(call.use<Buffer>(args->source));
  if (!call.is_possible()) return call.refusal();
  if (source) check_source(call, *device.get(), *source->get(), *args);
  ltc_transfer_args copy = *args;
  copy.struct_size = std::min(args->struct_size, sizeof copy);
  copy.buffer = buffer.real();
  if (source) copy.source = source->real();
  Submit submit(call, device, done);
  if (!call.is_possible()) return call.refusal();
  ltc_status* const status =
      call.ask(kRunCodes, 0, [&] { return call.instance().plugin_api.transfer(device.real(), &copy, submit.event()); });
  return submit.give(status, std::nullopt, nullptr);
}

}  // namespace

void set_memory_slots(Instance& instance) {
  const ltc_plugin_api& has = instance.plugin_api;
  ltc_plugin_api& table = instance.table;
  if (has.describe) table.describe = describe;
  if (has.device_open) table.device_open = device_open;
  if (has.device_close) table.device_close = device_close;
  if (has.plugin_close) table.plugin_close = plugin_close;
  if (has.memory_stats) table.memory_stats = memory_stats;
  if (has.buffer_create) table.buffer_create = buffer_create;
  if (has.buffer_destroy) table.buffer_destroy = buffer_destroy;
  if (has.transfer) table.transfer = transfer;
}

}  // namespace ltc::host::validation
