// The one queue of a device: a thread that hands work to the plugin in the order in which it was submitted.
//
// Everything that touches the device goes through here, so the plugin sees transfers and runs one after the other, and what is
// submitted first runs first. The thread starts at the first submission and ends with stop().
// Short work is done at once by who submits it, if the queue is idle: waking the thread would cost more than the work. Where it
// comes at the rate of small steps the thread spins instead and does it beside what the program does next.
// Threads: all members from any thread, except where stated.
// Errors: of a submission's own work ride in the buffers that it was to produce and are thrown by download(). Work that read
//   such a buffer fails with the same error without running; later work goes on. A run that names its step is repeated op by op
//   (recovery.h): only what depends on the op that failed is lost.
// Signals: what waits in a thread of the program throws what check_interrupt() throws; what was submitted goes on.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <optional>
#include <thread>

#include "core/base/spin_lock.h"
#include "core/compile/cache/cache.h"
#include "core/compile/lowering/program.h"
#include "core/compile/lowering/type_demotion.h"
#include "core/report/metrics.h"
#include "core/run/queue/adaptive_spin.h"
#include "core/run/queue/buffer.h"
#include "core/run/queue/device_memory.h"
#include "core/run/queue/fence.h"
#include "core/run/queue/host_ops.h"
#include "core/run/queue/in_flight_limit.h"
#include "core/run/queue/undo.h"

namespace ltc {

// Whether work may be handed to a plugin in the calling thread: installed by the part of the core that knows which state of a
// thread would leak into a plugin. Without one, everything is the queue's thread's.
using RunsHere = bool (*)();
void set_runs_here(RunsHere may_run);

// What a reader of a value gets for an error of the core: throws it as a type that the reader knows, or returns for it to be
// thrown as it is. Installed by the part of the core that knows such types.
using ThrowToReader = void (*)(const Error& error);
void set_throw_to_reader(ThrowToReader throw_to_reader);
[[noreturn]] void throw_to_reader(const std::exception_ptr& error);

struct Run {
  std::shared_ptr<const Program> program;  // null: it could not be compiled, for the reason `refusal`
  std::vector<BufferRef> inputs;           // those of the step, else the program's; donated where the run has the last reference
  std::vector<Scalar> scalars;             // the same
  std::vector<BufferRef> outputs;
  uint64_t id = 0;
  bool is_awaited = false;  // who submits it will wait for a result at once
  // The step that the program was compiled from: if the run fails, it is repeated op by op. Null: all outputs fail with the run.
  std::shared_ptr<const RecordedStep> step = {};
  Undo undo = {};
  std::exception_ptr refusal = {};

  // Of the program's params, by their order.
  const BufferRef& input(size_t i) const { return inputs[step ? step->buffers[i] : i]; }
  const Scalar& scalar(size_t i) const { return scalars[step ? step->scalars[i] : i]; }
};

class DeviceQueue : public DeviceMemory {
 public:
  // `runs_in_flight`: runs of any length that may be queued or running before execute() blocks; short ones may be more.
  DeviceQueue(std::unique_ptr<host::PluginDevice> device, size_t runs_in_flight);
  ~DeviceQueue();

  const TypeDemotion& demotion() const { return demotion_; }  // of what the device keeps

  // A buffer of `value`. The bytes are kept until they were uploaded: a long value at its place in the order, a short one when it
  // is first read, so that it wakes nobody. Returns at once, unless so many bytes wait already that the host would come to hold
  // a second copy of a model on its way to the device.
  BufferRef upload(HostValue value);

  // Whether the device copies from that one without the host's memory: both are of one plugin that does, and keep the type alike.
  bool copies_from(const DeviceQueue& other, TypeId type) const;
  // A buffer of what `source`, of such a queue, will hold. Returns at once: this queue waits for that one.
  BufferRef copy_from_peer(BufferRef source);

  // A buffer of `type` that begins as `source`, of this queue, does, as far as both go; zero behind that. Returns at once.
  BufferRef resized(BufferRef source, TypeId type);

  // Returns when there is room for a run, until another thread takes it. To be called where signal handlers may run, which
  // execute() does not let them.
  void await_room();

  // Returns when the run is queued, which is before it has run, or when there is room. Where it throws, the outputs fail
  // with the same error.
  void execute(Run run);

  // Copies the buffer's bytes (dense row-major) to `to`; waits for them. Throws the error of whatever failed to produce them.
  // Where the wait is interrupted, the copy goes on: `memory` is what keeps `to` alive.
  void download(const BufferRef& buffer, void* to, std::shared_ptr<void> memory = nullptr);

  // A fence at this point of the queue's order. A timed one has the device finish what came before, so that its time is exact.
  std::shared_ptr<Fence> add_fence(bool timed = false);
  // Throws the error of what was to produce the buffer, and the failure of a run that nobody was told of. After a drain.
  static void check(const Buffer& buffer);

  void drain();  // returns when all that was submitted before is done on the device; throws no errors
  void rest();   // the same, and ends the thread; a later submission begins another
  // Drains, ends the thread; afterwards every submission throws Error(kCancelled). From inside of this queue's own work, whose
  // plugin ends the process, it waits for nothing.
  void stop();

 private:
  friend class Recovery;

  struct Task {
    std::function<void()> work;
    std::optional<int64_t> run_ns = {};   // of a run: how long it is expected to take; once queued, as the limit counts it
    std::function<void()> announce = {};  // that it is done; called when the queue no longer counts as busy with it
  };

  template <typename HasRoom>
  void await_room(std::unique_lock<std::mutex>& lock, HasRoom has_room);  // or that the queue stops; in slices
  void submit(Task task);
  struct Staged;
  void reserve_staging(size_t bytes);
  void work();
  void spin_then_park(std::unique_lock<std::mutex>& lock);
  bool runs_beside(const Run& run) const;
  void refuse_after_stop() const;
  bool take(Task& task);
  template <typename Work>
  bool try_here(Work work);

  void require(Buffer& buffer);
  static void tell(const Buffer& buffer);  // throws what a reader of the buffer is to know
  // A new buffer that make(source, buffer) fills when its turn comes; it throws what the buffer's readers meet.
  template <typename Make>
  BufferRef make_from(BufferRef source, TypeId type, Make make);
  void run_upload(const HostValue& value, Buffer& buffer);
  void run_copy_from_peer(const Buffer& source, Buffer& buffer);
  void run_resize(Buffer& source, Buffer& buffer);
  void run_program(Run& run);
  void run_steps(const Run& run);
  void recover(Run& run, std::exception_ptr error);
  void copy_buffer(Buffer& source, Buffer& buffer);
  bool run_device_step(const Step& step, std::vector<BufferRef>& slots, const Run& run);  // whether it has consumed inputs
  void settle(const Run& run);
  void run_host_step(const Step& step, std::vector<BufferRef>& slots, const Run& run);
  template <typename Work>
  auto with_memory(Work work);
  void limit_pending(size_t at_most);
  void limit_sending(size_t at_most_bytes);
  struct CopyOut;
  struct Download;
  bool would_wait(const Run& run);
  void copy_in(const HostValue& value, Buffer& buffer);
  // The buffer gets memory, which the transfer fills from then on; `counter` counts the bytes, `source` is what it reads.
  void fill(Buffer& buffer, TypeId stored, ltc_transfer_args args, metrics::Counter& counter, HostValue source = {});

  const TypeDemotion demotion_;
  const size_t pending_limit_;  // runs that an asynchronous device may have before it

  std::mutex mutex_;
  std::condition_variable wake_, room_;
  std::deque<Task> tasks_;
  // What an asynchronous device may still work on: runs, and transfers that read host memory. Queue thread only.
  std::deque<std::shared_ptr<Completion>> pending_;
  std::deque<std::pair<std::shared_ptr<Completion>, size_t>> uploading_;  // and how many bytes
  size_t sending_bytes_ = 0;
  OpPrograms op_programs_;              // of the step that was repeated last; whoever runs a task
  std::shared_ptr<Completion> newest_;  // submitted, a run or a transfer; null: all is done
  InFlightLimit in_flight_;             // of runs queued or running
  size_t staged_bytes_ = 0;             // of long values queued
  SpinPolicy spin_policy_;
  std::atomic<bool> is_asynchronous_{false};             // the device: it has said of a run that it goes on
  alignas(kCacheLine) std::atomic<bool> wanted_{false};  // there is a reason not to sleep
  bool running_ = false;                                 // the queue's thread runs a task, or somebody does in its place
  bool sleeping_ = false;
  std::atomic<bool> stopping_{false};  // set under the mutex
  std::thread thread_;
};

}  // namespace ltc
