// The objects behind the opaque handles of the C ABI.
#pragma once
#include <ATen/core/Tensor.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "host_compiler/host_kernels.h"
#include "ltc/options.hpp"
#include "ltc/plugin.h"
#include "torchscript/graph/errors.h"
#include "torchscript/graph/target.h"
#include "torchscript/packed_forms.h"
#include "torchscript/threads/thread_pool.h"

namespace ltc::torchscript {

// Bytes held by the buffers of one device. Any thread may count; a storage shared by two buffers counts twice.
class MemoryMeter {
 public:
  void add(uint64_t bytes) {
    const uint64_t now = in_use_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    uint64_t peak = peak_.load(std::memory_order_relaxed);
    while (peak < now && !peak_.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
    }
  }
  void remove(uint64_t bytes) { in_use_.fetch_sub(bytes, std::memory_order_relaxed); }
  uint64_t in_use() const { return in_use_.load(std::memory_order_relaxed); }
  uint64_t peak() const { return peak_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> in_use_{0}, peak_{0};
};

}  // namespace ltc::torchscript

struct ltc_plugin {
  explicit ltc_plugin(const ltc_entry_args& args);
  const ltc_host_api* const host;
  const ltc::plugin::Options options;
  const c10::DeviceType devices;
  // Found when devices are first asked for.
  const ltc::torchscript::Devices& found();
  ltc::host_compiler::HostKernels kernels;
  ltc::torchscript::ThreadPool thread_pool;

 private:
  std::once_flag once_;
  ltc::torchscript::Devices found_;
};

struct ltc_device {
  ltc_device(ltc_plugin* owner, uint32_t ordinal);

  ltc_plugin* const plugin;
  const ltc::torchscript::Queue queue;
  const std::string fingerprint;
  ltc::torchscript::MemoryMeter memory;
  uint64_t submits = 0;                     // tells whether a buffer was already seen in this submit
  std::atomic<uint64_t> next_contents = 1;  // of a buffer
};

// A value: a write to one buffer never changes another, although two may share memory until then.
// The tensor is strided, on the device, of the declared sizes and type, with any strides; undefined only when
// there was no memory left for the result of a failed run.
struct ltc_buffer {
  explicit ltc_buffer(ltc_device* owner) : device(owner) {}
  ~ltc_buffer() { device->memory.remove(charged); }
  ltc_buffer(const ltc_buffer&) = delete;
  ltc_buffer& operator=(const ltc_buffer&) = delete;

  void hold(at::Tensor value) {
    tensor = std::move(value);
    renew();
  }
  // After each write: forms of other contents are of no use.
  void renew() {
    contents = device->next_contents.fetch_add(1, std::memory_order_relaxed);
    forms.clear();
    charge();
  }
  // For what it holds.
  void charge() {
    const uint64_t bytes = (tensor.defined() ? tensor.storage().nbytes() : 0) + forms.size_bytes();
    device->memory.add(bytes);
    device->memory.remove(std::exchange(charged, bytes));
  }

  ltc_device* const device;
  at::Tensor tensor;
  ltc::torchscript::PackedForms forms;
  uint64_t contents = 0;
  uint64_t charged = 0;
  uint64_t seen_in = 0;  // the last submit that named it as an input
  bool donated = false;  // in that submit
};

// Work on the CPU is synchronous, so there an event exists only to carry an error.
struct ltc_event {
  const ltc_host_api* host;
  std::optional<ltc::torchscript::Error> error;
  std::optional<c10::Event> fence;  // in the queue; nothing: the work is over
};

namespace ltc::torchscript {

// memory.cpp
at::Tensor dense(at::IntArrayRef sizes, at::ScalarType dtype, c10::Device device);
ltc_buffer* create_buffer(ltc_device* device, const ltc_buffer_args& args);
void transfer(ltc_device* device, const ltc_transfer_args& args);

// Hands what was submitted, with its failure, to the host; *done stays NULL where all is over and went well.
void deliver(ltc_device* device, std::optional<Error> error, ltc_event** done);

}  // namespace ltc::torchscript
