// Buffers and transfers: the half of the plugin that only moves bytes.
#include <ATen/EmptyTensor.h>
#include <c10/core/InferenceMode.h>
#include <c10/util/StringUtil.h>

#include <cstring>
#include <memory>

#include "device.h"
#include "pool.h"
#include "types.h"

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
  abi::check_range(role, offset, args.size_bytes, tensor.nbytes());
}

void copy_bytes(void* to, const void* from, uint64_t size) {
  if (size > 0) std::memcpy(to, from, size);
}

const char* read(const at::Tensor& row_major, uint64_t offset) {
  return static_cast<const char*>(row_major.const_data_ptr()) + offset;
}

// Row-major memory that belongs to this buffer alone. What will be overwritten as a whole is not copied.
char* writable(ltc_buffer* buffer, uint64_t offset, uint64_t size) {
  const at::Tensor& old = buffer->tensor;
  const bool alone = old.use_count() == 1 && old.storage().use_count() == 1;
  if (!alone || !old.is_contiguous()) {
    at::Tensor fresh = dense(old.sizes(), old.scalar_type());
    if (size < old.nbytes()) fresh.copy_(old);
    buffer->hold(std::move(fresh));
  }
  return static_cast<char*>(buffer->tensor.mutable_data_ptr()) + offset;
}

void to_device(const ltc_transfer_args& args) {
  check_range("target", contents(args.buffer, "target"), args, args.offset_bytes);
  copy_bytes(writable(args.buffer, args.offset_bytes, args.size_bytes), args.from, args.size_bytes);
}

void from_device(const ltc_transfer_args& args) {
  const at::Tensor& tensor = contents(args.buffer, "source");
  check_range("source", tensor, args, args.offset_bytes);
  copy_bytes(args.to, read(tensor.contiguous(), args.offset_bytes), args.size_bytes);
}

void on_device(const ltc_transfer_args& args) {
  check_range("source", contents(args.source, "source"), args, args.source_offset_bytes);
  check_range("target", contents(args.buffer, "target"), args, args.offset_bytes);
  // Holding the source makes a buffer that is copied onto itself write to fresh memory, so overlaps are harmless.
  const at::Tensor source = args.source->tensor.contiguous();
  copy_bytes(writable(args.buffer, args.offset_bytes, args.size_bytes), read(source, args.source_offset_bytes), args.size_bytes);
}

}  // namespace

at::Tensor dense(at::IntArrayRef sizes, at::ScalarType dtype) { return at::Tensor(at::detail::empty_cpu(sizes, dtype)); }

ltc_buffer* create_buffer(ltc_device* device, const ltc_buffer_args& args) {
  check_extensions(args.ext);
  const ltc_type& type = *args.type;
  for (uint32_t i = 0; i < type.rank; ++i) {
    if (type.sizes[i] < 0) throw Failure(LTC_INVALID_ARGUMENT, c10::str("[buffer_create] size ", i, " is ", type.sizes[i]));
  }
  c10::InferenceMode inference;
  auto buffer = std::make_unique<ltc_buffer>(device);
  buffer->hold(dense({type.sizes, type.rank}, to_torch(type.dtype)));
  prefer_large_pages(buffer->tensor.mutable_data_ptr(), buffer->tensor.nbytes());
  return buffer.release();
}

void transfer(const ltc_transfer_args& args) {
  abi::check_transfer(args);
  c10::InferenceMode inference;
  switch (args.direction) {
    case LTC_TO_DEVICE: return to_device(args);
    case LTC_FROM_DEVICE: return from_device(args);
    default: return on_device(args);
  }
}

}  // namespace ltc::torchscript
