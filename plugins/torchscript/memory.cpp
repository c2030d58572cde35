// Buffers and transfers: the half of the plugin that only moves bytes.
#include <ATen/EmptyTensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/InferenceMode.h>
#include <c10/util/StringUtil.h>

#include <cstring>
#include <memory>

#include "torchscript/device.h"
#include "torchscript/graph/types.h"
#include "torchscript/threads/memory_pool.h"

namespace ltc::torchscript {
namespace {

const at::Tensor& contents(const ltc_buffer* buffer, const char* role) {
  if (!buffer->tensor.defined()) {
    throw Failure(LTC_INVALID_ARGUMENT,
                  c10::str("[transfer] the ", role, " buffer is the output of a run that failed for want of memory"));
  }
  return buffer->tensor;
}

void check_range(const char* role, const at::Tensor& tensor, const ltc_transfer_args& args, uint64_t offset) {
  plugin::check_range(role, offset, args.size_bytes, tensor.nbytes());
}

struct Bytes {
  const void* data;
  c10::Device device;
};

at::Tensor view(Bytes bytes, uint64_t size) {
  return at::for_blob(const_cast<void*>(bytes.data), static_cast<int64_t>(size))
      .options(at::TensorOptions(at::kByte).device(bytes.device))
      .target_device(bytes.device)
      .make_tensor();
}

// At once on the CPU, else in the order of the queue.
void copy_bytes(Bytes to, Bytes from, uint64_t size) {
  if (size == 0) return;
  if (to.device.is_cpu() && from.device.is_cpu()) {
    std::memcpy(const_cast<void*>(to.data), from.data, size);
  } else {
    view(to, size).copy_(view(from, size), /*non_blocking=*/true);
  }
}

Bytes read(const at::Tensor& row_major, uint64_t offset) {
  return {static_cast<const char*>(row_major.const_data_ptr()) + offset, row_major.device()};
}

// Row-major memory that belongs to this buffer alone. A value that will be overwritten as a whole is not copied.
Bytes writable(ltc_buffer* buffer, uint64_t offset, uint64_t size) {
  const at::Tensor& old = buffer->tensor;
  const bool alone = old.use_count() == 1 && old.storage().use_count() == 1;
  if (!alone || !old.is_contiguous()) {
    at::Tensor fresh = dense(old.sizes(), old.scalar_type(), old.device());
    if (size < old.nbytes()) fresh.copy_(old);
    buffer->hold(std::move(fresh));
  } else {
    buffer->renew();
  }
  return {static_cast<char*>(buffer->tensor.mutable_data_ptr()) + offset, buffer->tensor.device()};
}

void to_device(const ltc_transfer_args& args) {
  check_range("target", contents(args.buffer, "target"), args, args.offset_bytes);
  const Bytes to = writable(args.buffer, args.offset_bytes, args.size_bytes);
  copy_bytes(to, {args.from, at::kCPU}, args.size_bytes);
}

void from_device(const ltc_transfer_args& args) {
  const at::Tensor& tensor = contents(args.buffer, "source");
  check_range("source", tensor, args, args.offset_bytes);
  copy_bytes({args.to, at::kCPU}, read(tensor.contiguous(), args.offset_bytes), args.size_bytes);
}

void on_device(const ltc_transfer_args& args) {
  check_range("source", contents(args.source, "source"), args, args.source_offset_bytes);
  check_range("target", contents(args.buffer, "target"), args, args.offset_bytes);
  // Holding the source makes a buffer that is copied onto itself write to fresh memory, so overlaps are harmless.
  const at::Tensor source = args.source->tensor.contiguous();
  copy_bytes(writable(args.buffer, args.offset_bytes, args.size_bytes), read(source, args.source_offset_bytes), args.size_bytes);
}

}  // namespace

at::Tensor dense(at::IntArrayRef sizes, at::ScalarType dtype, c10::Device device) {
  if (device.is_cpu()) return at::Tensor(at::detail::empty_cpu(sizes, dtype));
  return at::empty(sizes, at::TensorOptions(dtype).device(device));
}

ltc_buffer* create_buffer(ltc_device* device, const ltc_buffer_args& args) {
  const ltc_type& type = *args.type;
  for (uint32_t i = 0; i < type.rank; ++i) {
    if (type.sizes[i] < 0) throw Failure(LTC_INVALID_ARGUMENT, c10::str("[buffer_create] size ", i, " is ", type.sizes[i]));
  }
  c10::InferenceMode inference;
  auto buffer = std::make_unique<ltc_buffer>(device);
  const OnQueue on(device->queue);
  const MemoryPoolScope pooled(MemoryPoolScope::kTransfer);  // what a program has let go of, perhaps to load it anew
  buffer->hold(dense({type.sizes, type.rank}, to_torch(type.dtype), device->queue.device()));
  return buffer.release();
}

void transfer(ltc_device* device, const ltc_transfer_args& args) {
  plugin::check_transfer(args);
  c10::InferenceMode inference;
  const OnQueue on(device->queue);
  switch (args.direction) {
    case LTC_TO_DEVICE: return to_device(args);
    case LTC_FROM_DEVICE: return from_device(args);
    default: return on_device(args);
  }
}

}  // namespace ltc::torchscript
