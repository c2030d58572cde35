// The interface that a plugin implements to use this folder: its devices.
//
// Where a comment names no errors, a method throws plugin::Failure: DEVICE_LOST once the device is gone, else the code that fits.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "device/compiled_plan.h"
#include "ltc/collective.h"
#include "ltc/options.hpp"
#include "ltc/plugin.hpp"

namespace ltc::device {

using plugin::Failure;

// Memory of the device: an address, or the handle of an object.
using Memory = void*;

struct Facts {
  std::string name;
  std::string fingerprint;  // all that compiled kernels depend on
  bool fp64 = true;
  bool host_memory = false;  // it works in the memory of the host
  bool peer_copies = false;  // it has copy_from
  bool write_waits = false;  // one from memory that is not pinned waits for all that was submitted before
  uint64_t memory_bytes = 0, largest_buffer_bytes = 0;
};

// A point in the queue. Any thread, several at once.
class Event {
 public:
  virtual ~Event() = default;
  // Whether all that was submitted before it is over. Throws the error of the work that it stands for, once that is over.
  virtual bool is_over() = 0;
  // Returns when it is; throws likewise.
  virtual void wait() = 0;
};
using EventRef = std::shared_ptr<Event>;

// The memory and scalars of one run.
struct Run {
  std::span<const Memory> inputs, outputs, slots;
  std::span<const ltc_scalar> scalars;
  uint64_t id;
  Memory faults = nullptr;         // where kernels report a bad index: a word
  uint64_t fault_codes = 0;        // of the compiled plan's checks: these, one each
  uint64_t* fault_word = nullptr;  // not null: a word of the host to which `faults` is copied behind the kernels
  // The part of the launches to submit; all but where the driver's lowering has checks_before_donations.
  size_t begin = 0, end = SIZE_MAX;

  Memory at(const Binding& binding) const {
    if (binding.kind == Binding::Kind::kFaults) return faults;
    return (binding.kind == Binding::Kind::kInput    ? inputs
            : binding.kind == Binding::Kind::kOutput ? outputs
                                                     : slots)[binding.index];
  }
  ltc_scalar scalar(const Launch& launch, const ScalarBinding& binding) const {
    if (binding.index == ScalarBinding::kFaultCode) return {.u = fault_codes + launch.first_check};
    return scalars[binding.index];
  }
};

// A group of processes that a device has joined (ltc/collective.h). It ends once its collectives are over or aborted.
class Group {
 public:
  virtual ~Group() = default;
  // Any thread.
  virtual void abort() noexcept = 0;
};

// A compiled plan made ready to run. It may end while its runs are under way.
class LoadedPlan {
 public:
  virtual ~LoadedPlan() = default;
  // One call at a time. The event is that of the whole run.
  virtual EventRef submit(const Run& run) = 0;
  // The compiled sources, for Driver::load_plan in another process. Any thread.
  virtual std::vector<std::string> binaries() const = 0;
};

// An open device and its queue, which is in order: a block of memory may be used again as soon as the last work that uses it is
// submitted. Allocation, load_plan and events from any thread; the rest one call at a time.
class Driver {
 public:
  virtual ~Driver() = default;  // the queue is empty

  virtual const Facts& facts() const = 0;  // live as long as the Platform
  virtual const Lowering& lowering() const = 0;

  // At least 64 bytes. Throws RESOURCE_EXHAUSTED.
  virtual Memory allocate(uint64_t bytes) = 0;
  // Once the submitted work is over.
  virtual void release(Memory memory) noexcept = 0;
  // Memory of the host that the device copies from without a detour. Throws RESOURCE_EXHAUSTED.
  virtual void* allocate_pinned(uint64_t bytes) = 0;
  // Nothing uses it any more.
  virtual void release_pinned(void* memory) noexcept = 0;

  // Each submits one command and gives its event. The host's memory stays until that is over.
  virtual EventRef write(Memory to, uint64_t offset, const void* from, uint64_t bytes) = 0;
  virtual EventRef read(void* to, Memory from, uint64_t offset, uint64_t bytes) = 0;
  virtual EventRef copy(Memory to, uint64_t to_offset, Memory from, uint64_t from_offset, uint64_t bytes) = 0;
  // From memory of another device of the platform: after what was submitted there before, and before what is submitted there
  // next. Calls to the two may be under way at once.
  virtual EventRef copy_from(Driver& /*source*/, Memory /*to*/, uint64_t /*to_offset*/, Memory /*from*/, uint64_t /*from_offset*/,
                             uint64_t /*bytes*/) {
    throw Failure(LTC_UNSUPPORTED, "this device copies nothing from others");
  }
  virtual EventRef mark() = 0;

  // Compiles what `binaries`, one per source or none at all, do not hold. May take long.
  virtual std::unique_ptr<LoadedPlan> load_plan(std::shared_ptr<const CompiledPlan> compiled_plan,
                                                std::span<const std::string> binaries) = 0;

  // Groups, of a plugin with Plugin::has_collectives; from any thread. Throws UNSUPPORTED where the device has no links.
  virtual std::unique_ptr<Group> join(const ltc_group_args& /*args*/) {
    throw Failure(LTC_UNSUPPORTED, "this device has no links to others");
  }
  virtual bool is_member(int64_t /*group*/) const { return false; }

  // Waits until the queue is empty; a lost device has none.
  virtual void finish() noexcept = 0;
};

// The devices that were found, in the order of the ordinals. Lives as long as the plugin's instance.
class Platform {
 public:
  virtual ~Platform() = default;
  virtual size_t device_count() const = 0;
  // Where there is none: what is missing and what to do, in one sentence.
  virtual const std::string& why_no_device() const = 0;
  virtual std::unique_ptr<Driver> open(size_t ordinal) = 0;
};

// ltc_plugin_entry of such a plugin. `find` is called once per instance, when devices are first asked for.
struct Plugin {
  const char* name;
  const char* version;
  const char* build_id;
  std::unique_ptr<Platform> (*find)(const plugin::Options& options);
  bool rounds = false;           // it asks for ltc/precision.h
  bool has_collectives = false;  // its devices join groups; then it rounds, too
  std::span<const plugin::OptionRow> options = {};
};
bool enter(ltc_entry_args* args, const Plugin& plugin) noexcept;

}  // namespace ltc::device
