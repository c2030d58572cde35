// A device as the program sees it: records ops into a trace, and at a barrier has the trace compiled and queued.
//
// Threads: any thread may record and sync. One mutex guards the trace and is held for the recording of one op and for cutting the
//   trace, never while a program is compiled, run or waited for. A second one keeps barriers in order.
#pragma once

#include <mutex>
#include <unordered_map>

#include "core/base/api.h"
#include "core/base/spin_lock.h"
#include "core/compile/cache.h"
#include "core/run/lazy_storage.h"
#include "core/run/metrics.h"
#include "core/run/queue.h"

namespace ltc {

// A read of a value through a geometry: the view's type carries its strides.
struct ViewKey {
  ValueId value;
  TypeId view;
  int64_t offset;  // in elements
  bool operator==(const ViewKey&) const = default;
};
struct ViewKeyHash {
  size_t operator()(const ViewKey& key) const {
    return hash_mix(uint64_t{key.value} << 32 | key.view, static_cast<uint64_t>(key.offset));
  }
};

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

  // Waits until all that was queued is done.
  void wait();

  // The program that a barrier would run now, as text: for people and tests.
  std::string trace_text();

 private:
  friend class Recorder;
  friend class LazyStorage;

  struct Cut {
    Trace trace;
    std::vector<LocationId> locations;
    std::vector<Root> roots;
    std::vector<BufferRef> inputs, outputs;
    std::vector<Scalar> scalars;
  };

  // The barrier and its steps. With LTC_EAGER, returns what it computes.
  std::vector<BufferRef> run(std::string_view reason);
  void collect_roots(std::vector<Root>& roots) const;
  void cut(Cut& cut);
  const CachedProgram& look_up(Cut& cut);
  const CachedProgram& compile(Cut& cut);
  void enqueue(const CachedProgram& program, Cut& cut);
  void recycle(Cut& cut);

  void link(LazyStorage& storage, ValueId value);
  void unlink(LazyStorage& storage);
  void forget(LazyStorage& storage);  // it is being destroyed

  const uint32_t ordinal_;
  const bool is_eager_;
  const size_t trace_limit_;
  DeviceQueue queue_;

  SpinLock mutex_;  // guards what follows, and the fields of this device's storages
  uint32_t epoch_ = 1;
  Trace trace_;
  std::vector<LocationId> locations_;  // of the trace's nodes, in order; no part of its identity
  std::vector<LazyStorage*> owners_;   // by value: who holds it, null if nobody does or it is a param
  std::vector<BufferRef> inputs_;      // of the trace's param records, in order
  std::vector<Scalar> scalars_;        // of its scalar records, in order
  std::unordered_map<ViewKey, ValueId, ViewKeyHash> views_;
  int64_t recorded_ = 0;

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
  TypeId type_of_value(ValueId value) const { return device_.trace_.records[value].type; }

  // The same value read twice through one geometry is one node.
  ValueId find_view(const ViewKey& key) const;  // kNone if it is the first
  void remember_view(const ViewKey& key, ValueId value) { device_.views_.emplace(key, value); }

  // The storage now holds this value, with these declared strides. `type` must be dense.
  void bind(LazyStorage& storage, ValueId value, TypeId type);
  // `to` holds what `from` holds: values are immutable, so nothing is copied.
  void share(LazyStorage& to, const LazyStorage& from, TypeId type);
  void bind(LazyStorage& storage, BufferRef buffer, TypeId type);

  void release() { lock_.unlock(); }  // early; nothing but the destructor may follow

  // The trace has grown beyond what one program should be: end_trace() once this recorder is gone.
  bool is_long() const { return device_.trace_.records.size() >= device_.trace_limit_; }

 private:
  static void set_type(LazyStorage& storage, TypeId type);

  LazyDevice& device_;
  const LocationId location_;
  std::vector<BufferRef> dropped_;  // destroyed after the lock: that may call the plugin
  std::unique_lock<SpinLock> lock_;
};

}  // namespace ltc
