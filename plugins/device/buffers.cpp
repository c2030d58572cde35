// Buffers, transfers and events: the half of a plugin that only moves bytes.
#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "device/objects.h"
#include "kernels/graph/dtype.h"

ltc_device::ltc_device(ltc_plugin* owner, std::unique_ptr<ltc::device::Driver> opened)
    : plugin(owner), driver(std::move(opened)), pool(*driver), staging(*driver), faults(*driver) {}

ltc_device::~ltc_device() { driver->finish(); }

namespace ltc::device {
namespace {

void check_ranges(ltc_device* device, const ltc_transfer_args& args) {
  plugin::check_transfer(args);
  const char* role = args.direction == LTC_FROM_DEVICE ? "source" : "target";
  plugin::check_range(role, args.offset_bytes, args.size_bytes, args.buffer->bytes);
  if (args.direction != LTC_ON_DEVICE) return;
  const bool is_peer = args.source->device->plugin == device->plugin && device->driver->facts().peer_copies;
  if (args.source->device != device && !is_peer) throw Failure(LTC_UNSUPPORTED, "[transfer] the source is on another device");
  plugin::check_range("source", args.source_offset_bytes, args.size_bytes, args.source->bytes);
}

EventRef write(ltc_device* device, const ltc_transfer_args& args) {
  const Memory to = args.buffer->block.memory;
  const bool would_wait = device->driver->facts().write_waits && args.size_bytes <= Staging::kQuickBytes;
  if (would_wait) {
    return device->staging.write(to, args.offset_bytes, args.from, args.size_bytes);
  }
  return device->driver->write(to, args.offset_bytes, args.from, args.size_bytes);
}

EventRef copy(ltc_device* device, const ltc_transfer_args& args) {
  const Memory to = args.buffer->block.memory, from = args.source->block.memory;
  Driver& source = *args.source->device->driver;
  if (args.source->device == device) return source.copy(to, args.offset_bytes, from, args.source_offset_bytes, args.size_bytes);
  return device->driver->copy_from(source, to, args.offset_bytes, from, args.source_offset_bytes, args.size_bytes);
}

// Returns false when the time ran out.
bool wait(Event& event, uint64_t timeout_ns, std::chrono::steady_clock::time_point begin) {
  if (timeout_ns == LTC_FOREVER) {
    event.wait();
    return true;
  }
  for (int round = 0; !event.is_over(); ++round) {
    const auto passed = std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count();
    if (static_cast<uint64_t>(passed) >= timeout_ns) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(round < 20 ? 20 : 500));
  }
  return true;
}

}  // namespace

uint64_t held_dtypes(const Facts& facts) {
  uint64_t dtypes = 0;
  for (ltc_dtype dtype = LTC_BOOL; dtype < 64; ++dtype) {
    const bool wide = dtype == LTC_F64 || dtype == LTC_C128;
    if (kernels::bits_of(dtype) >= 8 && (facts.fp64 || !wide)) dtypes |= uint64_t{1} << dtype;
  }
  return dtypes;
}

ltc_buffer* create_buffer(ltc_device* device, TensorType type) {
  if (type.dtype >= 64 || !(held_dtypes(device->driver->facts()) >> type.dtype & 1)) {
    throw Failure(LTC_UNSUPPORTED, "the device holds no dtype " + std::to_string(type.dtype));
  }
  for (const int64_t size : type.sizes) {
    if (size < 0) throw Failure(LTC_INVALID_ARGUMENT, "a size is " + std::to_string(size));
  }
  const uint64_t bytes = type.bytes();
  Block block = device->pool.take(bytes);
  return new ltc_buffer{device, std::move(type), bytes, block};
}

void destroy_buffer(ltc_buffer* buffer) noexcept {
  buffer->device->pool.give(buffer->block);
  delete buffer;
}

void transfer(ltc_device* device, const ltc_transfer_args& args, ltc_event** done) {
  check_ranges(device, args);
  const bool from_device = args.direction == LTC_FROM_DEVICE;
  EventRef event;
  if (args.size_bytes == 0) {
    event = device->driver->mark();
  } else if (args.direction == LTC_TO_DEVICE) {
    event = write(device, args);
  } else if (from_device) {
    event = device->driver->read(args.to, args.buffer->block.memory, args.offset_bytes, args.size_bytes);
  } else {
    event = copy(device, args);
  }
  *done = new ltc_event{device, std::move(event)};
}

void wait(const ltc_event& event, uint64_t timeout_ns, bool& finished) {
  finished = true;  // with an error too
  finished = wait(*event.work, timeout_ns, std::chrono::steady_clock::now());
}

}  // namespace ltc::device
