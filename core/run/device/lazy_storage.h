// The contents of a tensor storage: one immutable value at a time. A write binds a new value. Earlier readers keep the old one.
#pragma once

#include "core/base/pool.h"
#include "core/ir/trace.h"
#include "core/run/queue/buffer.h"

namespace ltc {

class LazyDevice;

// States:
//   empty     nothing was ever written (torch.empty); reads as zeros
//   traced    a value of the device's current trace: `epoch` is the trace's and `value` its record
//   computed  a buffer, perhaps still being computed; also in `entry` once the current trace has read it
// The fields belong to LazyDevice and are guarded by its mutex.
class LazyStorage final : public Pooled<LazyStorage> {
 public:
  explicit LazyStorage(LazyDevice& device) : device_(device) {}
  ~LazyStorage();
  LazyStorage(const LazyStorage&) = delete;
  LazyStorage& operator=(const LazyStorage&) = delete;

  LazyDevice& device() const { return device_; }
  const BufferRef& buffer() const { return buffer_; }  // under the device's mutex

  // For the last owner, who is about to destroy the storage: true if that will wait for nothing. False of one with a buffer,
  // whose memory goes back to the plugin.
  bool forget_record();

 private:
  friend class Capture;
  friend class LazyDevice;
  friend class Recorder;

  bool is_empty() const { return type_ == kNoType; }
  void declare(TypeId id, const Type& type) { type_ = id, declared_ = &type; }

  LazyDevice& device_;
  const Type* declared_ = nullptr;
  TypeId type_ = kNoType;  // of the value, with the strides that the program was promised; dense
  uint32_t epoch_ = 0;
  ValueId value_ = kNone;
  uint32_t entry_epoch_ = 0;  // in this epoch the buffer that the storage then held was read as param `entry_`
  ValueId entry_ = kNone;
  uint32_t before_ = kNone;   // while traced: what it held before `value_`, an index into the trace state's history
  uint32_t stamp_index_ = 0;  // where the storage stood first in the list that got this stamp
  uint64_t stamp_ = 0;
  bool is_forgotten_ = false;          // by the device; its last owner's
  LazyStorage* next_owner_ = nullptr;  // another storage that holds the same value
  BufferRef buffer_;
};

}  // namespace ltc
