#include "core/run/device/capture.h"

#include <algorithm>

#include "core/report/compiles.h"
#include "core/run/device/output_lines.h"
#include "core/run/device/recorder.h"

namespace ltc {
namespace {

// Records of a function that joins the step around it rather than end it: a barrier and a run cost more than to record so many.
constexpr size_t kShortRecording = 256;

}  // namespace

bool Captured::computes_like(const Captured& other) const {
  return program == other.program && inputs == other.inputs && outputs == other.outputs && scalar_of == other.scalar_of &&
         scalars.size() == other.scalars.size() && rng_uses == other.rng_uses && bindings == other.bindings;
}

Capture::Capture(LazyDevice& device) : CaptureState(device), outer_(t_capture) {
  if (device.is_eager_) fail(Code::kUnsupported, "nothing is captured with LTC_EAGER=1");
  trace_state_.is_capture = true;
  {
    std::lock_guard lock(device.mutex_);
    trace_state_.epoch = ++device.last_epoch_;
    device.captures_.push_back(&trace_state_);
  }
  t_capture = this;
}

Capture::~Capture() { end(); }

void Capture::end() {
  if (!std::exchange(is_open_, false)) return;
  t_capture = outer_;
  std::lock_guard lock(device_.mutex_);
  std::erase(device_.captures_, &trace_state_);
}

void Capture::add_argument(LazyStorage& placeholder, TypeId type) {
  auto buffer = std::make_shared<Buffer>(device_.queue_, type, /*is_placeholder=*/true);
  argument_of_.emplace(buffer.get(), static_cast<uint32_t>(placeholders_.size()));
  placeholders_.push_back(&placeholder);
  Recorder recorder(device_);
  recorder.bind(placeholder, std::move(buffer), type);
}

void Capture::note_draw(TypeId type, std::shared_ptr<void> generator) {
  const auto count = static_cast<uint32_t>(trace_state_.scalars.size());
  rng_uses_.push_back({count - 2, count - 1, type, std::move(generator)});
}

BindingSource Capture::source_of(const BufferRef& buffer) const {
  if (const auto it = argument_of_.find(buffer.get()); it != argument_of_.end()) return {BindingSource::kArgument, it->second};
  return {BindingSource::kConstant, 0, buffer};
}

// Whether what the storage holds was made by this capture. An empty one was never written, and reads as zeros.
bool Capture::holds_own(const LazyStorage& storage) const {
  if (storage.is_empty()) return true;
  return storage.buffer_ ? trace_state_.readable.contains(storage.buffer_)
                         : storage.epoch_ == trace_state_.epoch && storage.value_ != kNone;
}

// False where a storage does not hold what this capture has made.
bool Capture::bind_results(Captured& captured, std::span<LazyStorage* const> results, std::span<const Root> roots) const {
  std::vector<LazyStorage*> storages(placeholders_);
  storages.insert(storages.end(), results.begin(), results.end());
  if (!trace_state_.history.empty()) captured.undo.before.resize(roots.size(), kNone);
  for (uint32_t i = 0; i < storages.size(); ++i) {
    const LazyStorage& storage = *storages[i];
    if (!holds_own(storage)) return false;
    BindingSource source;
    if (storage.buffer_) {
      source = source_of(storage.buffer_);
    } else if (!storage.is_empty()) {
      source = {BindingSource::kOutput,
                static_cast<uint32_t>(std::ranges::find(roots, storage.value_, &Root::value) - roots.begin())};
      if (storage.before_ != kNone) captured.undo.before[source.index] = storage.before_;
    }
    const bool unchanged = i < placeholders_.size() && source.kind == BindingSource::kArgument && source.index == i;
    if (!unchanged && source.kind != BindingSource::kNothing) captured.bindings.push_back({i, std::move(source), storage.type_});
  }
  return true;
}

std::shared_ptr<const ShortRecording> Capture::recording(std::span<const Root> roots) const {
  auto recording = std::make_shared<ShortRecording>(trace_state_.trace, trace_state_.locations);
  for (const BufferRef& input : trace_state_.inputs) recording->reads.push_back(source_of(input));
  for (const Root& root : roots) recording->outputs.push_back(root.value);
  return recording;
}

Captured Capture::finish(std::span<LazyStorage* const> results, bool compiles) {
  LongCall call;
  Captured captured;
  LazyDevice::PendingStep step;
  bool is_own = false;
  {
    std::lock_guard lock(device_.mutex_);
    LazyDevice::collect_roots(trace_state_, step.roots);
    is_own = bind_results(captured, results, step.roots);
  }
  if (!is_own)
    refuse(
        "a result or a written argument holds what the function has not computed itself: a tensor from outside, or "
        "another thread's");
  end();
  metrics::counter(metrics::kCaptures) += 1;
  metrics::counter(metrics::kOpsRecorded) += static_cast<int64_t>(trace_state_.locations.size());
  captured.rng_uses = std::move(rng_uses_);
  captured.scalars = std::move(trace_state_.scalars);
  for (const Record& record : trace_state_.trace.records) {
    if (record.op == kOpScalar) captured.scalar_dtypes.push_back(type_of(record.type).dtype);
  }
  if (step.roots.empty()) return captured;
  for (const Root& root : step.roots) captured.outputs.push_back(trace_state_.trace.records[root.value].type);
  if (trace_state_.trace.records.size() <= kShortRecording) captured.recording = recording(step.roots);
  captured.output_lines = output_lines(trace_state_.trace, step.roots, trace_state_.locations);
  step.trace = std::move(trace_state_.trace);
  step.locations = std::move(trace_state_.locations);
  captured.locations = step.locations;
  if (!compiles) {
    for (const BufferRef& input : trace_state_.inputs) captured.inputs.push_back(source_of(input));
    captured.step =
        std::make_shared<RecordedStep>(RecordedStep{std::move(step.trace), std::move(step.roots), 0, std::move(step.locations)});
    return captured;
  }
  auto order = lock_in_slices(device_.submission_);
  const CachedProgram& found = device_.look_up(step, /*is_kept=*/true);
  captured.program = found.program;
  captured.precision = step.precision;
  captured.step = found.step;
  captured.scalar_of = found.step->scalars;
  for (const BufferRef& input : trace_state_.inputs) captured.inputs.push_back(source_of(input));
  note_overwritten(captured);
  order.unlock();
  tell_compiles();
  return captured;
}

void Capture::note_overwritten(Captured& captured) {
  captured.undo.history = std::move(trace_state_.history);
  for (Overwritten& overwritten : captured.undo.history) {
    captured.overwritten.push_back(overwritten.buffer ? source_of(std::exchange(overwritten.buffer, nullptr)) : BindingSource());
  }
}

namespace {

BufferRef held_at(const BindingSource& source, std::span<LazyStorage* const> storages, std::span<const BufferRef> outputs) {
  switch (source.kind) {
    case BindingSource::kArgument: return storages[source.index]->buffer();
    case BindingSource::kOutput: return outputs[source.index];
    case BindingSource::kConstant: return source.constant;
    case BindingSource::kNothing: break;
  }
  return nullptr;
}

}  // namespace

// False if an argument is only traced.
bool LazyDevice::bind_call(const Captured& captured, std::span<LazyStorage* const> storages, Run& run,
                           std::vector<BufferRef>& bound) {
  std::lock_guard lock(mutex_);
  for (const BindingSource& source : captured.inputs) run.inputs.push_back(held_at(source, storages, run.outputs));
  for (size_t i = 0; i < captured.overwritten.size(); ++i) {
    run.undo.history[i].buffer = held_at(captured.overwritten[i], storages, run.outputs);
  }
  for (const Binding& binding : captured.bindings) bound.push_back(held_at(binding.source, storages, run.outputs));
  const auto is_placeholder_buffer = [](const BufferRef& buffer) { return buffer && buffer->is_placeholder; };
  if (std::ranges::any_of(run.inputs, is_placeholder_buffer) || std::ranges::any_of(bound, is_placeholder_buffer))
    fail(Code::kInvalidArgument, kIsPlaceholder);
  const auto is_null = [](const BufferRef& buffer) { return !buffer; };
  if (std::ranges::any_of(run.inputs, is_null) || std::ranges::any_of(bound, is_null)) return false;
  for (size_t i = 0; i < bound.size(); ++i) {
    LazyStorage& storage = *storages[captured.bindings[i].storage];
    unlink(storage);
    storage.declare(captured.bindings[i].type, type_of(captured.bindings[i].type));
    std::swap(storage.buffer_, bound[i]);
  }
  return true;
}

namespace {

// Records once more what a capture recorded, with what the call's storages hold in the place of its placeholders.
class Replay {
 public:
  Replay(Recorder& recorder, const Captured& captured, std::span<const Scalar> scalars, std::span<LazyStorage* const> storages)
      : recorder_(recorder), captured_(captured), recording_(*captured.recording), scalars_(scalars), storages_(storages) {}

  void run() {
    for (const Record& record : recording_.trace.records) values_.push_back(add(record));
    std::vector<ReplayedValue> held;  // all of it before anything is bound: an argument may hold another one's value
    for (const Binding& binding : captured_.bindings) held.push_back(held_at(binding.source));
    for (size_t i = 0; i < held.size(); ++i) {
      const Binding& binding = captured_.bindings[i];
      LazyStorage& storage = *storages_[binding.storage];
      held[i].buffer ? recorder_.bind(storage, std::move(held[i].buffer), binding.type)
                     : recorder_.bind(storage, held[i].value, binding.type);
    }
  }

 private:
  struct ReplayedValue {
    ValueId value;
    BufferRef buffer;
  };

  ValueId add(const Record& record) {
    switch (record.op) {
      case kOpParam: {
        const BindingSource& source = recording_.reads[next_read_++];
        return source.kind == BindingSource::kConstant ? recorder_.input(source.constant, record.type)
                                                       : recorder_.read(*storages_[source.index]);
      }
      case kOpScalar: return recorder_.scalar(type_of(record.type).dtype, scalars_[next_scalar_++]);
      case kOpResult: return recorder_.result(values_[record.in[0]], record.in[1], record.type);
      default: break;
    }
    inputs_.clear();
    for (const ValueId input : recording_.trace.inputs(record)) inputs_.push_back(input == kNone ? kNone : values_[input]);
    return recorder_.node(record.op, record.type, record.attrs, inputs_, recording_.locations[next_location_++]);
  }

  ReplayedValue held_at(const BindingSource& source) {
    if (source.kind == BindingSource::kConstant) return {kNone, source.constant};
    if (source.kind == BindingSource::kOutput) return {values_[recording_.outputs[source.index]], nullptr};
    LazyStorage& argument = *storages_[source.index];
    return argument.buffer() ? ReplayedValue{kNone, argument.buffer()} : ReplayedValue{recorder_.read(argument), nullptr};
  }

  Recorder& recorder_;
  const Captured& captured_;
  const ShortRecording& recording_;
  const std::span<const Scalar> scalars_;
  const std::span<LazyStorage* const> storages_;
  std::vector<ValueId> values_;  // by record: what it is here
  std::vector<ValueId> inputs_;
  size_t next_read_ = 0, next_scalar_ = 0, next_location_ = 0;
};

}  // namespace

// Once in a step, which a loop of calls that nobody ends with a barrier would otherwise make longer and longer.
bool LazyDevice::replay(const Captured& captured, std::span<const Scalar> scalars, std::span<LazyStorage* const> storages) {
  if (!captured.recording) return false;
  Recorder recorder(*this);
  if (std::exchange(replayed_in_, trace_state_.epoch) == trace_state_.epoch) return false;
  Replay(recorder, captured, scalars, storages).run();
  return true;
}

std::shared_ptr<const Program> LazyDevice::program_of(const Captured& captured) {
  if (!captured.program) return nullptr;
  reopen_if_lost();
  if (captured.program->generation == generation_) [[likely]]
    return captured.program;
  PendingStep step{captured.step->trace, captured.step->locations, captured.step->roots};
  step.precision = captured.precision;
  const CachedProgram* known = cache_.find(step.trace, step.roots, step.precision);
  return (known && !known->awaited ? *known : compile(step, /*may_be_replaced=*/false)).program;
}

void LazyDevice::call(const Captured& captured, std::span<const Scalar> scalars, std::span<LazyStorage* const> storages) {
  LongCall call;
  enter();
  static metrics::Counter& calls = metrics::counter(metrics::kCapturedCalls);
  calls += 1;
  while (true) {
    if (captured.program) queue_.await_room();
    auto order = lock_in_slices(submission_);
    Run run{program_of(captured), {}, {scalars.begin(), scalars.end()}};
    run.step = captured.step;
    run.undo = captured.undo;
    for (const TypeId type : captured.outputs) run.outputs.push_back(std::make_shared<Buffer>(queue_, type));
    for (size_t i = 0; i < run.outputs.size(); ++i) run.outputs[i]->where = captured.output_lines[i];
    std::vector<BufferRef> bound;
    if (bind_call(captured, storages, run, bound)) {
      bound.clear();  // what was there before: the run may hold the last reference now
      if (!captured.program) return;
      run.id = ++run_id_;
      queue_.execute(std::move(run));
      order.unlock();
      if (process_is_ending()) [[unlikely]]
        queue_.drain();
      return;
    }
    order.unlock();
    if (replay(captured, scalars, storages)) return;
    sync(metrics::kCallBarrier);
  }
}

}  // namespace ltc
