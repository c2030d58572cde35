// The one queue of a device: a thread that hands work to the plugin in the order in which it was submitted.
//
// Everything that touches the device goes through here, so the plugin sees transfers and runs one after the other, and what is
// submitted first runs first. It joins the thread and the order (task_queue.h) with the work on the plugin (executor.h), whose
// headers say more of threads, signals and errors.
// Threads: all members from any thread, except where stated.
// Errors: download() throws those of the work that was to produce the buffer.
#pragma once

#include <memory>

#include "core/run/queue/buffer.h"
#include "core/run/queue/device_memory.h"
#include "core/run/queue/executor.h"
#include "core/run/queue/fence.h"
#include "core/run/queue/task_queue.h"

namespace ltc {

class DeviceQueue : public DeviceMemory {
 public:
  // `runs_in_flight`: runs of any length that may be queued or running before execute() blocks; short ones may be more.
  DeviceQueue(std::unique_ptr<host::PluginDevice> device, size_t runs_in_flight);

  // A buffer of `value`. The bytes are kept until they were uploaded: a long value at its place in the order, a short one when it
  // is first read, so that it wakes nobody. Returns at once, unless so many bytes wait already that the host would come to hold
  // a second copy of a model on its way to the device. With no lock of ours held: the history of the memory asks for the line.
  BufferRef upload(HostValue value);

  // Whether the device copies from that one without the host's memory: both are of one plugin that does, and keep the type alike.
  bool copies_from(const DeviceQueue& other, TypeId type) const;
  // A buffer of what `source`, of such a queue, will hold. Returns at once: this queue waits for that one.
  BufferRef copy_from_peer(BufferRef source);

  // A buffer of `type` that begins as `source`, of this queue, does, as far as both go; zero behind that. Returns at once.
  BufferRef resized(BufferRef source, TypeId type);

  void start() { tasks_.start(); }  // the thread, which the first step would else wait for

  // Returns when there is room for a run, until another thread takes it. To be called where signal handlers may run, which
  // execute() does not let them.
  void await_room() { tasks_.await_room(); }

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

  // Computes a graph here and on the CPU (result_check.h). Waits.
  std::string compare_with_cpu(const Graph& graph, const std::vector<HostValue>& inputs);

  // Opens the device again if it was lost, behind all that was submitted before. Throws what that throws.
  void reopen_if_lost();

  void drain();  // returns when all that was submitted before is done on the device; throws no errors
  void rest();   // the same, and ends the thread; a later submission begins another
  // Drains, ends the thread; afterwards every submission throws Error(kCancelled). From inside of this queue's own work, whose
  // plugin ends the process, it waits for nothing.
  void stop();

 private:
  struct Staged;
  struct Download;

  bool runs_beside(const Run& run) const;
  // Does the work when its turn comes; waits for it. Returns or throws what it does.
  template <typename Work>
  auto wait_for(Work work);
  // A new buffer that make(source, buffer) fills when its turn comes; it throws what the buffer's readers meet.
  template <typename Make>
  BufferRef make_from(BufferRef source, TypeId type, Make make);

  DeviceExecutor executor_;
  TaskQueue tasks_;  // its thread ends before the executor
};

}  // namespace ltc
