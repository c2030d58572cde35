// Memory and copies.
#include "pjrt/objects.h"

namespace ltc::pjrt {
namespace {

Ticket write(ltc_device* device, const ltc_transfer_args& args) {
  PJRT_Event* read = nullptr;
  args.buffer->data = upload(*device, args.buffer->type, args.from, &read);
  return device->queue->submit(device->library(), read);
}

Ticket read(ltc_device* device, const ltc_transfer_args& args) {
  return device->queue->submit(device->library(), args.buffer->data ? download(*args.buffer, args.to) : nullptr);
}

Ticket copy(ltc_device* device, const ltc_transfer_args& args) {
  if (args.source->type != args.buffer->type) throw Failure(LTC_UNSUPPORTED, "[transfer] the source is of another type");
  args.buffer->data = args.source->data;
  return device->queue->submit(device->library(), nullptr);
}

}  // namespace

std::unique_ptr<ltc_buffer> make_buffer(ltc_device* device, Type type, BufferRef data) {
  if (!element(type.dtype).text) throw Failure(LTC_UNSUPPORTED, "there are no buffers of dtype " + std::to_string(type.dtype));
  uint64_t bytes = static_cast<uint64_t>(element(type.dtype).bits) / 8;
  bool overflows = false;
  for (const int64_t size : type.sizes) {
    if (size < 0) throw Failure(LTC_INVALID_ARGUMENT, "a size is " + std::to_string(size));
    overflows |= __builtin_mul_overflow(bytes, static_cast<uint64_t>(size), &bytes);
  }
  const uint64_t limit = device->facts.memory_bytes ? device->facts.memory_bytes : UINT64_MAX >> 17;
  if (overflows || bytes > limit)
    throw Failure(LTC_RESOURCE_EXHAUSTED, "a buffer larger than the device's memory: " + type.text());
  return std::make_unique<ltc_buffer>(ltc_buffer{device, std::move(type), bytes, std::move(data)});
}

BufferRef own(const ltc_device& device, PJRT_Buffer* buffer) {
  return BufferRef(buffer, [&library = device.library()](PJRT_Buffer* ended) {
    auto args = PJRT_ARGS(Buffer_Destroy);
    args.buffer = ended;
    PJRT_TRY(library, Buffer_Destroy, args);
  });
}

BufferRef upload(const ltc_device& device, const Type& type, const void* data, PJRT_Event** read) {
  auto args = PJRT_ARGS(Client_BufferFromHostBuffer);
  args.client = device.client.client;
  args.data = data;
  args.type = element(type.dtype).buffer;
  args.dims = type.sizes.data();
  args.num_dims = type.sizes.size();
  args.host_buffer_semantics =
      read ? PJRT_HostBufferSemantics_kImmutableUntilTransferCompletes : PJRT_HostBufferSemantics_kImmutableOnlyDuringCall;
  args.device = device.facts.device;
  PJRT_CALL(device.library(), Client_BufferFromHostBuffer, args);
  if (read) {
    *read = args.done_with_host_buffer;
  } else if (args.done_with_host_buffer) {
    auto destroy = PJRT_ARGS(Event_Destroy);
    destroy.event = args.done_with_host_buffer;
    PJRT_TRY(device.library(), Event_Destroy, destroy);
  }
  return own(device, args.buffer);
}

PJRT_Event* download(const ltc_buffer& buffer, void* data) {
  Sizes order;
  for (int64_t dim = buffer.type.rank(); dim-- > 0;) order.push_back(dim);
  auto row_major = PJRT_STRUCT(Buffer_MemoryLayout);
  row_major.type = PJRT_Buffer_MemoryLayout_Type_Tiled;
  row_major.tiled = PJRT_STRUCT(Buffer_MemoryLayout_Tiled);
  row_major.tiled.minor_to_major = order.data();
  row_major.tiled.minor_to_major_size = order.size();
  auto args = PJRT_ARGS(Buffer_ToHostBuffer);
  args.src = buffer.data.get();
  args.host_layout = &row_major;
  args.dst = data;
  args.dst_size = buffer.bytes;
  PJRT_CALL(buffer.device->library(), Buffer_ToHostBuffer, args);
  return args.event;
}

void transfer(ltc_device* device, const ltc_transfer_args& args, ltc_event** done) {
  const bool on_device = args.direction == LTC_ON_DEVICE, is_read = args.direction == LTC_FROM_DEVICE;
  plugin::check_transfer(args);
  plugin::check_range(is_read ? "source" : "target", args.offset_bytes, args.size_bytes, args.buffer->bytes);
  if (on_device && args.source->device != device) throw Failure(LTC_UNSUPPORTED, "[transfer] the source is on another device");
  if (on_device) plugin::check_range("source", args.source_offset_bytes, args.size_bytes, args.source->bytes);
  if (args.size_bytes == 0 && args.buffer->bytes > 0) return;
  if (args.size_bytes < args.buffer->bytes) throw Failure(LTC_UNSUPPORTED, "[transfer] PJRT copies whole buffers only");
  const Ticket ticket = on_device ? copy(device, args) : is_read ? read(device, args) : write(device, args);
  *done = new ltc_event{device, ticket};
}

}  // namespace ltc::pjrt
