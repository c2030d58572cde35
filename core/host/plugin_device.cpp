// What an open device does, one method per slot of the table.
#include <algorithm>

#include "core/host/call.h"
#include "core/host/plugin.h"
#include "core/host/sized.h"
#include "ltc/precision.h"

namespace ltc::host {
namespace {

// An ltc_sink that appends to a string. Its write must not throw through the plugin.
ltc_sink sink_into(std::string& text) {
  return {&text, [](void* context, const void* data, size_t size) -> bool {
            try {
              static_cast<std::string*>(context)->append(static_cast<const char*>(data), size);
              return true;
            } catch (...) {
              return false;
            }
          }};
}

std::optional<uint64_t> known(uint64_t value) { return value == UINT64_MAX ? std::nullopt : std::optional(value); }

}  // namespace

PluginDevice::~PluginDevice() {
  ended(name(), "device_close", [&] { api().device_close(device_); });
}

// ---- memory

ltc_buffer* PluginDevice::create_buffer(const ltc_type& type) {
  auto args = sized<ltc_buffer_args>();
  args.type = &type;
  ltc_buffer* buffer = nullptr;
  checked(name(), "buffer_create", [&] { return api().buffer_create(device_, &args, &buffer); });
  require_handle("buffer_create", buffer);
  return buffer;
}

void PluginDevice::destroy_buffer(ltc_buffer* buffer) noexcept {
  if (buffer) ended(name(), "buffer_destroy", [&] { api().buffer_destroy(buffer); });
}

ltc_event* PluginDevice::transfer(const ltc_transfer_args& args) {
  ltc_event* event = nullptr;
  checked(name(), "transfer", [&] { return api().transfer(device_, &args, &event); });
  check_event("transfer", event);
  return event;
}

// ---- computing

std::vector<uint32_t> PluginDevice::claims(const ltc_graph& graph) {
  std::vector<uint32_t> cluster(graph.node_count, 0);
  if (!can_compute()) return cluster;
  auto args = sized<ltc_claims_args>();
  args.graph = &graph;
  checked(name(), "claims", [&] { return api().claims(device_, &args, cluster.data()); });
  return cluster;
}

ltc_program* PluginDevice::lower(const ltc_graph& graph, uint32_t precision, const ltc_symbolic_sizes* sizes) {
  require_computing("lower");
  const ltc_precision allowed{{sizeof allowed, LTC_EXTENSION_PRECISION, 1, nullptr}, precision};
  ltc_symbolic_sizes symbolic = sizes ? *sizes : ltc_symbolic_sizes{};
  auto args = sized<ltc_lower_args>();
  if (plugin_->understands(LTC_EXTENSION_PRECISION)) args.ext = &allowed.head;
  if (sizes) symbolic.head.next = std::exchange(args.ext, &symbolic.head);
  args.graph = &graph;
  ltc_program* program = nullptr;
  checked(name(), "lower", [&] { return api().lower(device_, &args, &program); });
  require_handle("lower", program);
  return program;
}

void PluginDevice::destroy_program(ltc_program* program) noexcept {
  if (program) ended(name(), "program_destroy", [&] { api().program_destroy(program); });
}

std::optional<std::string> PluginDevice::program_text(const ltc_program* program) {
  if (!api().program_text) return std::nullopt;
  std::string text;
  const ltc_sink sink = sink_into(text);
  checked(name(), "program_text", [&] { return api().program_text(program, &sink); });
  return text;
}

ltc_executable* PluginDevice::compile(const ltc_program* program, uint32_t effort, const Options& options) {
  require_computing("compile");
  const OptionList list(options);
  auto args = sized<ltc_compile_args>();
  args.program = program;
  args.effort = effort;
  args.option_count = list.size();
  args.options = list.data();
  ltc_executable* executable = nullptr;
  checked(name(), "compile", [&] { return api().compile(device_, &args, &executable); });
  require_handle("compile", executable);
  return executable;
}

void PluginDevice::destroy_executable(ltc_executable* executable) noexcept {
  if (executable) ended(name(), "executable_destroy", [&] { api().executable_destroy(executable); });
}

ltc_event* PluginDevice::execute(const ltc_execute_args& args, ltc_buffer** outputs) {
  require_computing("execute");
  std::fill_n(outputs, args.output_count, nullptr);
  ltc_event* event = nullptr;
  try {
    checked(name(), "execute", [&] { return api().execute(device_, &args, outputs, &event); });
  } catch (...) {
    // Nothing that a plugin left here after an error can be trusted to be a handle.
    std::fill_n(outputs, args.output_count, nullptr);
    throw;
  }
  try {
    check_event("execute", event);
    const auto* missing = std::find(outputs, outputs + args.output_count, nullptr);
    if (missing != outputs + args.output_count) {
      throw BrokenContract(
          cat("[", name(), "] execute succeeded and gave no output ", missing - outputs, " of ", args.output_count));
    }
  } catch (...) {
    drop_outputs(outputs, args.output_count);
    if (plugin_->is_asynchronous()) destroy_event(event);
    throw;
  }
  return event;
}

std::optional<std::string> PluginDevice::save_executable(const ltc_executable* executable) {
  if (!api().executable_save) return std::nullopt;
  std::string bytes;
  const ltc_sink sink = sink_into(bytes);
  try {
    checked(name(), "executable_save", [&] { return api().executable_save(executable, &sink); });
  } catch (const Error& e) {
    if (e.code() != Code::kUnsupported) throw;
    return std::nullopt;
  }
  return bytes;
}

ltc_executable* PluginDevice::load_executable(const void* data, size_t size) {
  if (!api().executable_load) return nullptr;
  auto args = sized<ltc_load_args>();
  args.data = data;
  args.size = size;
  ltc_executable* executable = nullptr;
  try {
    checked(name(), "executable_load", [&] { return api().executable_load(device_, &args, &executable); });
  } catch (const Error& e) {
    log::debug(e.what(), "; compiling again");
    return nullptr;
  }
  return executable;
}

// ---- events

bool PluginDevice::wait(ltc_event* event, uint64_t timeout_ns) {
  if (!event) return true;
  check_event("event_wait", event);
  bool finished = false;
  checked(name(), "event_wait", [&] { return api().event_wait(event, timeout_ns, &finished); });
  if (!finished && timeout_ns == kForever) {
    fail(Code::kInternal, "[", name(), "] event_wait returned from a wait without a time limit, the work not finished");
  }
  return finished;
}

void PluginDevice::destroy_event(ltc_event* event) noexcept {
  if (event && api().event_destroy) ended(name(), "event_destroy", [&] { api().event_destroy(event); });
}

MemoryStats PluginDevice::memory_stats() {
  if (!api().memory_stats) return {};
  auto stats = sized<ltc_memory_stats>();
  stats.in_use_bytes = stats.peak_bytes = stats.limit_bytes = stats.largest_free_bytes = UINT64_MAX;
  checked(name(), "memory_stats", [&] { return api().memory_stats(device_, &stats); });
  return {known(stats.in_use_bytes), known(stats.peak_bytes), known(stats.limit_bytes), known(stats.largest_free_bytes)};
}

// ---- checks

void PluginDevice::require_computing(const char* slot) const {
  if (!can_compute()) fail(Code::kUnsupported, "[", name(), "] ", slot, ": this plugin holds memory and does not compute");
}

void PluginDevice::require_handle(const char* slot, const void* handle) const {
  if (!handle) fail(Code::kInternal, "[", name(), "] ", slot, " succeeded and gave a null handle");
}

void PluginDevice::check_event(const char* slot, ltc_event* event) const {
  if (event && !plugin_->is_asynchronous()) {
    throw BrokenContract(cat("[", name(), "] ", slot, " gave an event, but the plugin has no event_wait"));
  }
}

void PluginDevice::drop_outputs(ltc_buffer** outputs, size_t count) noexcept {
  for (size_t i = 0; i < count; ++i) destroy_buffer(std::exchange(outputs[i], nullptr));
}

}  // namespace ltc::host
