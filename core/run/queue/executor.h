// The work of a device's queue: transfers, runs and host steps, done on the plugin at once and in the order of the calls.
//
// Threads: one at a time, whoever runs the queue's tasks, except where stated.
// Errors: of the work on a buffer ride in the buffer, and work that reads it fails with the same error without running. A run
// that
//   names its step is repeated op by op (recovery.h): only what depends on the op that failed is lost.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "core/report/metrics.h"
#include "core/run/queue/device_memory.h"
#include "core/run/queue/device_times.h"
#include "core/run/queue/host_ops.h"
#include "core/run/queue/run.h"

namespace ltc {

// Throws an error of the core to the reader of a value, as a type that the reader knows, or returns for it to be
// thrown as it is. Installed by the part of the core that knows such types.
using ThrowToReader = void (*)(const Error& error);
void set_throw_to_reader(ThrowToReader throw_to_reader);
[[noreturn]] void throw_to_reader(const std::exception_ptr& error);

class ResultCheck;

class DeviceExecutor {
 public:
  // `pending_limit`: runs that an asynchronous device may have before it.
  DeviceExecutor(DeviceMemory& memory, size_t pending_limit);
  ~DeviceExecutor();

  DeviceMemory& memory() { return memory_; }
  host::PluginDevice& device() { return memory_.device(); }
  const TypeDemotion& demotion() const { return memory_.demotion(); }

  // Each makes `buffer`. A failed upload is the buffer's error; the others throw.
  void upload(const HostValue& value, Buffer& buffer);
  void copy_from_peer(const Buffer& source, Buffer& buffer);  // `source`: of another device
  void resize(Buffer& source, Buffer& buffer);                // as far as both go; zero behind that
  void copy(Buffer& source, Buffer& buffer);

  // Throws the buffer's error; uploads its bytes if nobody has read them yet.
  void require(Buffer& buffer);
  // Throws what a reader of the buffer is to know. Any thread, once the buffer has been made.
  static void tell(const Buffer& buffer);
  // A copy of a buffer's contents to the host (copy_out.h).
  struct CopyOut;

  // Opens a lost device again. Throws what that throws: then it is still lost.
  void reopen_if_lost();

  void run(Run& run);  // the outputs are made, or have an error
  void run_steps(const Run& run);
  // Whether to submit the run now takes a wait for the device; the queue's thread waits, as no signal ends a wait in a plugin.
  bool would_wait(const Run& run);
  // Whether the device has said of a run that it goes on after the call. Any thread.
  bool is_asynchronous() const { return is_asynchronous_; }

  const std::shared_ptr<Completion>& newest() const { return newest_; }  // of what was submitted last; null: all is done
  void finish();  // returns when the device is done with all runs and uploads; throws nothing

  // Where the timeline is on: returns when it has the ends of all runs that are over.
  void finish_timeline() { device_times_.finish(); }

  OpPrograms& op_programs() { return op_programs_; }  // of the step that was repeated last

 private:
  void recover(Run& run, std::exception_ptr error);
  bool run_device_step(const Step& step, std::vector<BufferRef>& slots, const Run& run);  // whether it has consumed inputs
  void resize_on_host(Buffer& source, Buffer& buffer);
  void run_host_step(const Step& step, std::vector<BufferRef>& slots, const Run& run);
  void settle(const Run& run);
  void copy_in(const HostValue& value, Buffer& buffer);
  // The buffer gets memory, which the transfer fills from then on; `counter` counts the bytes, `source` is what it reads.
  void fill(Buffer& buffer, TypeId stored, ltc_transfer_args args, metrics::Counter& counter, HostValue source = {});
  // Does `work`, which asks the device for bytes_wanted() for the user's line `where`. Where the device has no memory for it,
  // does it once more when all that was submitted is over.
  template <typename Bytes, typename Work>
  auto with_memory(LocationId where, Bytes bytes_wanted, Work work);
  void create(Buffer& buffer, TypeId stored);                          // gives it memory
  BufferRef new_buffer(const Step& step, size_t output, TypeId type);  // of an output of the step
  void try_reopen() noexcept;
  void limit_pending(size_t at_most);
  void limit_uploading(size_t at_most_bytes);

  // Belongs to the call that is made, and is kept so that the next one allocates nothing.
  struct Scratch {
    std::vector<BufferRef> slots;
    std::vector<ltc_buffer*> inputs, outputs;
    std::vector<uint8_t> donate;
    std::vector<ltc_scalar> scalars;
  };

  DeviceMemory& memory_;
  const size_t pending_limit_;
  Scratch scratch_;
  // Runs that an asynchronous device may still work on, and transfers that may still read host memory.
  std::deque<std::shared_ptr<Completion>> pending_;
  std::deque<std::pair<std::shared_ptr<Completion>, size_t>> uploading_;  // and how many bytes
  size_t uploading_bytes_ = 0;
  OpPrograms op_programs_;
  std::shared_ptr<Completion> newest_;
  std::atomic<bool> is_asynchronous_{false};
  DeviceTimes device_times_;
  const std::unique_ptr<ResultCheck> check_;  // null where LTC_CHECK asks for none
};

}  // namespace ltc
