// A value in a device's memory, or on its way there: what a finished barrier leaves in the storages.
#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <mutex>
#include <vector>

#include "core/base/pool.h"
#include "core/host/plugin.h"
#include "core/ir/location.h"
#include "core/run/queue/host_ops.h"

namespace ltc {

class DeviceMemory;
struct Step;

// Why a run did not compute all that it was to. Shared by what it concerns: the values that were lost, those that were given
// back as they were before the run, and what was computed from these. Told once at least, to whoever reads one first.
struct Failure {
  explicit Failure(std::exception_ptr why) : error(std::move(why)) {}
  const std::exception_ptr error;
  std::atomic<bool> is_told{false};
};

class Completion;

// A value that a submission makes: one of its outputs.
struct Made {
  std::shared_ptr<Completion> by;  // null: it is there
  uint32_t output = 0;
};

// The end of one submission: done when its own work is and that of all it read from. Any thread may wait, several at once.
class Completion {
 public:
  // The completion of a run. `event` may be null if the work itself is finished. `parents` are the inputs that were still
  // pending. `step` is the submitted step, for errors. `may_fail`: see below.
  Completion(DeviceMemory& memory, ltc_event* event, std::vector<Made> parents, std::shared_ptr<const Step> step, bool may_fail);
  // The completion of a transfer. `source` is the host's memory that the device uses meanwhile. The destructor waits, since it
  // must keep the memory until then; where it cannot, the memory is never given back.
  Completion(DeviceMemory& memory, ltc_event* event, HostValue source = {});
  ~Completion();

  // Returns when the work is done; throws its error, or the first of what it depended on. Throws host::WaitFailed where the
  // plugin could not wait.
  void wait();
  // The same for one output of a run: does not throw where the plugin says that it is good all the same.
  void wait_for(uint32_t output);
  bool finished_for(uint32_t output) { return try_wait_for(output, 0); }
  bool finished();  // the same without waiting, not for others that wait either
  // Whether the work is over, well or not. Throws nothing: errors are for who reads the buffers.
  bool is_over() noexcept;
  bool is_over_within(std::chrono::nanoseconds time) noexcept;
  void wait_until_over() noexcept;  // or until the plugin has failed to wait for a second
  // Whether a run that reads what this makes waits for it before it consumes inputs: a failure would take them along. A run that
  // itself consumed inputs has been checked by its plugin, and so has all that it read.
  bool may_fail() const { return may_fail_; }

 private:
  struct Work;

  bool try_wait(uint64_t timeout_ns);
  bool try_wait_for(uint32_t output, uint64_t timeout_ns);
  bool is_good(uint32_t output);
  bool try_wait_quietly(uint64_t timeout_ns) noexcept;

  const bool may_fail_ = false;
  std::mutex mutex_;                  // never held while waiting
  std::shared_ptr<const Work> work_;  // null once it is done; whoever waits holds it too
  std::exception_ptr error_;
  std::vector<uint8_t> good_;  // of a run that failed, by output
};

// States: promised (no handle, no error: its submission is still queued), unsent (`host` holds its bytes until a submission reads
// it), submitted (a handle; `completion` while the device may
// still be writing it), failed (an error, which whoever reads the value gets). One with a handle and a failure holds what its
// storage held before a run that failed, or what was computed from that.
//
// Fields are written by the queue's thread, once, when the submission that makes the value runs; read by later submissions of the
// same queue. Immutable after that. The destructor gives the handle back to the plugin and runs on any thread.
struct Buffer {
  Buffer(DeviceMemory& memory, TypeId type, bool is_placeholder = false)
      : memory(memory), type(type), is_placeholder(is_placeholder) {}
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  void own(ltc_buffer* made);     // this buffer's memory from now on
  ltc_buffer* disown();           // gone to somebody else, or with a submission
  void release() noexcept;        // back to the plugin
  bool is_made() const;           // whether what makes it is over; throws the error of that, as the next
  void wait_made() const;         // for what makes it; throws the error of that
  void require_not_lost() const;  // throws where it had memory of a device that was lost

  DeviceMemory& memory;  // of the queue that it came from
  const TypeId type;
  const bool is_placeholder;  // of an argument while a function is captured: no submission ever makes it
  HostValue host;
  HostValue sent;  // the bytes of a short upload of whole numbers, for values that the host computes; set when it is made
  ltc_buffer* handle = nullptr;  // changed by own() and disown(), which keep the account of the memory, and by the device's loss
  std::shared_ptr<Completion> completion;
  uint32_t output = 0;  // of the completion's run
  std::exception_ptr error;
  std::shared_ptr<Failure> failure;
  LocationId where = kNoLocation;  // the user's line of the value, while the history of the memory is recorded

 private:
  friend class DeviceMemory;
  uint32_t generation_ = 0;                       // of the device, when it got its memory
  uint64_t address_ = 0;                          // DeviceMemory::Held's
  Buffer *previous_ = nullptr, *next_ = nullptr;  // in the list of the device's buffers
};
using BufferRef = std::shared_ptr<Buffer>;

// Takes the memory of one that is gone.
inline BufferRef make_buffer(DeviceMemory& memory, TypeId type) {
  return std::allocate_shared<Buffer>(PoolAllocator<Buffer>(), memory, type);
}

}  // namespace ltc
