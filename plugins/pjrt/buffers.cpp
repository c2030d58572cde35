// Memory and copies.
#include <algorithm>
#include <cstring>

#include "pjrt/objects.h"

namespace ltc::pjrt {
namespace {

PJRT_Buffer_Type buffer_type(ltc_dtype dtype) {
  switch (dtype) {
    case LTC_BOOL: return PJRT_Buffer_Type_PRED;
    case LTC_U8: return PJRT_Buffer_Type_U8;
    case LTC_I8: return PJRT_Buffer_Type_S8;
    case LTC_I16: return PJRT_Buffer_Type_S16;
    case LTC_I32: return PJRT_Buffer_Type_S32;
    case LTC_I64: return PJRT_Buffer_Type_S64;
    case LTC_F16: return PJRT_Buffer_Type_F16;
    case LTC_BF16: return PJRT_Buffer_Type_BF16;
    case LTC_F32: return PJRT_Buffer_Type_F32;
    case LTC_F64: return PJRT_Buffer_Type_F64;
    case LTC_C64: return PJRT_Buffer_Type_C64;
    case LTC_C128: return PJRT_Buffer_Type_C128;
    case LTC_U16: return PJRT_Buffer_Type_U16;
    case LTC_U32: return PJRT_Buffer_Type_U32;
    case LTC_U64: return PJRT_Buffer_Type_U64;
    case LTC_F8_E4M3FN: return PJRT_Buffer_Type_F8E4M3FN;
    case LTC_F8_E5M2: return PJRT_Buffer_Type_F8E5M2;
    case LTC_F8_E4M3FNUZ: return PJRT_Buffer_Type_F8E4M3FNUZ;
    case LTC_F8_E5M2FNUZ: return PJRT_Buffer_Type_F8E5M2FNUZ;
    case LTC_F8_E8M0FNU: return PJRT_Buffer_Type_F8E8M0FNU;
    default: return PJRT_Buffer_Type_INVALID;
  }
}

struct Uploaded {
  BufferRef buffer;
  PJRT_Event* read;  // over when the host memory was read
};

Uploaded upload_by(const ltc_device& device, const Type& type, const void* data, PJRT_HostBufferSemantics semantics) {
  auto args = PJRT_ARGS(Client_BufferFromHostBuffer);
  args.client = device.client.client;
  args.data = data;
  args.type = buffer_type(type.dtype);
  args.dims = type.sizes.data();
  args.num_dims = type.sizes.size();
  args.host_buffer_semantics = semantics;
  args.device = device.facts.device;
  PJRT_CALL(device.library(), Client_BufferFromHostBuffer, args);
  return {own(device, args.buffer), args.done_with_host_buffer};
}

// All bytes of a buffer, and room for them where nothing was written.
std::vector<char> read_all(const ltc_buffer& buffer) {
  std::vector<char> bytes(buffer.bytes + 1);
  if (buffer.data) await(buffer.device->library(), download(*buffer.device, buffer, bytes.data(), buffer.bytes));
  return bytes;
}

void check_ranges(ltc_device* device, const ltc_transfer_args& args) {
  abi::check_transfer(args);
  abi::check_range(args.direction == LTC_FROM_DEVICE ? "source" : "target", args.offset_bytes, args.size_bytes,
                   args.buffer->bytes);
  if (args.direction != LTC_ON_DEVICE) return;
  if (args.source->device != device) throw Failure(LTC_UNSUPPORTED, "[transfer] the source is on another device");
  abi::check_range("source", args.source_offset_bytes, args.size_bytes, args.source->bytes);
}

// A part of a buffer is replaced by way of the host.
void patch(ltc_buffer& buffer, uint64_t offset, const void* from, uint64_t size) {
  std::vector<char> bytes = read_all(buffer);
  std::memcpy(bytes.data() + offset, from, size);
  buffer.data = upload(*buffer.device, buffer.type, bytes.data());
}

Ticket write(ltc_device* device, const ltc_transfer_args& args) {
  ltc_buffer& buffer = *args.buffer;
  if (args.size_bytes < buffer.bytes) {
    patch(buffer, args.offset_bytes, args.from, args.size_bytes);
    return device->queue->mark();
  }
  const auto semantics = args.flags & LTC_HOST_DATA_UNTIL_RETURN ? PJRT_HostBufferSemantics_kImmutableOnlyDuringCall
                                                                 : PJRT_HostBufferSemantics_kImmutableUntilTransferCompletes;
  Uploaded uploaded = upload_by(*device, buffer.type, args.from, semantics);
  buffer.data = std::move(uploaded.buffer);
  return device->queue->submit(device->library(), uploaded.read);
}

Ticket read(ltc_device* device, const ltc_transfer_args& args) {
  const ltc_buffer& buffer = *args.buffer;
  if (args.size_bytes < buffer.bytes) {
    std::memcpy(args.to, read_all(buffer).data() + args.offset_bytes, args.size_bytes);
    return device->queue->mark();
  }
  if (!buffer.data) return device->queue->mark();
  const Ticket ticket = device->queue->submit(device->library(), download(*device, buffer, args.to, buffer.bytes));
  if (args.flags & LTC_HOST_DATA_UNTIL_RETURN) device->queue->wait(ticket, LTC_FOREVER);
  return ticket;
}

Ticket copy(ltc_device* device, const ltc_transfer_args& args) {
  ltc_buffer &to = *args.buffer, &from = *args.source;
  if (args.size_bytes == to.bytes && to.type == from.type) {
    to.data = contents(from);
  } else {
    patch(to, args.offset_bytes, read_all(from).data() + args.source_offset_bytes, args.size_bytes);
  }
  return device->queue->mark();
}

}  // namespace

uint64_t bytes_of(const ltc_device& device, const Type& type) {
  if (buffer_type(type.dtype) == PJRT_Buffer_Type_INVALID) {
    throw Failure(LTC_UNSUPPORTED, "there are no buffers of dtype " + std::to_string(type.dtype));
  }
  uint64_t bytes = static_cast<uint64_t>(bits_of(type.dtype)) / 8;
  bool overflows = false;
  for (const int64_t size : type.sizes) {
    if (size < 0) throw Failure(LTC_INVALID_ARGUMENT, "a size is " + std::to_string(size));
    overflows |= __builtin_mul_overflow(bytes, static_cast<uint64_t>(size), &bytes);
  }
  const uint64_t limit = device.facts.memory_bytes ? device.facts.memory_bytes : uint64_t{1} << 47;
  if (overflows || bytes > limit)
    throw Failure(LTC_RESOURCE_EXHAUSTED, "a buffer larger than the device's memory: " + type.text());
  return bytes;
}

ltc_buffer* create_buffer(ltc_device* device, Type type) {
  const uint64_t bytes = bytes_of(*device, type);
  return new ltc_buffer{device, std::move(type), bytes, nullptr};
}

BufferRef own(const ltc_device& device, PJRT_Buffer* buffer) {
  const Library& library = device.library();
  return BufferRef(buffer, [&library](PJRT_Buffer* ended) {
    auto args = PJRT_ARGS(Buffer_Destroy);
    args.buffer = ended;
    if (PJRT_Error* error = library.api().PJRT_Buffer_Destroy(&args)) (void)library.take(error);
  });
}

const BufferRef& contents(ltc_buffer& buffer) {
  if (!buffer.data) buffer.data = upload(*buffer.device, buffer.type, std::vector<char>(buffer.bytes + 1).data());
  return buffer.data;
}

BufferRef upload(const ltc_device& device, const Type& type, const void* data) {
  Uploaded uploaded = upload_by(device, type, data, PJRT_HostBufferSemantics_kImmutableOnlyDuringCall);
  await(device.library(), uploaded.read);
  return std::move(uploaded.buffer);
}

PJRT_Event* download(const ltc_device& device, const ltc_buffer& buffer, void* data, uint64_t bytes) {
  Sizes order(buffer.type.sizes.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(order.size() - 1 - i);
  PJRT_Buffer_MemoryLayout row_major{};
  row_major.struct_size = PJRT_Buffer_MemoryLayout_STRUCT_SIZE;
  row_major.type = PJRT_Buffer_MemoryLayout_Type_Tiled;
  row_major.tiled.struct_size = PJRT_Buffer_MemoryLayout_Tiled_STRUCT_SIZE;
  row_major.tiled.minor_to_major = order.data();
  row_major.tiled.minor_to_major_size = order.size();
  auto args = PJRT_ARGS(Buffer_ToHostBuffer);
  args.src = buffer.data.get();
  args.host_layout = &row_major;
  args.dst = data;
  args.dst_size = bytes;
  PJRT_CALL(device.library(), Buffer_ToHostBuffer, args);
  return args.event;
}

void transfer(ltc_device* device, const ltc_transfer_args& args, ltc_event** done) {
  check_ranges(device, args);
  const Ticket ticket = args.size_bytes == 0                ? device->queue->mark()
                        : args.direction == LTC_TO_DEVICE   ? write(device, args)
                        : args.direction == LTC_FROM_DEVICE ? read(device, args)
                                                            : copy(device, args);
  deliver(device, ticket, done);
}

void deliver(ltc_device* device, const Ticket& ticket, ltc_event** done) {
  if (!done) device->queue->wait(ticket, LTC_FOREVER);
  const bool is_over = device->queue->wait(ticket, 0);
  const std::optional<abi::Error> error = is_over ? device->queue->error(ticket) : std::nullopt;
  if (is_over && !error) return;
  if (!done) throw Failure(*error);
  *done = new ltc_event{device, device->queue, ticket};
}

}  // namespace ltc::pjrt
