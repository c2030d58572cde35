// The objects behind the opaque handles of the C ABI.
#pragma once
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "device/driver.h"
#include "device/faults.h"
#include "device/pool.h"
#include "device/staging.h"
#include "ltc/plugin.h"
#include "ltc/plugin.hpp"

struct ltc_plugin {
  const ltc_host_api* host;
  const ltc::device::Plugin& what;
  const ltc::plugin::Options options;
  std::once_flag looked = {};
  std::unique_ptr<ltc::device::Platform> platform = {};  // once it was looked for
};

namespace ltc::device {

// The first error of a lost device. Every later call repeats it. Any thread.
class Loss {
 public:
  void check() const {
    const std::lock_guard guard(lock_);
    if (first_) throw Failure(*first_);
  }
  void note(const plugin::Error& error) {
    const std::lock_guard guard(lock_);
    if (error.code == LTC_DEVICE_LOST && !first_) first_ = error;
  }

 private:
  mutable std::mutex lock_;
  std::optional<plugin::Error> first_;
};

}  // namespace ltc::device

struct ltc_device {
  ltc_device(ltc_plugin* owner, std::unique_ptr<ltc::device::Driver> opened);
  ~ltc_device();

  ltc_plugin* const plugin;
  const std::unique_ptr<ltc::device::Driver> driver;
  ltc::device::Loss loss;
  ltc::device::MemoryPool pool;
  ltc::device::Staging staging;
  ltc::device::Faults faults;
};

struct ltc_buffer {
  ltc_device* const device;
  const ltc::device::TensorType type;
  const uint64_t bytes;
  ltc::device::Block block;
  bool seen = false, donated = false;  // in the submit that is being checked
};

// Work that was submitted.
struct ltc_event {
  ltc_device* device;
  ltc::device::EventRef work;
};

struct ltc_program {
  ltc_device* device;
  std::shared_ptr<const ltc::device::CompiledPlan> compiled_plan;
  std::string text;
};

struct ltc_executable {
  ltc_device* device;
  std::shared_ptr<const ltc::device::CompiledPlan> compiled_plan;
  std::unique_ptr<ltc::device::LoadedPlan> loaded_plan;
  std::vector<ltc::device::Memory> inputs, outputs, slots;  // of the run that is being submitted
  size_t checked_launches = 0;                              // with Lowering::checks_before_donations; else 0
  std::vector<size_t> first_writers;                        // see compiled_plan.h
};

struct ltc_group {
  std::unique_ptr<ltc::device::Group> group;
};

namespace ltc::device {

// A bit per dtype that buffers may have: those of whole bytes. Without fp64 no F64, nor C128, and the host sends F32 and C64 for
// them.
uint64_t held_dtypes(const Facts& facts);
ltc_buffer* create_buffer(ltc_device* device, TensorType type);
// Puts the memory back, for the next to take; submitted work is ahead of that in the queue.
void destroy_buffer(ltc_buffer* buffer) noexcept;
void transfer(ltc_device* device, const ltc_transfer_args& args, ltc_event** done);
// Submits one run. Throws before anything is consumed.
void execute(ltc_device* device, const ltc_execute_args& args, ltc_buffer** outputs, ltc_event** done);

// Throws the error of the work, if there is one.
void wait(const ltc_event& event, uint64_t timeout_ns, bool& finished);

}  // namespace ltc::device
