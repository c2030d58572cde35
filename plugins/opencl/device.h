// The objects behind the opaque handles of the C ABI.
#pragma once
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "errors.h"
#include "handle.h"
#include "ltc/plugin.h"
#include "platform.h"
#include "pool.h"
#include "programs.h"
#include "recipe.h"
#include "staging.h"

struct ltc_plugin {
  const ltc_host_api* host;
  std::once_flag looked;
  std::vector<ltc::opencl::DeviceFacts> devices;
  std::string why_no_device;
};

struct ltc_device {
  ltc_device(ltc_plugin* owner, const ltc::opencl::DeviceFacts& device_facts);
  ~ltc_device();

  ltc_plugin* const plugin;
  const ltc::opencl::DeviceFacts facts;
  ltc::opencl::Context context;
  ltc::opencl::Queue queue;
  ltc::opencl::MemoryPool pool;
  ltc::opencl::Staging staging;
  ltc::opencl::Programs programs;
  std::vector<ltc::opencl::ClEvent> unobserved;  // of runs whose host wanted no event: their errors ride in the next one
};

struct ltc_buffer {
  ltc_device* const device;
  const ltc::opencl::TensorType type;
  const uint64_t bytes;
  ltc::opencl::Block block;
  bool seen = false, donated = false;  // in the submit that is being checked
};

// Work that was submitted, and runs before it that nobody else asks about.
struct ltc_event {
  const ltc_host_api* host;
  std::vector<ltc::opencl::ClEvent> events;
};

struct ltc_program {
  ltc_device* device;
  ltc::opencl::Recipe recipe;
  std::string text;
};

namespace ltc::opencl {

// A bit per dtype that buffers may have: those of whole bytes. Without fp64 no F64, nor C128, and the host sends F32 and C64 for
// them.
uint64_t held_dtypes(const DeviceFacts& facts);
ltc_buffer* create_buffer(ltc_device* device, TensorType type);
// Puts the memory back, for the next to take; submitted work is ahead of that in the queue.
void destroy_buffer(ltc_buffer* buffer) noexcept;
void transfer(ltc_device* device, const ltc_transfer_args& args, ltc_event** done);

// The event of a command as the host gets it; null `done`: it is kept for the next.
void deliver(ltc_device* device, ClEvent event, ltc_event** done);
// Throws the error of the work, if there is one.
void wait(const ltc_event& event, uint64_t timeout_ns, bool& finished);

}  // namespace ltc::opencl
