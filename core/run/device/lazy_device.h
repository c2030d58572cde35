// A device as the program sees it: records ops into a trace, and at a barrier has the trace compiled and queued.
//
// Threads: any thread may record and sync. One mutex guards the trace and is held for the recording of one op and for cutting the
//   trace, never while a program is compiled, run or waited for. A second one keeps barriers in order.
#pragma once

#include <mutex>
#include <utility>

#include "core/base/api.h"
#include "core/base/spin_lock.h"
#include "core/compile/cache/cache.h"
#include "core/compile/lowering/prefetch.h"
#include "core/compile/lowering/symbolic_programs.h"
#include "core/report/metrics.h"
#include "core/run/device/auto_steps.h"
#include "core/run/device/background_compiler.h"
#include "core/run/device/capture_state.h"
#include "core/run/device/trace_splits.h"
#include "core/run/device/trace_state.h"
#include "core/run/process/fork.h"
#include "core/run/process/interrupt.h"
#include "core/run/process/process_end.h"
#include "core/run/queue/queue.h"
#include "core/run/reads/host_values.h"

namespace ltc {

struct CompiledProgram;
struct CompileTarget;
enum class Effort : uint32_t;

class Capture;
class LazyDevice;
struct Captured;

// A point in a device's work, as torch.Event is: behind what was recorded before.
//
// To record one does not end the step. To ask or to wait does, if the point is in a step that is still being recorded. Then it is
// reached when all of that step has run, with what was recorded behind the point. Threads: any. Gone before the device.
class LTC_API Event {
 public:
  explicit Event(LazyDevice& device) : device_(device) {}

  bool reached();
  void wait();
  // When it was reached, on the clock of timeline::now_ns(). Only of one with time, and once it is reached.
  uint64_t time_ns();

 private:
  friend class LazyDevice;
  std::shared_ptr<Fence> fence();  // null if the queue has refused the step

  LazyDevice& device_;
  std::shared_ptr<Fence> fence_;  // null while the step is recorded; guarded by the device's mutex
};

// How far the recording is: equal as long as nothing is recorded and no step ends.
struct TraceExtent {
  uint32_t epoch = 0;
  size_t records = 0;
  bool operator==(const TraceExtent&) const = default;
};

// The front end's function that records something ahead of a device's first step and throws it away. A thread of its own calls
// it. Throws nothing; false if it could not record.
using WarmUp = bool (*)(LazyDevice&);
void set_warm_up(WarmUp function);

class LTC_API LazyDevice {
 public:
  // `ordinal` among this process' devices.
  LazyDevice(uint32_t ordinal, std::unique_ptr<host::PluginDevice> device);

  uint32_t ordinal() const { return ordinal_; }
  DeviceQueue& queue() { return queue_; }

  // The barrier: everything that somebody still holds is compiled (or found) and queued; returns before it has run. `reason` is
  // the counter to count. Throws what compiling throws; the values are then poisoned with the same error and recording goes on
  // afresh.
  void sync(std::string_view reason);

  // The storage's value as a buffer, after a barrier if it is only traced. Null for an empty storage.
  BufferRef computed(LazyStorage& storage, std::string_view reason);

  // The traced value of the storage if the host can compute it without a barrier (host_values.h), else null data. Runs PyTorch's
  // CPU kernels in this thread.
  HostValue host_value(LazyStorage& storage);

  TraceExtent trace_extent();

  // An event behind what was recorded so far. One with time ends the step.
  std::shared_ptr<Event> record_event(bool timed);

  // To be called before an op is recorded if Recorder::may_end(), no recorder being alive: a barrier if the trace is to end here.
  void before_op(CalledOp op);
  void before_op(OpId op);  // the same, whether or not it may end
  // To be called when an op was recorded, no recorder being alive: with LTC_EAGER the op runs now, and its error is thrown here.
  void end_op() {
    if (is_eager_) [[unlikely]]
      run_op();
  }
  // To be called around each step of an optimizer (auto_steps.h).
  void optimizer_begins();
  void optimizer_ends();

  // The declared type of what each storage holds, kNoType of an empty one, and the first that is the same storage.
  struct StorageSnapshot {
    TypeId type;
    uint32_t first;
    bool operator==(const StorageSnapshot&) const = default;
  };
  void describe(std::span<LazyStorage* const> storages, std::vector<StorageSnapshot>& held);

  // Runs a captured function: of `storages`, the first are its arguments, the others its results. Returns before it has run.
  // Where an argument is only traced, a short function is recorded into that step; a barrier ends the step before any other.
  void call(const Captured& captured, std::span<const Scalar> scalars, std::span<LazyStorage* const> storages);

  // Waits until all that was queued is done.
  void wait();
  // Before the process forks: ends the threads that compile and load for later steps. A child would have the locks that they
  // hold.
  void end_background_work();
  // For the end of the process: what DeviceTable says of these.
  void rest();
  void stop();

  // The program that a barrier would run now, as text: for people and tests.
  std::string trace_text();

 private:
  friend class Capture;
  friend class Event;
  friend class Recorder;
  friend class LazyStorage;

  struct PendingStep {
    Trace trace;
    std::vector<LocationId> locations;
    std::vector<Root> roots;
    std::vector<BufferRef> inputs, outputs;
    std::vector<Scalar> scalars;
    Undo undo;
    std::vector<std::weak_ptr<Event>> events;
    uint32_t precision = 0;  // see compile/lowering/precision.h; set when it is looked up
  };

  // The barrier and its steps; `is_awaited`: its caller waits for the results. With LTC_EAGER, returns what it computes.
  std::vector<BufferRef> run(std::string_view reason, bool is_awaited);
  std::vector<BufferRef> run_step(std::string_view reason, bool is_awaited);
  bool has_records() { return trace_extent().records != 0; }
  static void collect_roots(const TraceState& trace_state, std::vector<Root>& roots);
  void cut(PendingStep& step, std::string_view reason);
  void queue_events(PendingStep& step);
  std::shared_ptr<Fence> fence_of(const Event& event);
  void await_op(size_t records);
  std::string_view reason_to_end(CalledOp op);
  void run_op();
  void promise(PendingStep& step, LazyStorage* owners, size_t root);
  // The program of a step. Where it `is_kept`, for calls that will not look it up again, it has the usual effort.
  const CachedProgram& look_up(PendingStep& step, bool is_kept = false);
  const CachedProgram* replace_interim(const CachedProgram& known, bool is_kept);
  // `may_be_replaced`: a better program may take this one's place later.
  const CachedProgram& compile(PendingStep& step, bool may_be_replaced);
  CompiledProgram build(const Graph& graph, const CompileTarget& target, Effort effort);
  CompiledProgram build_interim(const Graph& graph, const CompileTarget& target, std::shared_ptr<BackgroundJob>& awaited);
  // Opens a lost device again and forgets what was compiled for it. With submission_ held.
  void reopen_if_lost();
  void forget_symbolic_programs();
  std::shared_ptr<const Program> program_of(const Captured& captured);  // compiled again if the device was lost since
  void enqueue(const CachedProgram& program, PendingStep& step, bool is_awaited);
  void enqueue_refused(PendingStep& step, std::exception_ptr refusal);
  bool replay(const Captured& captured, std::span<const Scalar> scalars, std::span<LazyStorage* const> storages);
  bool bind_call(const Captured& captured, std::span<LazyStorage* const> storages, Run& run, std::vector<BufferRef>& bound);
  void recycle(PendingStep& step);

  // Every way to record or to wait begins here, with no lock held.
  static void enter() {
    if (process_is_ending()) [[unlikely]]
      stop_this_thread();
    refuse_after_fork();
  }
  // The calling thread's: of its capture on this device, or everybody's.
  TraceState& trace_state() { return t_capture ? trace_state_within_capture() : trace_state_; }
  TraceState& trace_state_within_capture();
  TraceState* trace_state_of(const LazyStorage& storage);  // on which the storage's value is; null if it was cut
  static void link(TraceState& trace_state, LazyStorage& storage, ValueId value) {
    storage.epoch_ = trace_state.epoch;
    storage.value_ = value;
    storage.next_owner_ = std::exchange(trace_state.owners[value], &storage);
  }
  // One more input that nobody but the trace holds.
  void note_held(TraceState& trace_state, TypeId type) {
    trace_state.held_bytes += type_of(type).size_bytes();
    if (trace_state.held_bytes > most_held_bytes_ && !trace_state.is_capture) trace_state.limit = 0;
  }
  void unlink(LazyStorage& storage);
  void forget(LazyStorage& storage);  // it is being destroyed
  bool forget_record(LazyStorage& storage);

  const uint32_t ordinal_;
  const bool is_eager_;
  DeviceQueue queue_;
  const size_t most_held_bytes_;  // by a trace alone

  // Guards what follows, and the fields of this device's storages. Every op writes it: apart from what the queue's thread looks
  // at while it spins.
  alignas(kCacheLine) SpinLock mutex_;
  uint32_t last_epoch_ = 1;
  TraceState trace_state_{.epoch = 1};
  std::vector<TraceState*> captures_;
  std::vector<std::weak_ptr<Event>> events_;  // in the trace
  TraceSplits splits_;
  size_t next_split_ = 0;  // in records: of the trace
  AutoSteps auto_steps_;
  uint32_t replayed_in_ = 0;  // the last epoch in which a captured function was
  uint64_t stamp_ = 0;        // of the last describe()

  std::timed_mutex submission_;  // held from cutting a trace to queueing its run; no signal handler runs meanwhile
  ProgramCache cache_;
  HostValues host_values_;
  std::shared_ptr<SymbolicPrograms> symbolic_;  // of a plugin that understands it
  PendingStep spare_;                           // keeps its memory from barrier to barrier
  uint64_t run_id_ = 0;
  uint32_t generation_ = 1;                       // of the device for which the programs were compiled
  std::optional<Prefetch> prefetch_;              // of what is on the disk; its thread ends before what it uses
  std::optional<BackgroundCompiler> background_;  // with LTC_BACKGROUND_COMPILE; its thread ends before what it uses
};

}  // namespace ltc
