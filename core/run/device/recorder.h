// Recording of one op on a device. The path of every op is inline: nanoseconds count.
#pragma once

#include "core/run/device/lazy_device.h"
#include "core/run/device/varying_offsets.h"

namespace ltc {

// Holds the device's mutex. Keep it short, call no PyTorch and no plugin meanwhile.
class Recorder {
 public:
  explicit Recorder(LazyDevice& device) : device_(device), trace_state_(device.trace_state()), location_(current_location()) {
    LazyDevice::enter();
    device_.mutex_.lock();
  }
  ~Recorder() { device_.mutex_.unlock(); }
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // Whether anything was ever written, and the declared type of what was.
  bool is_empty(const LazyStorage& storage) const { return storage.is_empty(); }
  bool is_traced(const LazyStorage& storage) const { return storage.epoch_ == trace_state_.epoch && storage.value_ != kNone; }
  TypeId type(const LazyStorage& storage) const { return storage.type_; }
  const Type& declared(const LazyStorage& storage) const { return *storage.declared_; }

  // Its value in this trace; not of an empty one.
  ValueId read(LazyStorage& storage) {
    if (storage.epoch_ == trace_state_.epoch && storage.value_ != kNone) [[likely]]
      return storage.value_;
    return enter_trace(storage);
  }
  ValueId input(BufferRef buffer, TypeId type);  // a buffer that no storage holds
  ValueId scalar(DType dtype, Scalar value);
  ValueId node(OpId op, TypeId type, AttrsId attrs, std::span<const ValueId> inputs) {
    return node(op, type, attrs, inputs, location_);
  }
  ValueId node(OpId op, TypeId type, AttrsId attrs, std::span<const ValueId> inputs, LocationId location) {
    trace_state_.owners.push_back(nullptr);
    trace_state_.locations.push_back(location);
    trace_state_.seen |= location & trace_state_.awaited;
    return trace_state_.trace.add_node(op, type, attrs, inputs);
  }
  ValueId result(ValueId node, uint32_t index, TypeId type);  // directly after the node
  TypeId type_of_value(ValueId value) const { return trace_state_.trace.records[value].type; }

  // The same value read twice through one geometry is one node.
  ValueId find_view(const ViewKey& key) const;  // kNone if it is the first
  void remember_view(const ViewKey& key, ValueId value) { trace_state_.views.emplace(key, value); }
  // Whether a read or write of this geometry takes its offset by value, at the line of the op that is recorded.
  bool offset_varies(TypeId geometry) const { return ltc::offset_varies(location_, geometry); }

  // The storage now holds this value, with these declared strides. `type` must be dense.
  void bind(LazyStorage& storage, ValueId value, TypeId type) { bind(storage, value, type, type_of(type)); }
  void bind(LazyStorage& storage, ValueId value, TypeId id, const Type& type) {
    if (!storage.is_empty()) prepare_write(storage, value);
    storage.declare(id, type);
    LazyDevice::link(trace_state_, storage, value);
  }
  // `to` holds what `from` holds: values are immutable, so nothing is copied.
  void share(LazyStorage& to, LazyStorage& from, TypeId type);
  void bind(LazyStorage& storage, BufferRef buffer, TypeId type);

  // Perhaps the trace should end before this op: LazyDevice::before_op() once this recorder is gone, and then another recorder.
  bool may_end() const {
    return trace_state_.trace.records.size() >= trace_state_.limit ||
           (trace_state_.seen != 0 && (location_ & kBackwardBits) == 0 && !within_backward());
  }
  // The op that is recorded now, before its first node.
  void begin(OpId op) {
    if (trace_state_.locations.empty()) [[unlikely]]
      trace_state_.first = {op, location_};
  }
  LocationId location() const { return location_; }

 private:
  friend class LazyDevice;
  bool is_inside(const LazyStorage& storage) const;
  void check_readable(const LazyStorage& storage) const;
  // It lets go of what it holds; `value`: of the trace, what it gets, or kNone for a buffer.
  void prepare_write(LazyStorage& storage, ValueId value);
  uint32_t note_overwritten(const LazyStorage& storage, ValueId value);
  void refuse_placeholder(const LazyStorage& storage) const;
  ValueId enter_trace(LazyStorage& storage);
  ValueId add_input(BufferRef buffer, TypeId type);

  LazyDevice& device_;
  TraceState& trace_state_;
  const LocationId location_;
  std::vector<BufferRef> dropped_;  // destroyed after the lock is given back: that may call the plugin
};

}  // namespace ltc
