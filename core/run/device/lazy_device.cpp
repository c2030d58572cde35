#include "core/run/device/lazy_device.h"

#include <algorithm>
#include <atomic>

#include "core/base/disk_cache.h"
#include "core/base/env.h"
#include "core/base/log.h"
#include "core/compile/build_program.h"
#include "core/compile/lowering/compiler.h"
#include "core/compile/lowering/precision.h"
#include "core/ir/text.h"
#include "core/report/compiles.h"
#include "core/report/fallback_policy.h"
#include "core/report/memory_history.h"
#include "core/report/misses.h"
#include "core/report/timeline.h"
#include "core/run/device/output_lines.h"
#include "core/run/device/recorder.h"
#include "core/run/device/varying_offsets.h"
#include "core/run/process/fork.h"
#include "core/run/process/process_end.h"

namespace ltc {

namespace {

constexpr size_t kRunWindow = 2;          // steps of any length queued or running before a barrier waits
constexpr size_t kCachedPrograms = 1024;  // per device
constexpr size_t kSymbolicPrograms = 256;
constexpr uint32_t kQuickRuns = 8;  // of a program compiled with little effort, before it is optimized

// Far above a training step of GPT-2 (2,000 records), far below what takes long to compile.
constexpr size_t kLongTrace = 1u << 15;

constexpr size_t kHeldShare = 8;  // of the device's memory, a trace may hold one alone: a run would free it

size_t memory_of(const host::PluginDevice& device) {
  constexpr size_t kUnknown = size_t{8} << 30;  // bytes
  const uint64_t bytes = device.info().memory_bytes;
  return bytes != 0 ? bytes : kUnknown;
}

// While it compiles, the host computes the step and transfers its values. A refusal of LTC_FALLBACK would come too late, and what
// is compiled for many sizes is for one thread at a time.
bool compiles_in_background(const host::PluginDevice& device) {
  const host::Plugin& plugin = device.plugin();
  return env::is_set(env::kBackgroundCompile) && env::get(env::kFallback) != "error" && plugin.can_compute() &&
         !plugin.takes_one_call_at_a_time();
}

std::atomic<WarmUp> warm_up_function{nullptr};

}  // namespace

void set_warm_up(WarmUp function) { warm_up_function = function; }

LazyDevice::LazyDevice(uint32_t ordinal, std::unique_ptr<host::PluginDevice> device)
    : ordinal_(ordinal),
      is_eager_(env::is_set(env::kEager)),
      queue_(std::move(device), kRunWindow),
      most_held_bytes_(memory_of(queue_.device()) / kHeldShare),
      auto_steps_(env::is_set(env::kAutoStep) && !is_eager_),
      cache_(kCachedPrograms) {
  await_op(0);
  if (queue_.device().plugin().understands(LTC_EXTENSION_SYMBOLIC)) forget_symbolic_programs();
  if (compiles_in_background(queue_.device())) background_.emplace();
  queue_.start();
  DiskCache* const disk = DiskCache::instance();
  if (!disk || !queue_.device().can_compute()) return;
  prefetch_.emplace(*disk, CompileTarget{queue_.device(), queue_.demotion()}, [this, warm_up = warm_up_function.load()] {
    exempt_this_thread();
    if (warm_up && !is_eager_) warm_up(*this);
  });
}

void LazyDevice::sync(std::string_view reason) { run(reason, false); }

std::vector<BufferRef> LazyDevice::run(std::string_view reason, bool is_awaited) {
  LongCall call;
  enter();
  if (trace_state().is_capture) t_capture->refuse(cat("a value was asked for, or a barrier (", reason, ")"));
  metrics::counter(reason) += 1;
  if (has_records()) queue_.await_room();
  std::vector<BufferRef> outputs = run_step(reason, is_awaited);
  tell_compiles();
  if (process_is_ending()) [[unlikely]]
    queue_.drain();  // Python, which the work may need, is about to go
  return outputs;
}

TraceExtent LazyDevice::trace_extent() {
  std::lock_guard lock(mutex_);
  return {trace_state_.epoch, trace_state_.trace.records.size()};
}

std::vector<BufferRef> LazyDevice::run_step(std::string_view reason, bool is_awaited) {
  const LocationId where = timeline::enabled() ? current_location() : kNoLocation;  // before our lock, since it may want Python's
  const auto order = lock_in_slices(submission_);
  timeline::Span span("barrier", run_id_ + 1);
  span.because(reason);
  span.at(where);
  PendingStep& step = spare_;
  cut(step, reason);
  span.count(static_cast<int64_t>(step.locations.size()));
  std::vector<BufferRef> outputs;
  if (is_eager_) outputs = step.outputs;
  const CachedProgram* program = nullptr;
  try {
    if (!step.roots.empty()) program = &look_up(step);
  } catch (...) {
    enqueue_refused(step, std::current_exception());
    queue_events(step);
    throw;
  }
  program ? enqueue(*program, step, is_awaited) : recycle(step);
  queue_events(step);
  return outputs;
}

// Sees to it that before_op() is called where the trace may end.
void LazyDevice::await_op(size_t records) {
  trace_state_.awaited = auto_steps_.awaits_backward() ? kBackwardBits : 0;
  if (records == 0) next_split_ = splits_.next(0);
  trace_state_.limit = is_eager_ ? 0 : std::min({kLongTrace, next_split_, auto_steps_.next(records)});
}

// The barrier to count; empty if the trace goes on.
std::string_view LazyDevice::reason_to_end(CalledOp op) {
  std::lock_guard lock(mutex_);
  const size_t records = trace_state_.trace.records.size();
  for (; next_split_ <= records; next_split_ = splits_.next(next_split_)) {
    if (splits_.end_here(trace_state_.trace, trace_state_.locations, next_split_)) return metrics::kTraceSplit;
  }
  if (const std::string_view reason = auto_steps_.ends_before(trace_state_, op); !reason.empty()) return reason;
  if (trace_state_.held_bytes > most_held_bytes_) return metrics::kHeldMemory;
  if (records >= kLongTrace) return metrics::kTraceLimit;
  await_op(records);
  return {};
}

void LazyDevice::before_op(CalledOp op) {
  if (is_eager_ || trace_state().is_capture) return;
  if (within_backward()) op.where |= kBackwardCall;
  for (std::string_view reason; !(reason = reason_to_end(op)).empty();) sync(reason);
}

void LazyDevice::before_op(OpId op) {
  LocationId where;
  {
    Recorder recorder(*this);
    if (!recorder.may_end()) return recorder.begin(op);
    where = recorder.location();
  }
  before_op({op, where});
  Recorder(*this).begin(op);
}

void LazyDevice::optimizer_begins() {
  if (is_eager_ || trace_state().is_capture) return;
  std::lock_guard lock(mutex_);
  auto_steps_.optimizer_begins();
}

void LazyDevice::optimizer_ends() {
  if (is_eager_ || trace_state().is_capture) return;
  std::lock_guard lock(mutex_);
  auto_steps_.optimizer_ends(trace_state_);
  if (auto_steps_.is_watching()) trace_state_.limit = 0;
}

void LazyDevice::run_op() {
  const std::vector<BufferRef> outputs = run(metrics::kEagerBarrier, true);
  wait();
  for (const BufferRef& output : outputs) queue_.check(*output);
}

// Live values, and for each the param it replaces in its storage: that one's buffer may become the value's.
void LazyDevice::collect_roots(const TraceState& trace_state, std::vector<Root>& roots) {
  for (size_t value = 0; value < trace_state.owners.size(); ++value) {
    const LazyStorage* owner = trace_state.owners[value];
    if (!owner) continue;
    Root root{static_cast<ValueId>(value)};
    for (; owner && root.replaces == kNone; owner = owner->next_owner_) {
      if (owner->entry_epoch_ == trace_state.epoch) root.replaces = owner->entry_;
    }
    roots.push_back(root);
  }
}

// Ends the trace: each live value gets a buffer, promised to its storages, and recording starts afresh.
void LazyDevice::cut(PendingStep& step, std::string_view reason) {
  std::lock_guard lock(mutex_);
  auto_steps_.note_end(trace_state_, reason);
  collect_roots(trace_state_, step.roots);
  for (const Root& root : step.roots) {
    step.outputs.push_back(std::make_shared<Buffer>(queue_, trace_state_.trace.records[root.value].type));
  }
  if (!trace_state_.history.empty()) step.undo.before.resize(step.roots.size(), kNone);
  for (size_t i = 0; i < step.roots.size(); ++i)
    promise(step, std::exchange(trace_state_.owners[step.roots[i].value], nullptr), i);
  metrics::counter(metrics::kOpsRecorded) += static_cast<int64_t>(trace_state_.locations.size());
  std::swap(step.trace, trace_state_.trace);
  std::swap(step.locations, trace_state_.locations);
  std::swap(step.inputs, trace_state_.inputs);
  std::swap(step.scalars, trace_state_.scalars);
  std::swap(step.events, events_);
  step.undo.history = std::exchange(trace_state_.history, {});
  trace_state_.history.reserve(step.undo.history.size());  // the next step is often like this one
  trace_state_.owners.clear();
  trace_state_.views.clear();
  trace_state_.epoch = ++last_epoch_;
  trace_state_.held_bytes = 0;
  trace_state_.seen = 0;
  trace_state_.first = {};
  splits_.note_end();
  await_op(0);
  if (!memory_history::enabled()) [[likely]]
    return;
  const std::vector<LocationId> lines = output_lines(step.trace, step.roots, step.locations);
  for (size_t i = 0; i < step.outputs.size(); ++i) {
    step.outputs[i]->where = lines[i < lines.size() ? i : step.undo.copied_from[i - lines.size()]];
  }
}

// The owners of a root get its buffer, or a copy where they held different values before.
void LazyDevice::promise(PendingStep& step, LazyStorage* owner, size_t root) {
  while (owner) {
    owner->buffer_ = step.outputs[root];
    owner->value_ = kNone;
    if (owner->before_ != kNone) {
      uint32_t& before = step.undo.before[root];
      if (before == kNone) {
        before = owner->before_;
      } else {
        step.undo.before.push_back(owner->before_);
        step.undo.copied_from.push_back(static_cast<uint32_t>(root));
        step.outputs.push_back(owner->buffer_ = std::make_shared<Buffer>(queue_, step.outputs[root]->type));
      }
    }
    owner = std::exchange(owner->next_owner_, nullptr);
  }
}

void LazyDevice::reopen_if_lost() {
  queue_.reopen_if_lost();
  const uint32_t now = queue_.device().generation();
  if (std::exchange(generation_, now) == now) [[likely]]
    return;
  cache_.clear();
  if (symbolic_) forget_symbolic_programs();
}

void LazyDevice::forget_symbolic_programs() { symbolic_ = std::make_shared<SymbolicPrograms>(kSymbolicPrograms); }

const CachedProgram& LazyDevice::look_up(PendingStep& step, bool is_kept) {
  reopen_if_lost();
  step.precision = precision_for(queue_.device());
  const CachedProgram* known = cache_.find(step.trace, step.roots, step.precision);
  if (!known) return compile(step, /*may_be_replaced=*/!is_kept);
  const bool is_due = known->program->is_quick && (is_kept || ++known->program->lookups == kQuickRuns);
  if (known->awaited) [[unlikely]]
    known = replace_interim(*known, is_kept);
  if (is_due || !known) return compile(step, /*may_be_replaced=*/false);
  static metrics::Counter& hits = metrics::counter(metrics::kCachedCompile);
  hits += 1;
  return *known;
}

// The program that it awaits, or itself; null if that is to be compiled here, after a failure or for who cannot wait.
const CachedProgram* LazyDevice::replace_interim(const CachedProgram& known, bool is_kept) {
  auto [is_pending, program] = is_kept ? background_->wait(known.awaited) : background_->ask(known.awaited);
  if (is_pending) return &known;
  if (!program) return nullptr;
  check_fallbacks(*program);
  return cache_.insert({std::move(program), known.step});
}

// Where the device has no memory for it, once more when it is idle and has no other programs.
CompiledProgram LazyDevice::build(const Graph& graph, const CompileTarget& target, Effort effort) {
  try {
    return build_program(graph, target, effort);
  } catch (const Error& error) {
    if (error.code() != Code::kResourceExhausted) throw;
    log::info("the device has no memory left for a program, once more without the others: ", error.what());
  }
  queue_.drain();
  cache_.clear();
  if (symbolic_) forget_symbolic_programs();
  return build_program(graph, target, effort);
}

// One of the disk, of other sizes, or of the host: the program itself is then awaited.
CompiledProgram LazyDevice::build_interim(const Graph& graph, const CompileTarget& target,
                                          std::shared_ptr<BackgroundJob>& awaited) {
  if (auto saved = find_saved_program(graph, target)) return {std::move(saved), CompiledProgram::kDisk};
  if (auto program = reuse(graph, target)) return {std::move(program), CompiledProgram::kReused};
  awaited = background_->job(graph, target);
  background_->ask(awaited);
  return {interim_program(graph, target), CompiledProgram::kCompiled};
}

// A program of a new size is not likely to come again where new sizes come again and again. It is optimized once it does.
const CachedProgram& LazyDevice::compile(PendingStep& step, bool may_be_replaced) {
  timeline::Span span("compile");
  CompileCause cause{.begin_ns = timeline::now_ns()};
  TraceGraph traced = build_graph(step.trace, step.roots, step.locations);
  ExplainedMiss miss = explain_miss(step.trace, step.roots, step.locations);
  cause.reason = miss.miss ? reason_of(*miss.miss) : "new";
  cause.where = miss.miss ? miss.miss->where : step.locations.empty() ? kNoLocation : step.locations.back();
  if (miss.miss) cause.difference = miss.miss->difference;
  span.because(cause.reason);
  span.at(cause.where);
  span.detail(cause.difference);
  const auto ops = static_cast<uint32_t>(traced.graph.nodes.size());
  const bool has_new_sizes = miss.miss && miss.miss->is_size && !repays_in_one_run(traced.graph);
  const bool compiles_quickly = default_effort() != Effort::kQuick && (queue_.device().info().flags & LTC_DEVICE_QUICK_COMPILE);
  const bool is_quick = may_be_replaced && has_new_sizes && compiles_quickly && miss.earlier >= kRepeatedMisses;
  CompileTarget target{queue_.device(), queue_.demotion(), step.precision, symbolic_};
  target.prefetch = prefetch_ ? &*prefetch_ : nullptr;
  target.keeps_stages = timeline::enabled();
  const bool is_interim = may_be_replaced && background_ && !is_quick && !traced.graph.nodes.empty();
  std::shared_ptr<BackgroundJob> awaited;
  CompiledProgram compiled = is_interim ? build_interim(traced.graph, target, awaited)
                                        : build(traced.graph, target, is_quick ? Effort::kQuick : default_effort());
  if (!awaited) note_compile(std::move(cause), compiled);
  const bool serves_others = compiled.source == CompiledProgram::kCompiledSymbolic || compiled.source == CompiledProgram::kReused;
  if (miss.miss && miss.miss->equal && !serves_others) {
    std::lock_guard lock(mutex_);
    splits_.learn(step.trace, step.locations, *miss.miss->equal);
  }
  if (compiled.source == CompiledProgram::kDisk) span.rename("load");
  if (miss.miss) note_varying_offsets(miss.miss->offsets);
  note_miss(std::move(miss), step.trace, step.roots, compiled.source, has_new_sizes && compiles_quickly);
  if (!awaited) check_fallbacks(*compiled.program);
  span.of(*compiled.program);
  return *cache_.insert({std::move(compiled.program),
                         std::make_shared<RecordedStep>(RecordedStep{step.trace, step.roots, step.precision, step.locations,
                                                                     std::move(traced.buffers), std::move(traced.scalars), ops}),
                         std::move(awaited)});
}

void LazyDevice::enqueue(const CachedProgram& program, PendingStep& step, bool is_awaited) {
  Run run{program.program, {}, step.scalars, std::move(step.outputs), ++run_id_, is_awaited, program.step, std::move(step.undo)};
  static metrics::Counter& ops = metrics::counter(metrics::kOpsRun);
  ops += program.step->ops;
  run.inputs.assign(std::move_iterator(step.inputs.begin()), std::move_iterator(step.inputs.end()));
  recycle(step);  // before the queue may refuse the run
  queue_.execute(std::move(run));
}

// The queue computes the step op by op as far as that is possible. The barrier throws the refusal at once.
void LazyDevice::enqueue_refused(PendingStep& step, std::exception_ptr refusal) {
  auto recorded = std::make_shared<RecordedStep>(RecordedStep{step.trace, step.roots, step.precision, step.locations});
  Run run{nullptr, std::move(step.inputs), step.scalars,         std::move(step.outputs), ++run_id_,
          false,   std::move(recorded),    std::move(step.undo), std::move(refusal)};
  recycle(step);
  queue_.execute(std::move(run));
}

void LazyDevice::recycle(PendingStep& step) {
  step.trace.clear();
  step.locations.clear();
  step.roots.clear();
  step.inputs.clear();
  step.outputs.clear();
  step.scalars.clear();
  step.undo = {};
}

BufferRef LazyDevice::computed(LazyStorage& storage, std::string_view reason) {
  if (trace_state().is_capture) t_capture->refuse("a value was asked for");
  for (bool synced = false;; synced = true) {
    BufferRef buffer;
    {
      std::lock_guard lock(mutex_);
      if (storage.is_empty()) return nullptr;
      buffer = storage.buffer_;
      if (!buffer && storage.epoch_ != trace_state_.epoch) fail(Code::kInvalidArgument, kFromCapture);
    }
    if (buffer) {
      if (buffer->is_placeholder) fail(Code::kInvalidArgument, kIsPlaceholder);
      const auto order = lock_in_slices(submission_);  // another thread may have promised it and not queued its run yet
      return buffer;
    }
    ensure(!synced, "a value is neither traced nor computed after a barrier");
    run(reason, true);
  }
}

HostValue LazyDevice::host_value(LazyStorage& storage) {
  if (trace_state().is_capture) return {};
  std::optional<HostSlice> slice;
  {
    std::lock_guard lock(mutex_);
    if (storage.buffer_ || storage.epoch_ != trace_state_.epoch || storage.value_ == kNone) return {};
    slice = host_slice(trace_state_.trace, trace_state_.inputs, trace_state_.scalars, storage.value_);
  }
  return slice ? host_values_.compute(*slice) : HostValue{};
}

void LazyDevice::describe(std::span<LazyStorage* const> storages, std::vector<StorageSnapshot>& held) {
  std::lock_guard lock(mutex_);
  ++stamp_;
  for (uint32_t i = 0; i < storages.size(); ++i) {
    LazyStorage& storage = *storages[i];
    if (std::exchange(storage.stamp_, stamp_) != stamp_) storage.stamp_index_ = i;
    held.push_back({storage.type_, storage.stamp_index_});
  }
}

void LazyDevice::wait() {
  LongCall call;
  timeline::Span span("wait");
  span.here();
  span.with_callers();
  queue_.drain();
}

void LazyDevice::end_background_work() {
  if (prefetch_) prefetch_->stop();
  if (background_) background_->rest();
}

void LazyDevice::rest() {
  end_background_work();
  queue_.rest();
}

void LazyDevice::stop() {
  if (prefetch_) prefetch_->stop();
  if (background_) background_->stop();
  queue_.stop();
}

std::string LazyDevice::trace_text() {
  std::lock_guard lock(mutex_);
  std::vector<Root> roots;
  collect_roots(trace_state_, roots);
  return print(build_graph(trace_state_.trace, roots, trace_state_.locations).graph);
}

TraceState& LazyDevice::trace_state_within_capture() {
  return &t_capture->device() == this ? t_capture->trace_state() : trace_state_;
}

TraceState* LazyDevice::trace_state_of(const LazyStorage& storage) {
  if (storage.epoch_ == trace_state_.epoch) [[likely]]
    return &trace_state_;
  const auto it = std::ranges::find(captures_, storage.epoch_, &TraceState::epoch);
  return it == captures_.end() ? nullptr : *it;
}

void LazyDevice::unlink(LazyStorage& storage) {
  TraceState* trace_state = trace_state_of(storage);
  if (!trace_state || storage.value_ == kNone) return;
  LazyStorage** owner = &trace_state->owners[storage.value_];
  while (*owner && *owner != &storage) owner = &(*owner)->next_owner_;
  if (*owner) *owner = storage.next_owner_;
  storage.next_owner_ = nullptr;
  storage.value_ = kNone;
}

void LazyDevice::forget(LazyStorage& storage) {
  if (forked()) return;
  std::lock_guard lock(mutex_);
  if (storage.buffer_ && storage.entry_epoch_ == trace_state_.epoch) note_held(trace_state_, storage.buffer_->type);
  unlink(storage);
}

bool LazyDevice::forget_record(LazyStorage& storage) {
  if (forked()) return false;
  std::lock_guard lock(mutex_);
  if (storage.buffer_) return false;
  unlink(storage);
  return true;
}

bool LazyStorage::forget_record() { return is_forgotten_ = device_.forget_record(*this); }

LazyStorage::~LazyStorage() {
  if (!is_forgotten_) device_.forget(*this);
}

}  // namespace ltc
