// An open device: one method per slot of the table.
#include <algorithm>
#include <cstring>
#include <mutex>
#include <span>

#include "core/base/utf8.h"
#include "core/host/call.h"
#include "core/host/host_api.h"
#include "core/host/plugin.h"
#include "core/host/sized.h"
#include "core/ir/dtype.h"
#include "ltc/precision.h"

namespace ltc::host {
namespace {

constexpr size_t kLongestProgramText = 64 << 20;

// Takes the bytes that a plugin writes into an ltc_sink, up to a limit. Its write must not throw through the plugin.
class Received {
 public:
  explicit Received(size_t limit) : limit_(limit) {}
  Received(const Received&) = delete;
  Received& operator=(const Received&) = delete;

  ltc_sink sink() { return {this, &write}; }
  bool is_whole() const { return whole_; }
  std::string take() { return std::move(bytes_); }

 private:
  static bool write(void* context, const void* data, size_t size) {
    auto& self = *static_cast<Received*>(context);
    try {
      self.whole_ = self.whole_ && (data || size == 0) && size <= self.limit_ - self.bytes_.size();
      if (self.whole_ && size > 0) self.bytes_.append(static_cast<const char*>(data), size);
    } catch (...) {
      self.whole_ = false;
    }
    return self.whole_;
  }

  const size_t limit_;
  std::string bytes_;
  bool whole_ = true;
};

bool is_donated(const ltc_execute_args& args, size_t input) { return args.donate && args.donate[input]; }

// Whether the handle is an input that stays the caller's. That of a donated one may come back as an output.
bool is_borrowed(const ltc_execute_args& args, const ltc_buffer* buffer) {
  for (size_t i = 0; i < args.input_count; ++i) {
    if (args.inputs[i] == buffer && !is_donated(args, i)) return true;
  }
  return false;
}

std::optional<uint64_t> known(uint64_t value) { return value == UINT64_MAX ? std::nullopt : std::optional(value); }

}  // namespace

PluginDevice::PluginDevice(std::shared_ptr<Plugin> plugin, uint32_t ordinal) : plugin_(std::move(plugin)), ordinal_(ordinal) {
  open();
}

PluginDevice::~PluginDevice() {
  if (device_) plugin_->tell("device_close", [&] { api().device_close(device_); });
}

void PluginDevice::open() {
  auto args = sized<ltc_device_args>();
  args.ordinal = ordinal_;
  auto info = sized<ltc_device_info>();
  ltc_device* device = nullptr;
  plugin_->ask("device_open", [&] { return api().device_open(plugin_->instance_, &args, &info, &device); });
  if (!device) throw BrokenContract(name(), "device_open succeeded and gave no device");
  constexpr uint64_t kDTypes = (uint64_t{1} << kDTypeCount) - 2;  // ids begin with 1
  constexpr uint64_t kFlags = LTC_DEVICE_PEER_COPY | LTC_DEVICE_QUICK_COMPILE;
  if (!(info.dtypes & kDTypes) || info.flags & ~kFlags) {
    plugin_->tell("device_close", [&] { api().device_close(device); });
    if (info.flags & ~kFlags)
      throw PluginError(Code::kUnsupported, name(), "device_open",
                        cat("ltc_device_info::flags is ", info.flags, "; this host knows ", kFlags));
    throw BrokenContract(name(),
                         cat("device_open says that buffers may have no dtype: ltc_device_info::dtypes is ", info.dtypes));
  }
  device_ = device;
  info_ = {copied(info.name), copied(info.fingerprint), info.dtypes, info.memory_bytes, info.flags};
}

// ---- loss

std::string PluginDevice::loss() const {
  std::lock_guard lock(handles_lock_);
  return loss_;
}

void PluginDevice::reopen(const TakeBuffers& take_buffers) {
  std::unique_lock alone(life_);
  if (!lost_) return;
  if (device_) {
    ++generation_;  // from here on nobody uses the old handles
    PointerSet<ltc_event> events;
    PointerSet<ltc_executable> executables;
    PointerSet<ltc_program> programs;
    PointerSet<ltc_group> groups;
    {
      std::lock_guard lock(handles_lock_);
      events.swap(events_);
      executables.swap(executables_);
      programs.swap(programs_);
      groups.swap(groups_);
    }
    for (ltc_buffer* buffer : take_buffers()) plugin_->tell("buffer_destroy", [&] { api().buffer_destroy(buffer); });
    events.for_each([&](ltc_event* one) { plugin_->tell("event_destroy", [&] { api().event_destroy(one); }); });
    executables.for_each(
        [&](ltc_executable* one) { plugin_->tell("executable_destroy", [&] { api().executable_destroy(one); }); });
    programs.for_each([&](ltc_program* one) { plugin_->tell("program_destroy", [&] { api().program_destroy(one); }); });
    groups.for_each([&](ltc_group* one) { plugin_->tell("group_destroy", [&] { collectives().group_destroy(one); }); });
    plugin_->tell("device_close", [&] { api().device_close(std::exchange(device_, nullptr)); });
  }
  const DeviceInfo before = info_;
  open();
  lost_ = false;
  if (before.dtypes != info_.dtypes || before.flags != info_.flags)
    log::warn("[", name(), "] the device that was opened again holds other dtypes or has other abilities than before");
  log::warn("[", name(), "] the device was lost and is open again; what lived on it is gone: ", loss());
}

void PluginDevice::refuse_lost(const char* slot) const {
  throw PluginError(Code::kDeviceLost, name(), slot, cat("the device was lost: ", loss()));
}

template <typename Handle>
void PluginDevice::require_known(const PointerSet<Handle>& handles, const Handle* handle, const char* slot) const {
  bool is_known = false;
  {
    std::lock_guard lock(handles_lock_);
    is_known = handles.contains(handle);
  }
  if (!is_known) require_current(0, slot);
}

template <typename Call>
void PluginDevice::ask(const char* slot, Call&& call) {
  const Open alive = keep_open();
  ask(generation_, slot, call);
}

template <typename Keep, typename Call>
LTC_ALWAYS_INLINE void PluginDevice::ask(uint32_t generation, const char* slot, Call&& call) {
  require_current(generation, slot);
  try {
    plugin_->ask<Keep>(slot, call);
  } catch (const PluginError& error) {
    if (error.code() == Code::kDeviceLost && !lost_.exchange(true)) {
      std::lock_guard lock(handles_lock_);
      loss_ = error.said();
    }
    throw;
  }
}

// ---- memory

ltc_buffer* PluginDevice::create_buffer(const ltc_type& type) {
  if (!supports(type.dtype)) {
    throw PluginError(Code::kUnsupported, name(), "", cat("the device has no ", dtype_name(static_cast<DType>(type.dtype))));
  }
  auto args = sized<ltc_buffer_args>();
  args.type = &type;
  ltc_buffer* buffer = nullptr;
  ask("buffer_create", [&] { return api().buffer_create(device_, &args, &buffer); });
  require_handle("buffer_create", buffer);
  return buffer;
}

void PluginDevice::destroy_buffer(ltc_buffer* buffer) noexcept { destroy_buffer(keep_open(), buffer); }

void PluginDevice::destroy_buffer(const Open&, ltc_buffer* buffer) noexcept {
  if (buffer) plugin_->tell("buffer_destroy", [this, buffer] { api().buffer_destroy(buffer); });
}

ltc_event* PluginDevice::transfer(const ltc_transfer_args& args) {
  ltc_event* event = nullptr;
  ask("transfer", [&] { return api().transfer(device_, &args, &event); });
  return take_event("transfer", event);
}

// ---- computing

std::vector<uint32_t> PluginDevice::claims(const ltc_graph& graph) {
  std::vector<uint32_t> cluster(graph.node_count, 0);
  if (!can_compute()) return cluster;
  auto args = sized<ltc_claims_args>();
  args.graph = &graph;
  ask("claims", [&] { return api().claims(device_, &args, cluster.data()); });
  return cluster;
}

ltc_program* PluginDevice::lower(const ltc_graph& graph, uint32_t precision, const ltc_symbolic_sizes* sizes,
                                 uint32_t* generation) {
  require_computing("lower");
  auto allowed = sized_extension<ltc_precision>(LTC_EXTENSION_PRECISION, 1);
  allowed.allowed = precision;
  ltc_symbolic_sizes symbolic = sizes ? *sizes : ltc_symbolic_sizes{};
  auto args = sized<ltc_lower_args>();
  if (plugin_->understands(LTC_EXTENSION_PRECISION)) args.ext = &allowed.head;
  if (sizes) symbolic.head.next = std::exchange(args.ext, &symbolic.head);
  args.graph = &graph;
  ltc_program* program = nullptr;
  const Open alive = keep_open();
  ask(generation_, "lower", [&] { return api().lower(device_, &args, &program); });
  require_handle("lower", program);
  remember(alive, programs_, program, generation);
  return program;
}

void PluginDevice::destroy_program(ltc_program* program, uint32_t generation) noexcept {
  if (!program) return;
  const Open alive = keep_open();
  if (generation == generation_ && forget(programs_, program)) {
    plugin_->tell("program_destroy", [&] { api().program_destroy(program); });
  }
}

std::optional<std::string> PluginDevice::program_text(const ltc_program* program) {
  if (!api().program_text) return std::nullopt;
  Received text(kLongestProgramText);
  const ltc_sink sink = text.sink();
  const Open alive = keep_open();
  require_known(programs_, program, "program_text");
  ask(generation_, "program_text", [&] { return api().program_text(program, &sink); });
  const char* const end = text.is_whole() ? "" : "\n... (the rest is left out)\n";
  return valid_utf8(text.take()) + end;
}

ltc_executable* PluginDevice::compile(const ltc_program* program, uint32_t effort, uint32_t* generation) {
  require_computing("compile");
  auto args = sized<ltc_compile_args>();
  args.program = program;
  args.effort = effort;
  ltc_executable* executable = nullptr;
  const Open alive = keep_open();
  require_known(programs_, program, "compile");
  ask(generation_, "compile", [&] { return api().compile(device_, &args, &executable); });
  require_handle("compile", executable);
  remember(alive, executables_, executable, generation);
  return executable;
}

void PluginDevice::destroy_executable(ltc_executable* executable, uint32_t generation) noexcept {
  if (!executable) return;
  const Open alive = keep_open();
  if (generation == generation_ && forget(executables_, executable)) {
    plugin_->tell("executable_destroy", [&] { api().executable_destroy(executable); });
  }
}

ltc_event* PluginDevice::execute(const ltc_execute_args& args, ltc_buffer** outputs) {
  require_computing("execute");
  std::fill_n(outputs, args.output_count, nullptr);
  ltc_event* event = nullptr;
  try {
    ask("execute", [&] { return api().execute(device_, &args, outputs, &event); });
  } catch (...) {
    // Nothing that a plugin left here after an error can be trusted to be a handle.
    std::fill_n(outputs, args.output_count, nullptr);
    throw;
  }
  ltc_event* taken = nullptr;
  try {
    taken = take_event("execute", event);
    check_outputs(args, outputs);
  } catch (...) {
    drop_outputs(args, outputs);
    destroy_event(taken);
    throw;
  }
  return taken;
}

std::optional<std::string> PluginDevice::save_executable(const ltc_executable* executable) {
  if (!api().executable_save) return std::nullopt;
  Received bytes(kLargestKept);
  const ltc_sink sink = bytes.sink();
  try {
    const Open alive = keep_open();
    require_known(executables_, executable, "executable_save");
    ask(generation_, "executable_save", [&] { return api().executable_save(executable, &sink); });
  } catch (const Error& e) {
    if (e.code() != Code::kUnsupported) throw;
    return std::nullopt;
  }
  if (bytes.is_whole()) return bytes.take();
  log::info("[", name(), "] executable_save: more than ", kLargestKept, " bytes, or than there is memory for; not kept");
  return std::nullopt;
}

ltc_executable* PluginDevice::load_executable(const void* data, size_t size, uint32_t* generation) {
  if (!api().executable_load) return nullptr;
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<Line> aligned(size / sizeof(Line) + 1);
  std::memcpy(aligned.data(), data, size);
  auto args = sized<ltc_load_args>();
  args.data = aligned.data();
  args.size = size;
  ltc_executable* executable = nullptr;
  const Open alive = keep_open();
  try {
    ask(generation_, "executable_load", [&] { return api().executable_load(device_, &args, &executable); });
  } catch (const Error& e) {
    if (e.code() == Code::kDeviceLost) throw;
    log::debug(e.what(), "; compiling again");
    return nullptr;
  }
  if (executable) remember(alive, executables_, executable, generation);
  return executable;
}

// ---- events

bool PluginDevice::wait(ltc_event* event, uint64_t timeout_ns, uint32_t generation) {
  if (!event) return true;
  return timeout_ns == 0 ? ask_event<KeepNothing>(event, 0, generation)
                         : ask_event<KeepFloatControl>(event, timeout_ns, generation);
}

template <typename Keep>
LTC_ALWAYS_INLINE bool PluginDevice::ask_event(ltc_event* event, uint64_t timeout_ns, uint32_t generation) {
  require_events("event_wait", event);
  bool finished = false;
  try {
    const Open alive = keep_open();
    ask<Keep>(generation, "event_wait",
              [this, event, timeout_ns, &finished] { return api().event_wait(event, timeout_ns, &finished); });
  } catch (const PluginError& error) {
    if (finished || generation != generation_) throw;
    throw WaitFailed(error);
  }
  if (!finished && timeout_ns == kForever) {
    throw WaitFailed(BrokenContract(name(), "event_wait returned from a wait without a time limit, the work not finished"));
  }
  return finished;
}

void PluginDevice::destroy_event(ltc_event* event, uint32_t generation) noexcept {
  if (!event || !api().event_destroy) return;
  const Open alive = keep_open();
  // Once it is forgotten the plugin may give the same address again.
  if (generation == generation_ && forget(events_, event)) plugin_->tell("event_destroy", [&] { api().event_destroy(event); });
}

std::vector<uint8_t> PluginDevice::good_outputs(ltc_event* event, size_t output_count, uint32_t generation) {
  std::vector<uint8_t> good(output_count, 0);
  if (!event || !api().event_good_outputs) return good;
  const Open alive = keep_open();
  ask(generation, "event_good_outputs", [&] { return api().event_good_outputs(event, output_count, good.data()); });
  return good;
}

MemoryStats PluginDevice::memory_stats() {
  if (!api().memory_stats) return {};
  auto stats = sized<ltc_memory_stats>();
  stats.in_use_bytes = stats.peak_bytes = stats.limit_bytes = stats.largest_free_bytes = UINT64_MAX;
  ask("memory_stats", [&] { return api().memory_stats(device_, &stats); });
  return {known(stats.in_use_bytes), known(stats.peak_bytes), known(stats.limit_bytes), known(stats.largest_free_bytes)};
}

// ---- checks

void PluginDevice::refuse_computing(const char* slot) const {
  throw PluginError(Code::kUnsupported, name(), slot, "this plugin holds memory and does not compute");
}

void PluginDevice::require_handle(const char* slot, const void* handle) const {
  if (!handle) throw BrokenContract(name(), cat(slot, " succeeded and gave a null handle"));
}

void PluginDevice::refuse_event(const char* slot) const {
  throw BrokenContract(name(), cat(slot, " gave an event, but the plugin has no event_wait"));
}

// ---- groups

ltc_group* PluginDevice::create_group(const ltc_group_args& args, uint32_t* generation) {
  ltc_group* group = nullptr;
  const Open alive = keep_open();
  ask(generation_, "group_create", [&] { return collectives().group_create(device_, &args, &group); });
  require_handle("group_create", group);
  remember(alive, groups_, group, generation);
  return group;
}

void PluginDevice::abort_group(ltc_group* group, uint32_t generation) noexcept {
  const Open alive = keep_open();
  if (generation == generation_) plugin_->tell("group_abort", [&] { collectives().group_abort(group); });
}

void PluginDevice::destroy_group(ltc_group* group, uint32_t generation) noexcept {
  const Open alive = keep_open();
  if (generation == generation_ && forget(groups_, group)) {
    plugin_->tell("group_destroy", [&] { collectives().group_destroy(group); });
  }
}

// The event is the caller's from here on. One that is somebody else's already would be destroyed twice.
ltc_event* PluginDevice::take_event(const char* slot, ltc_event* event) {
  if (!event) return nullptr;
  require_events(slot, event);
  std::lock_guard lock(handles_lock_);
  if (!events_.insert(event)) {
    throw BrokenContract(name(), cat(slot, " gave an event that it gave before and that is not destroyed yet"));
  }
  return event;
}

void PluginDevice::check_outputs(const ltc_execute_args& args, ltc_buffer* const* outputs) {
  const bool few = args.input_count + args.output_count <= 16;  // then to compare each with each is quicker
  if (!few) {
    seen_.clear();
    for (size_t i = 0; i < args.input_count; ++i) {
      if (!is_donated(args, i)) seen_.insert(args.inputs[i]);
    }
  }
  for (size_t i = 0; i < args.output_count; ++i) {
    ltc_buffer* const output = outputs[i];
    const auto broken = [&](const char* what) {
      throw BrokenContract(name(), cat("execute succeeded and gave ", what, " output ", i, " of ", args.output_count));
    };
    if (!output) broken("no");
    const bool is_new =
        few ? !is_borrowed(args, output) && std::find(outputs, outputs + i, output) == outputs + i : seen_.insert(output);
    if (!is_new) broken(is_borrowed(args, output) ? "an input as" : "another output again as");
  }
}

// Each output once, and no input.
void PluginDevice::drop_outputs(const ltc_execute_args& args, ltc_buffer** outputs) noexcept {
  const std::span<ltc_buffer*> made(outputs, args.output_count);
  for (ltc_buffer* output : made) {
    if (!output) continue;
    std::ranges::replace(made, output, nullptr);
    if (!is_borrowed(args, output)) destroy_buffer(output);
  }
}

}  // namespace ltc::host
