// Memory and copies.
#include <tuple>

#include "pjrt/objects.h"

namespace ltc::pjrt {

std::unique_ptr<ltc_buffer> make_buffer(ltc_device* device, Type type, BufferRef data) {
  const ltc_type same{LTC_SIZE_TO(ltc_type, sizes), type.dtype, static_cast<uint32_t>(type.rank()), type.sizes.data()};
  const uint64_t bytes = plugin::bytes_of(same), memory = device->facts.memory_bytes;
  if (memory ? bytes > memory : bytes > UINT64_MAX >> 17)
    throw Failure(LTC_RESOURCE_EXHAUSTED, "a buffer larger than the device's memory: " + type.text());
  return std::make_unique<ltc_buffer>(ltc_buffer{device, std::move(type), bytes, std::move(data)});
}

std::pair<BufferRef, PJRT_Event*> upload(const ltc_device& device, const Type& type, const void* data, bool is_read_at_once) {
  const auto made =
      PJRT_CALL(device.library(), Client_BufferFromHostBuffer, .client = device.client.client.get(), .data = data,
                .type = element(type.dtype).buffer, .dims = type.sizes.data(), .num_dims = type.sizes.size(),
                .host_buffer_semantics = is_read_at_once ? PJRT_HostBufferSemantics_kImmutableOnlyDuringCall
                                                         : PJRT_HostBufferSemantics_kImmutableUntilTransferCompletes,
                .device = device.facts.device);
  return {PJRT_OWN(device.library(), Buffer, buffer, made.buffer), made.done_with_host_buffer};
}

PJRT_Event* download(const ltc_buffer& buffer, void* data) {
  Sizes order;
  for (int64_t dim = buffer.type.rank(); dim-- > 0;) order.push_back(dim);
  const auto tiled = PJRT_STRUCT(Buffer_MemoryLayout_Tiled, .minor_to_major = order.data(), .minor_to_major_size = order.size());
  auto row_major = PJRT_STRUCT(Buffer_MemoryLayout, .tiled = tiled, .type = PJRT_Buffer_MemoryLayout_Type_Tiled);
  return PJRT_CALL(buffer.device->library(), Buffer_ToHostBuffer, .src = buffer.data.get(), .host_layout = &row_major,
                   .dst = data, .dst_size = buffer.bytes)
      .event;
}

void transfer(ltc_device* device, const ltc_transfer_args& args, ltc_event*& done) {
  const bool on_device = args.direction == LTC_ON_DEVICE, is_read = args.direction == LTC_FROM_DEVICE;
  ltc_buffer& buffer = *args.buffer;
  plugin::check_transfer(args);
  plugin::check_range(is_read ? "source" : "target", args.offset_bytes, args.size_bytes, buffer.bytes);
  if (on_device && args.source->device != device) throw Failure(LTC_UNSUPPORTED, "[transfer] the source is on another device");
  if (on_device) plugin::check_range("source", args.source_offset_bytes, args.size_bytes, args.source->bytes);
  if (args.size_bytes == 0 && buffer.bytes > 0) return;
  if (args.size_bytes < buffer.bytes) throw Failure(LTC_UNSUPPORTED, "[transfer] PJRT copies whole buffers only");
  if (on_device && args.source->type != buffer.type) throw Failure(LTC_UNSUPPORTED, "[transfer] the source is of another type");
  PJRT_Event* event = nullptr;
  if (on_device) {
    buffer.data = args.source->data;
    if (buffer.data) event = PJRT_CALL(device->library(), Buffer_ReadyEvent, .buffer = buffer.data.get()).event;
  } else if (!is_read) {
    std::tie(buffer.data, event) = upload(*device, buffer.type, args.from, false);
  } else if (buffer.data) {
    event = download(buffer, args.to);
  }
  if (event) done = new ltc_event{device, device->queue->submit(device->library(), event)};
}

}  // namespace ltc::pjrt
