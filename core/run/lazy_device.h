// A device as the program sees it: records ops into a trace, and at a barrier has the trace compiled and queued.
//
// Threads: any thread may record and sync. One mutex guards the trace and is held for the recording of one op and for cutting the
//   trace, never while a program is compiled, run or waited for. A second one keeps barriers in order.
#pragma once

#include <mutex>

#include "core/base/api.h"
#include "core/base/spin_lock.h"
#include "core/compile/cache.h"
#include "core/run/metrics.h"
#include "core/run/queue.h"
#include "core/run/tape.h"

namespace ltc {

class Capture;
struct Captured;

// What the calling thread is capturing; null mostly. Through a pointer of the model that needs no call.
extern LTC_API thread_local constinit Capture* t_capture __attribute__((tls_model("initial-exec")));

class LTC_API LazyDevice {
 public:
  // The device of that ordinal; the first use of any loads the plugins that LTC_BACKEND names. Throws what that throws, and
  // Error(kInvalidArgument) with both numbers for an ordinal that no plugin has.
  static LazyDevice& get(uint32_t ordinal);
  static uint32_t count();                           // loads the plugins too
  static void for_each(void (*visit)(LazyDevice&));  // those in use
  static void shut_down();                           // drains and stops the queues; for the end of the process

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

  // To be called when an op was recorded, no recorder being alive: with LTC_EAGER the op runs now, and its error is thrown here.
  void end_op() {
    if (is_eager_) [[unlikely]]
      end_trace();
  }
  // The same for an op after which Recorder::is_long(); without LTC_EAGER, syncs.
  void end_trace();

  // The declared type of what each storage holds, kNoType of an empty one, and the first that is the same storage.
  struct Held {
    TypeId type;
    uint32_t first;
    bool operator==(const Held&) const = default;
  };
  void describe(std::span<LazyStorage* const> storages, std::vector<Held>& held);

  // Runs a captured function: of `storages`, the first are its arguments, the others its results. Returns before it has run.
  void call(const Captured& captured, std::span<const Scalar> scalars, std::span<LazyStorage* const> storages);

  // Waits until all that was queued is done.
  void wait();

  // The program that a barrier would run now, as text: for people and tests.
  std::string trace_text();

 private:
  friend class Capture;
  friend class Recorder;
  friend class LazyStorage;

  struct Cut {
    Trace trace;
    std::vector<LocationId> locations;
    std::vector<Root> roots;
    std::vector<BufferRef> inputs, outputs;
    std::vector<Scalar> scalars;
    uint32_t precision = 0;  // see compile/precision.h; set when it is looked up
  };

  // The barrier and its steps. With LTC_EAGER, returns what it computes.
  std::vector<BufferRef> run(std::string_view reason);
  static void collect_roots(const Tape& tape, std::vector<Root>& roots);
  void cut(Cut& cut);
  const CachedProgram& look_up(Cut& cut);
  const CachedProgram& compile(Cut& cut);
  void enqueue(const CachedProgram& program, Cut& cut);
  bool bind_call(const Captured& captured, std::span<LazyStorage* const> storages, Run& run, std::vector<BufferRef>& bound);
  void submit(Run run);
  void recycle(Cut& cut);

  static void enter();                        // every way to record or to wait begins here, with no lock held
  Tape& tape();                               // the calling thread's: of its capture on this device, or everybody's
  Tape* tape_of(const LazyStorage& storage);  // on which the storage's value is; null if it was cut
  static void link(Tape& tape, LazyStorage& storage, ValueId value);
  void unlink(LazyStorage& storage);
  void forget(LazyStorage& storage);  // it is being destroyed

  const uint32_t ordinal_;
  const bool is_eager_;
  const size_t trace_limit_;
  DeviceQueue queue_;

  SpinLock mutex_;  // guards what follows, and the fields of this device's storages
  uint32_t last_epoch_ = 1;
  Tape tape_{.epoch = 1};
  std::vector<Tape*> captures_;
  uint64_t stamp_ = 0;  // of the last describe()

  std::mutex submission_;  // held from cutting a trace to queueing its run
  ProgramCache cache_;
  Cut spare_;  // keeps its memory from barrier to barrier
  uint64_t run_id_ = 0;
};

// Recording of one op: holds the device's mutex. Keep it short, call no PyTorch and no plugin meanwhile.
class Recorder {
 public:
  explicit Recorder(LazyDevice& device);

  // Whether anything was ever written, and the declared type of what was.
  bool is_empty(const LazyStorage& storage) const { return storage.type_ == kNoType; }
  TypeId type(const LazyStorage& storage) const { return storage.type_; }
  const Type& declared(const LazyStorage& storage) const { return *storage.declared_; }

  ValueId read(LazyStorage& storage);            // its value in this trace; not of an empty one
  ValueId input(BufferRef buffer, TypeId type);  // a buffer that no storage holds
  ValueId scalar(DType dtype, Scalar value);
  ValueId node(OpId op, TypeId type, AttrsId attrs, std::span<const ValueId> inputs);
  ValueId result(ValueId node, uint32_t index, TypeId type);  // directly after the node
  TypeId type_of_value(ValueId value) const { return tape_.trace.records[value].type; }

  // The same value read twice through one geometry is one node.
  ValueId find_view(const ViewKey& key) const;  // kNone if it is the first
  void remember_view(const ViewKey& key, ValueId value) { tape_.views.emplace(key, value); }

  // The storage now holds this value, with these declared strides. `type` must be dense.
  void bind(LazyStorage& storage, ValueId value, TypeId type);
  // `to` holds what `from` holds: values are immutable, so nothing is copied.
  void share(LazyStorage& to, LazyStorage& from, TypeId type);
  void bind(LazyStorage& storage, BufferRef buffer, TypeId type);

  // The trace has grown beyond what one program should be: end_trace() once this recorder is gone.
  bool is_long() const { return tape_.trace.records.size() >= device_.trace_limit_ && !tape_.is_capture; }

 private:
  friend class LazyDevice;
  static void set_type(LazyStorage& storage, TypeId type);
  bool is_inside(const LazyStorage& storage) const;
  void check_readable(const LazyStorage& storage) const;
  void check_writable(const LazyStorage& storage) const;

  LazyDevice& device_;
  Tape& tape_;
  const LocationId location_;
  std::vector<BufferRef> dropped_;  // destroyed after the lock: that may call the plugin
  std::unique_lock<SpinLock> lock_;
};

}  // namespace ltc
