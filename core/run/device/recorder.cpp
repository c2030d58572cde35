#include "core/run/device/recorder.h"

#include "core/run/device/capture_state.h"

namespace ltc {

// Whether what the storage holds was made by this capture.
bool Recorder::is_inside(const LazyStorage& storage) const {
  if (storage.buffer_) return trace_state_.readable.contains(storage.buffer_);
  return storage.epoch_ == trace_state_.epoch;
}

void Recorder::check_readable(const LazyStorage& storage) const {
  ensure(!storage.is_empty(), "a storage without a value is read");
  if (trace_state_.is_capture && !is_inside(storage)) [[unlikely]]
    t_capture->refuse("a tensor was read that is no argument");
  if (!storage.buffer_) fail(Code::kInvalidArgument, kFromCapture);
  if (!trace_state_.is_capture) refuse_placeholder(storage);
}

// Throws for a placeholder of a function that another thread is recording, or that has been recorded.
void Recorder::refuse_placeholder(const LazyStorage& storage) const {
  if (storage.buffer_ && storage.buffer_->is_placeholder) [[unlikely]]
    fail(Code::kInvalidArgument, kIsPlaceholder);
}

// Notes what `value` takes the place of, for a run that fails; returns where. A value that only numbers make cannot fail, so the
// buffer before it need not be kept.
uint32_t Recorder::note_overwritten(const LazyStorage& storage, ValueId value) {
  if (value == kNone) return kNone;
  std::vector<Overwritten>& history = trace_state_.history;
  if (storage.epoch_ == trace_state_.epoch && storage.value_ != kNone) {
    history.push_back({.value = storage.value_, .before = storage.before_});
  } else if (storage.buffer_ && trace_state_.trace.reads_values(value)) {
    history.push_back({.buffer = storage.buffer_});
  } else {
    return kNone;
  }
  return static_cast<uint32_t>(history.size() - 1);
}

void Recorder::prepare_write(LazyStorage& storage, ValueId value) {
  if (trace_state_.is_capture && !storage.is_empty() && !is_inside(storage)) [[unlikely]]
    t_capture->refuse("a tensor was written that is no argument");
  if (!trace_state_.is_capture) refuse_placeholder(storage);
  storage.before_ = note_overwritten(storage, value);
  device_.unlink(storage);
  if (storage.buffer_) dropped_.push_back(std::move(storage.buffer_));
}

ValueId Recorder::enter_trace(LazyStorage& storage) {
  check_readable(storage);
  const ValueId value = add_input(storage.buffer_, storage.buffer_->type);
  storage.epoch_ = storage.entry_epoch_ = trace_state_.epoch;
  storage.value_ = storage.entry_ = value;
  storage.before_ = kNone;
  return value;
}

ValueId Recorder::input(BufferRef buffer, TypeId type) {
  device_.note_held(trace_state_, type);
  return add_input(std::move(buffer), type);
}

ValueId Recorder::add_input(BufferRef buffer, TypeId type) {
  if (trace_state_.is_capture) trace_state_.readable.insert(buffer);
  trace_state_.owners.push_back(nullptr);
  trace_state_.inputs.push_back(std::move(buffer));
  return trace_state_.trace.add_param(kOpParam, type);
}

ValueId Recorder::scalar(DType dtype, Scalar value) {
  static const TypeId types[] = {scalar_type(DType::kI64), scalar_type(DType::kF64), scalar_type(DType::kBool),
                                 scalar_type(DType::kC128)};
  const int index = dtype == DType::kI64 ? 0 : dtype == DType::kF64 ? 1 : dtype == DType::kBool ? 2 : 3;
  trace_state_.scalars.push_back(value);
  trace_state_.owners.push_back(nullptr);
  return trace_state_.trace.add_param(kOpScalar, types[index]);
}

ValueId Recorder::result(ValueId node, uint32_t index, TypeId type) {
  trace_state_.owners.push_back(nullptr);
  return trace_state_.trace.add_result(node, index, type);
}

ValueId Recorder::find_view(const ViewKey& key) const {
  const auto it = trace_state_.views.find(key);
  return it == trace_state_.views.end() ? kNone : it->second;
}

void Recorder::bind(LazyStorage& storage, BufferRef buffer, TypeId type) {
  prepare_write(storage, kNone);
  if (trace_state_.is_capture) trace_state_.readable.insert(buffer);
  storage.declare(type, type_of(type));
  storage.buffer_ = std::move(buffer);
}

void Recorder::share(LazyStorage& to, LazyStorage& from, TypeId type) {
  if (&to == &from) return;
  if (!from.buffer_) return bind(to, read(from), type);
  check_readable(from);
  bind(to, from.buffer_, type);
}

}  // namespace ltc
