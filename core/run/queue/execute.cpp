// The members of DeviceExecutor. A file of its own name, since copy_out.h and recovery.h build on executor.h.

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/base/bytes.h"
#include "core/base/log.h"
#include "core/compile/lowering/abi_graph.h"
#include "core/compile/lowering/error_context.h"
#include "core/host/sized.h"
#include "core/report/fallback_policy.h"
#include "core/report/memory_history.h"
#include "core/report/metrics.h"
#include "core/report/timeline.h"
#include "core/run/queue/adaptive_spin.h"
#include "core/run/queue/convert.h"
#include "core/run/queue/copy_out.h"
#include "core/run/queue/executor.h"
#include "core/run/queue/recovery.h"
#include "core/run/queue/result_check.h"
#include "core/run/queue/run_profile.h"
#include "ltc/symbolic.h"

namespace ltc {
namespace {

ltc_transfer_args transfer_args(ltc_direction direction, ltc_buffer* buffer, TypeId stored) {
  auto args = host::sized<ltc_transfer_args>();
  args.direction = direction;
  args.buffer = buffer;
  args.size_bytes = type_of(stored).size_bytes();
  return args;
}

LocationId first_line(const Graph& graph) { return graph.nodes.empty() ? kNoLocation : graph.nodes.front().location; }

constexpr size_t kSendingBytes = 256 << 20;  // of host memory that a device still reads

ThrowToReader g_throw_to_reader = nullptr;

}  // namespace

void set_throw_to_reader(ThrowToReader throw_to_reader) { g_throw_to_reader = throw_to_reader; }

void throw_to_reader(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& ours) {
    if (g_throw_to_reader) g_throw_to_reader(ours);
    throw;
  }
}

DeviceExecutor::DeviceExecutor(DeviceMemory& memory, size_t pending_limit)
    : memory_(memory),
      pending_limit_(pending_limit),
      check_(ResultCheck::is_wanted() ? std::make_unique<ResultCheck>(*this) : nullptr) {}

DeviceExecutor::~DeviceExecutor() = default;

void DeviceExecutor::finish() {
  device_times_.finish();
  limit_pending(0);
  limit_uploading(0);
}

void DeviceExecutor::copy_in(const HostValue& value, Buffer& buffer) {
  const HostValue source = convert(value, demotion().storage_type(value.type));
  ltc_transfer_args args = transfer_args(LTC_TO_DEVICE, nullptr, source.type);
  args.from = source.data.get();
  static metrics::Counter& counter = metrics::counter(metrics::kBytesToDevice);
  fill(buffer, source.type, args, counter, source);
  if (!buffer.completion) return;
  uploading_.emplace_back(buffer.completion, args.size_bytes);
  uploading_bytes_ += args.size_bytes;
  limit_uploading(kSendingBytes);
}

template <typename Bytes, typename Work>
auto DeviceExecutor::with_memory(LocationId where, Bytes bytes_wanted, Work work) {
  try {
    return work();
  } catch (const Error& error) {
    if (error.code() != Code::kResourceExhausted) throw;
    log::info("the device has no memory left, once more when it is idle: ", error.what());
  }
  memory_.memory().add_retry();
  op_programs_ = {};
  finish();
  try {
    return work();
  } catch (const Error& error) {
    if (error.code() != Code::kResourceExhausted) throw;
    memory_.note_refusal(bytes_wanted(), where);
    const auto* answer = dynamic_cast<const host::PluginError*>(&error);
    if (!answer) throw;
    throw host::PluginError(error.code(), answer->plugin(), "", cat(answer->said(), "; ", memory_.text()));
  }
}

BufferRef DeviceExecutor::new_buffer(const Step& step, size_t output, TypeId type) {
  auto buffer = make_buffer(memory_, type);
  if (!memory_history::enabled()) return buffer;
  for (const Node& node : step.graph.nodes) {
    if (std::ranges::count(node.outputs, step.graph.outputs[output])) buffer->where = node.location;
  }
  return buffer;
}

void DeviceExecutor::create(Buffer& buffer, TypeId stored) {
  const auto bytes = [&] { return type_of(stored).size_bytes(); };
  buffer.own(with_memory(buffer.where, bytes, [&] { return device().create_buffer(abi_type_of(type_of(stored))); }));
}

void DeviceExecutor::fill(Buffer& buffer, TypeId stored, ltc_transfer_args args, metrics::Counter& counter, HostValue source) {
  create(buffer, stored);
  args.buffer = buffer.handle;
  if (args.size_bytes == 0) return;
  const auto bytes = [&] { return args.size_bytes; };
  ltc_event* event = nullptr;
  try {
    event = with_memory(buffer.where, bytes, [&] { return device().transfer(args); });
  } catch (...) {
    buffer.release();
    throw;
  }
  if (event) newest_ = buffer.completion = std::make_shared<Completion>(memory_, event, std::move(source));
  counter += static_cast<int64_t>(args.size_bytes);
}

void DeviceExecutor::tell(const Buffer& buffer) {
  if (buffer.failure && (!buffer.failure->is_told.exchange(true) || buffer.error)) {
    std::rethrow_exception(buffer.failure->error);
  }
  if (buffer.error) std::rethrow_exception(buffer.error);
  buffer.require_not_lost();
}

// Throws the buffer's error; uploads its bytes if nobody has read them yet.
void DeviceExecutor::require(Buffer& buffer) {
  if (buffer.error) std::rethrow_exception(buffer.error);
  if (!buffer.handle && buffer.host.data) upload(std::exchange(buffer.host, {}), buffer);
  if (buffer.error) std::rethrow_exception(buffer.error);
  buffer.require_not_lost();
  ensure(buffer.handle != nullptr, "a buffer is read before the submission that makes it");
}

void DeviceExecutor::CopyOut::begin() {
  is_begun = true;
  const TypeId stored = executor.demotion().storage_type(buffer->type);
  ltc_transfer_args args = transfer_args(LTC_FROM_DEVICE, buffer->handle, stored);
  if (args.size_bytes == 0) return;
  if (stored != buffer->type) received = allocate_host_value(stored);
  args.to = received.data ? received.data.get() : to;
  ltc_event* event = executor.device().transfer(args);
  if (event)
    copied = std::make_shared<Completion>(executor.memory(), event, HostValue{stored, received.data ? received.data : memory});
}

template <typename IsOver>
bool DeviceExecutor::CopyOut::advance(IsOver is_over) {
  if (!is_begun) {
    executor.require(*buffer);
    if (Completion* made = buffer->completion.get()) {
      if (!is_over(*made)) return false;
      buffer->wait_made();  // throws the error of the run that made it
    }
    begin();
  }
  if (copied) {
    if (!is_over(*copied)) return false;
    copied->wait();
  }
  if (received.data) convert_elements(received, type_of(buffer->type).dtype, to);
  static metrics::Counter& counter = metrics::counter(metrics::kBytesFromDevice);
  counter += static_cast<int64_t>(executor.demotion().storage_bytes(buffer->type));
  return true;
}

void DeviceExecutor::CopyOut::finish() {
  advance([](Completion&) { return true; });
}

bool DeviceExecutor::CopyOut::finish_soon() {
  return advance([](Completion& work) {
    spin_until(kSpinForResult, [&] { return work.is_over(); });
    return work.is_over();
  });
}

void DeviceExecutor::upload(const HostValue& value, Buffer& buffer) {
  timeline::Span span("upload");
  span.count(0, static_cast<int64_t>(type_of(value.type).size_bytes()));
  try {
    reopen_if_lost();
    copy_in(value, buffer);
  } catch (...) {
    buffer.error = std::current_exception();
  }
}

void DeviceExecutor::copy_from_peer(const Buffer& source, Buffer& buffer) {
  timeline::Span span("copy_from_peer");
  span.count(0, static_cast<int64_t>(type_of(buffer.type).size_bytes()));
  source.wait_made();  // there is no order between devices
  const TypeId stored = demotion().storage_type(buffer.type);
  ltc_transfer_args args = transfer_args(LTC_ON_DEVICE, nullptr, stored);
  args.source = source.handle;
  fill(buffer, stored, args, metrics::counter(metrics::kBytesBetweenDevices));
  if (!buffer.completion) return;
  buffer.completion->wait_until_over();  // until when the source must not go
  buffer.completion->wait();
}

void DeviceExecutor::resize(Buffer& source, Buffer& buffer) {
  timeline::Span span("resize");
  require(source);
  const TypeId stored = demotion().storage_type(buffer.type);
  ltc_transfer_args zeros = transfer_args(LTC_TO_DEVICE, nullptr, stored), copied = transfer_args(LTC_ON_DEVICE, nullptr, stored);
  copied.size_bytes = std::min(zeros.size_bytes, demotion().storage_bytes(source.type));
  copied.source = source.handle;
  zeros.offset_bytes = copied.size_bytes;
  zeros.size_bytes -= copied.size_bytes;
  const std::vector<std::byte> bytes(zeros.size_bytes);
  zeros.from = bytes.data();
  create(buffer, stored);
  try {
    for (ltc_transfer_args* args : {&copied, &zeros}) {
      args->buffer = buffer.handle;
      if (args->size_bytes > 0) Completion(memory_, device().transfer(*args)).wait();
    }
    buffer.completion = source.completion;  // a run that failed made no more of this than of its source
    buffer.output = source.output;
  } catch (const Error& error) {
    buffer.release();
    if (error.code() != Code::kUnsupported) throw;
    resize_on_host(source, buffer);
  }
}

// For a device that copies no parts of buffers.
void DeviceExecutor::resize_on_host(Buffer& source, Buffer& buffer) {
  const HostValue then = allocate_host_value(source.type), now = allocate_host_value(buffer.type);
  const size_t then_bytes = type_of(then.type).size_bytes(), now_bytes = type_of(now.type).size_bytes();
  CopyOut(*this, std::shared_ptr<Buffer>(std::shared_ptr<void>(), &source), then.data.get(), then.data).finish();
  std::memset(now.data.get(), 0, now_bytes);
  std::memcpy(now.data.get(), then.data.get(), std::min(then_bytes, now_bytes));
  copy_in(now, buffer);
}

void DeviceExecutor::run(Run& run) {
  timeline::Span span("execute", run.id);
  if (run.program) span.of(*run.program);
  const auto begin = timeline::now_ns();
  try {
    reopen_if_lost();
    if (run.refusal) std::rethrow_exception(run.refusal);
    std::vector<HostValue> inputs;
    if (check_) [[unlikely]]
      inputs = check_->copy_inputs(run);
    run_steps(run);
    if (check_) [[unlikely]]
      check_->check(run, std::move(inputs));
    run.program->note_run(static_cast<int64_t>(timeline::now_ns() - begin));
  } catch (...) {
    const std::exception_ptr error = std::current_exception();
    const bool was_lost = device().is_lost();
    if (was_lost) try_reopen();
    if (run.program && run.program->typical_ns == INT64_MAX && !was_lost) run.program->failed_at_first = true;
    recover(run, error);
  }
  run.inputs.clear();
  static metrics::Counter& runs = metrics::counter(metrics::kRuns);
  runs += 1;
  if (run.program && run.program->is_interim) metrics::counter(metrics::kInterimRuns) += 1;
}

// Nothing of the lost device can be used any more; values that lived on it have no memory from then on.
void DeviceExecutor::reopen_if_lost() {
  if (!device().is_lost()) return;
  finish();
  op_programs_ = {};
  newest_ = nullptr;
  device().reopen([this] { return memory_.remove_all(); });
}

void DeviceExecutor::try_reopen() noexcept {
  try {
    reopen_if_lost();
  } catch (const std::exception& error) {
    log::error("a lost device cannot be opened again yet: ", error.what());
  }
}

void DeviceExecutor::run_steps(const Run& run) {
  const Program& program = *run.program;
  std::vector<BufferRef> slots = std::move(scratch_.slots);  // a run of several steps may make another run
  slots.assign(program.slots.size(), nullptr);
  for (size_t i = 0; i < program.outputs.size(); ++i) slots[program.outputs[i]] = run.outputs[i];
  std::shared_ptr<Failure> failure;  // an input's of which nobody knows yet
  for (size_t i = 0; i < program.input_count; ++i) {
    slots[i] = run.input(i);
    require(*slots[i]);
    if (slots[i]->failure && !slots[i]->failure->is_told) failure = slots[i]->failure;
  }
  bool has_consumed = false;
  for (const Step& step : program.steps) {
    if (step.on_device) {
      has_consumed |= run_device_step(step, slots, run);
    } else {
      run_host_step(step, slots, run);
    }
    for (const uint32_t slot : step.released) slots[slot].reset();
  }
  const std::vector<uint32_t>& copies = run.undo.copied_from;
  for (size_t i = 0; i < copies.size(); ++i) copy(*run.outputs[copies[i]], *run.outputs[program.outputs.size() + i]);
  if (failure) {
    for (const BufferRef& output : run.outputs) output->failure = failure;
  }
  slots.clear();
  scratch_.slots = std::move(slots);
  if (!has_consumed && !run.undo.history.empty()) settle(run);
}

// Waits for a run that can still be repeated and that writes storages. A run that consumes inputs is the steady state of a
// training loop and is not waited for.
void DeviceExecutor::settle(const Run& run) {
  std::exception_ptr error;
  for (const BufferRef& output : run.outputs) {
    try {
      output->wait_made();
    } catch (...) {
      if (!error) error = std::current_exception();
      output->release();
    }
    output->completion = nullptr;
  }
  if (error) std::rethrow_exception(error);
}

// Outputs that the run did not make are computed op by op, or fail.
void DeviceExecutor::recover(Run& run, std::exception_ptr error) {
  if (run.step) {
    Recovery(*this, run, error).run();
    return;
  }
  for (const BufferRef& output : run.outputs) {
    if (!output->handle) output->error = error;
  }
}

void DeviceExecutor::copy(Buffer& source, Buffer& buffer) {
  require(source);
  const TypeId stored = demotion().storage_type(buffer.type);
  ltc_transfer_args args = transfer_args(LTC_ON_DEVICE, nullptr, stored);
  args.source = source.handle;
  fill(buffer, stored, args, metrics::counter(metrics::kBytesOnDevice));
  if (buffer.completion) buffer.completion->wait();
  buffer.completion = source.completion;  // a run that failed made no more of this than of its source
  buffer.output = source.output;
}

bool DeviceExecutor::run_device_step(const Step& step, std::vector<BufferRef>& slots, const Run& run) {
  if (run.program->generation != device().generation())
    fail(Code::kDeviceLost, "[", device().plugin().name(),
         "] the program was compiled for a device that was lost since: ", device().loss());
  auto& [unused, inputs, outputs, donate, scalars] = scratch_;
  inputs.clear();
  donate.clear();
  std::vector<Made> parents;
  size_t buffer_index = 0;
  for (const Param& param : step.graph.params) {
    if (param.scalar) continue;
    const BufferRef& buffer = slots[step.inputs[buffer_index++]];
    require(*buffer);
    inputs.push_back(buffer->handle);
    // Nobody but this run knows the buffer any more, as its input and in its slot, so nobody can come to know it: an output may
    // have it.
    donate.push_back(param.alias_output != kNone && buffer.use_count() == 2);
    if (!buffer->is_made()) parents.push_back({buffer->completion, buffer->output});
  }
  const bool consumes = std::ranges::find(donate, 1) != donate.end();
  if (consumes) {
    for (const Made& parent : parents) {
      if (parent.by->may_fail()) parent.by->wait_for(parent.output);
    }
  }
  scalars.clear();
  static_assert(sizeof(ltc_scalar) == sizeof(Scalar));
  for (const uint32_t index : step.scalars) scalars.push_back(std::bit_cast<ltc_scalar>(run.scalar(index)));

  auto args = host::sized<ltc_execute_args>();
  args.executable = step.executable.get();
  args.input_count = inputs.size();
  args.inputs = inputs.data();
  args.donate = donate.data();
  args.scalar_count = scalars.size();
  args.scalars = scalars.data();
  args.output_count = step.outputs.size();
  args.run_id = run.id;
  auto symbols = host::sized_extension<ltc_symbol_values>(LTC_EXTENSION_SYMBOLIC, 1);
  symbols.symbol_count = step.symbols.size();
  symbols.values = step.symbols.data();
  if (!step.symbols.empty()) args.ext = &symbols.head;
  std::unique_ptr<RunProfile> profile = RunProfile::if_wanted(device().plugin(), run, step);
  if (profile) args.ext = profile->chain(args.ext);
  outputs.assign(step.outputs.size(), nullptr);
  const auto forget_donated = [&] {
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (donate[i]) slots[step.inputs[i]]->disown();
    }
  };
  const auto bytes_wanted = [&] {
    size_t bytes = 0;
    for (const ValueId output : step.graph.outputs) bytes += demotion().storage_bytes(step.graph.types[output]);
    return bytes;
  };
  ltc_event* event = nullptr;
  const uint64_t begin_ns = timeline::enabled() ? timeline::now_ns() : 0;
  try {
    event = with_error_context(step, [&] {
      return with_memory(first_line(step.graph), bytes_wanted, [&] { return device().execute(args, outputs.data()); });
    });
  } catch (const host::BrokenContract&) {
    forget_donated();  // perhaps gone: a leak is better than a double free
    throw;
  }
  forget_donated();  // gone with the submission

  if (event) is_asynchronous_ = true;
  std::shared_ptr<Completion> completion;
  if (event || !parents.empty()) {
    const std::shared_ptr<const Step> submitted(run.program, &step);
    completion = std::make_shared<Completion>(memory_, event, std::move(parents), submitted, !consumes);
    if (begin_ns != 0) [[unlikely]]
      device_times_.watch(completion, run.id, *run.program, begin_ns, event ? std::move(profile) : nullptr);
    pending_.push_back(newest_ = completion);
    limit_pending(pending_limit_);
    limit_uploading(kSendingBytes);
  }
  if (profile) profile->report();
  for (size_t i = 0; i < step.outputs.size(); ++i) {
    BufferRef& slot = slots[step.outputs[i]];
    if (!slot) slot = new_buffer(step, i, step.graph.types[step.graph.outputs[i]]);
    slot->own(outputs[i]);
    slot->completion = completion;
    slot->output = static_cast<uint32_t>(i);
  }
  return consumes;
}

// Whether to submit the run now takes a wait for the device; the queue's thread waits, as no signal ends a wait in a plugin.
bool DeviceExecutor::would_wait(const Run& run) {
  if (!is_asynchronous_) return false;
  return run.program->steps.size() > 1 || (pending_.size() >= pending_limit_ && !pending_.front()->is_over());
}

// Waits until the device has at most so many runs before it.
void DeviceExecutor::limit_pending(size_t at_most) {
  for (; pending_.size() > at_most; pending_.pop_front()) pending_.front()->wait_until_over();
}

// Forgets what was uploaded, and waits until no more than so many bytes are on their way.
void DeviceExecutor::limit_uploading(size_t at_most_bytes) {
  while (!uploading_.empty()) {
    const auto& [completion, bytes] = uploading_.front();
    if (uploading_bytes_ > at_most_bytes) completion->wait_until_over();
    if (!completion->is_over()) return;
    uploading_bytes_ -= bytes;
    uploading_.pop_front();
  }
}

void DeviceExecutor::run_host_step(const Step& step, std::vector<BufferRef>& slots, const Run& run) {
  timeline::Span span("host_step", run.id);
  span.of(step);
  std::vector<HostValue> inputs;
  for (const uint32_t slot : step.inputs) {
    const HostValue& input = inputs.emplace_back(allocate_host_value(slots[slot]->type));
    CopyOut(*this, slots[slot], input.data.get(), input.data).finish();
  }
  std::vector<Scalar> scalars;
  for (const uint32_t index : step.scalars) scalars.push_back(run.scalar(index));
  const std::vector<HostValue> outputs = host_runner()(step.graph, inputs, scalars);
  ensure(outputs.size() == step.outputs.size(), "the host runner gave ", outputs.size(), " outputs for ", step.outputs.size());
  metrics::counter(metrics::kHostStepOps) += static_cast<int64_t>(step.graph.nodes.size());
  if (!run.program->is_interim) count_host_step(step.graph);
  for (size_t i = 0; i < outputs.size(); ++i) {
    BufferRef& slot = slots[step.outputs[i]];
    if (!slot) slot = new_buffer(step, i, outputs[i].type);
    copy_in(outputs[i], *slot);
  }
}

}  // namespace ltc
