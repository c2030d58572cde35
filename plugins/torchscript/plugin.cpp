// The function table, and the little that is left once memory, lowering and execution are elsewhere.
#include <ATen/Context.h>
#include <c10/util/StringUtil.h>
#include <torch/version.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "ltc/entry.h"
#include "torchscript/device.h"
#include "torchscript/execute.h"
#include "torchscript/fusion/clusters.h"
#include "torchscript/fusion/primitives.h"
#include "torchscript/graph/errors.h"
#include "torchscript/graph/types.h"
#include "torchscript/lower.h"
#include "torchscript/ops/gemm.h"
#include "torchscript/ops/ops.h"
#include "torchscript/ops/random_layouts.h"
#include "torchscript/ops/warm_up.h"
#include "torchscript/threads/memory_pool.h"

struct ltc_program {
  ltc_program(const ltc_host_api* api, ltc::torchscript::Program lowered) : host(api), program_(std::move(lowered)) {}

  // Calls `use` with the program, optimized if that is wanted or was before. One call at a time.
  template <typename Use>
  auto with(bool optimized, const Use& use) const {
    const std::lock_guard lock(mutex_);
    if (optimized && !std::exchange(is_optimized_, true)) ltc::torchscript::optimize(program_);
    return use(std::as_const(program_));
  }

  const ltc_host_api* const host;

 private:
  mutable std::mutex mutex_;
  mutable bool is_optimized_ = false;
  mutable ltc::torchscript::Program program_;
};

struct ltc_executable {
  ltc_executable(const ltc::torchscript::Program& program, ltc_device* device)
      : host(device->plugin->host), executable(program, device->plugin->kernels) {}
  ltc_executable(std::string_view saved, ltc_device* device)
      : host(device->plugin->host), executable(saved, device->queue.device(), device->plugin->kernels) {}

  const ltc_host_api* const host;
  ltc::torchscript::Executable executable;
};

namespace ltc::torchscript {
namespace {

constexpr plugin::OptionRow kOptions[] = {
    {"kernels", "async", "async|sync|off",
     "loops are compiled in the background, or before the step that has them, or are interpreted (off)"},
    {"gemm", "auto", "auto|autotune|blas|onednn",
     "the library of large products: oneDNN on AMD's processors and else the BLAS (auto), the faster one by a trial (autotune), "
     "or one"},
    {"weights", "packed", "packed|plain",
     "convolutions multiply with weights in a form that is kept beside them (packed), or convert them in each run (plain)"},
    {"cuda", "0", "0|1", "1: libtorch's CUDA devices instead of the CPU"},
    {"layouts", "", "|random:SEED", "for tests: values get random strides, from this seed"},
};

host_compiler::CompileMode compile_mode(const std::string& value) {
  if (value == "sync") return host_compiler::CompileMode::kSync;
  return value == "off" ? host_compiler::CompileMode::kOff : host_compiler::CompileMode::kAsync;
}

}  // namespace
}  // namespace ltc::torchscript

ltc_plugin::ltc_plugin(const ltc_entry_args& args)
    : host(args.host),
      options(ltc::torchscript::kOptions, args),
      devices(options["cuda"] == "1" ? c10::DeviceType::CUDA : c10::DeviceType::CPU),
      kernels(host, ltc::torchscript::tile_cpu(), ltc::torchscript::compile_mode(options["kernels"])),
      thread_pool(host) {
  ltc::torchscript::choose_gemm(options["gemm"]);
  ltc::torchscript::choose_layouts_seed(options["layouts"]);
}

// Options that change the compiled code are a part of it.
ltc_device::ltc_device(ltc_plugin* owner, uint32_t ordinal)
    : plugin(owner),
      queue(owner->devices, ordinal),
      fingerprint(c10::str(queue.device().is_cpu() ? "cpu" : "cuda", ", torch ", TORCH_VERSION,
                           owner->options["weights"] == "packed" ? "" : ", plain weights",
                           owner->options["layouts"].empty() ? "" : ", layouts ", owner->options["layouts"])) {}

const ltc::torchscript::Devices& ltc_plugin::found() {
  std::call_once(once_, [this] { found_ = ltc::torchscript::find_devices(devices); });
  return found_;
}

namespace ltc::torchscript {

void deliver(ltc_device* device, std::optional<Error> error, ltc_event** done) {
  std::optional<c10::Event> fence;
  try {
    fence = device->queue.mark();
  } catch (...) {
    if (!error) error = current_error();
  }
  if (!error && !fence) return;
  *done = new ltc_event{device->plugin->host, std::move(error), std::move(fence)};
}

namespace {

using plugin::destroy;
using plugin::literal;

// libtorch can ask and wait, but not wait for some time only.
bool is_over_within(const c10::Event& fence, uint64_t timeout_ns) {
  if (timeout_ns == LTC_FOREVER) {
    fence.synchronize();
    return true;
  }
  const auto began = std::chrono::steady_clock::now();
  const auto waited_ns = [&] { return static_cast<uint64_t>((std::chrono::steady_clock::now() - began).count()); };
  while (!fence.query()) {
    if (waited_ns() >= timeout_ns) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  return true;
}

uint64_t host_memory() { return static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)); }

void describe(ltc_plugin* plugin, ltc_plugin_info& info) {
  info.name = literal("torchscript");
  info.version = literal("0.1.0");
  info.build_id = literal("torchscript 0.1.0, torch " TORCH_VERSION);
  info.why_no_device = {plugin->found().why_none.data(), plugin->found().why_none.size()};
  info.device_count = plugin->found().count;
  info.sanitizers = plugin::sanitizers();
  info.licence = literal("Apache-2.0");
  plugin->options.list(info);
}

void device_open(ltc_plugin* plugin, const ltc_device_args& args, ltc_device_info& info, ltc_device*& device) {
  plugin::check_ordinal(args, plugin->found().count);
  auto opened = std::make_unique<ltc_device>(plugin, args.ordinal);
  const bool on_host = opened->queue.device().is_cpu();
  info.name = on_host ? literal("libtorch CPU") : literal("libtorch CUDA");
  info.fingerprint = {opened->fingerprint.data(), opened->fingerprint.size()};
  info.dtypes = supported_dtypes();
  info.memory_bytes = on_host ? host_memory() : 0;
  info.flags = on_host ? LTC_DEVICE_QUICK_COMPILE : 0;
  device = opened.release();
}

void device_close(ltc_device* device) {
  try {
    device->queue.wait();
  } catch (...) {  // nobody is left to hear of it
  }
  delete device;
}

void buffer_create(ltc_device* device, const ltc_buffer_args& args, ltc_buffer*& buffer) { buffer = create_buffer(device, args); }

void transfer_bytes(ltc_device* device, const ltc_transfer_args& args, ltc_event** done) {
  transfer(device, args);
  deliver(device, std::nullopt, done);
}

void claims(ltc_device* device, const ltc_claims_args& args, uint32_t* cluster) {
  claim(*args.graph, device->queue.device(), cluster);
}

// Anything that libtorch refuses is unsupported, such as a tensor of more dims than a jit graph has.
template <typename Body>
void or_unsupported(const Body& body) {
  try {
    body();
  } catch (const c10::Error& refusal) {
    throw Failure(LTC_UNSUPPORTED, refusal.what_without_backtrace());
  }
}

void lower_graph(ltc_device* device, const ltc_lower_args& args, ltc_program*& program) {
  const auto* sizes = reinterpret_cast<const ltc_symbolic_sizes*>(ltc_find_extension(args.ext, LTC_EXTENSION_SYMBOLIC));
  or_unsupported([&] {
    Program lowered = lower(*args.graph, device->queue.device(), sizes);
    lowered.packs_weights = device->plugin->options["weights"] == "packed";
    program = new ltc_program(device->plugin->host, std::move(lowered));
  });
}

void compile(ltc_device* device, const ltc_compile_args& args, ltc_executable*& executable) {
  or_unsupported([&] {
    executable = args.program->with(args.effort > 0, [&](const Program& program) { return new ltc_executable(program, device); });
  });
}

void execute(ltc_device* device, const ltc_execute_args& args, ltc_buffer** outputs, ltc_event** done) {
  deliver(device, submit(device, args.executable->executable, args, outputs), done);
}

void event_wait(ltc_event* event, uint64_t timeout_ns, bool& finished) {
  finished = true;  // as it is with an error too
  if (event->fence && !(finished = is_over_within(*event->fence, timeout_ns))) return;
  if (event->error) throw Failure(*event->error);
}

// A sink that wants no more is no error.
void program_text(const ltc_program* program, const ltc_sink& sink) {
  const std::string printed =
      program->with(true, [](const Program& it) { return it.symbols.text() + it.graph->toString() + clusters_text(it); });
  sink.write(sink.context, printed.data(), printed.size());
}

void executable_save(const ltc_executable* executable, const ltc_sink& sink) {
  const std::string bytes = executable->executable.save();
  sink.write(sink.context, bytes.data(), bytes.size());
}

void executable_load(ltc_device* device, const ltc_load_args& args, ltc_executable*& executable) {
  const std::string_view bytes(static_cast<const char*>(args.data), args.size);
  executable = new ltc_executable(bytes, device);
  if (device->queue.device().is_cpu()) warm_up_kernels();
}

void memory_stats(ltc_device* device, ltc_memory_stats& stats) {
  stats.in_use_bytes = device->memory.in_use();
  stats.peak_bytes = device->memory.peak();
}

constexpr ltc_extension kSymbolic{sizeof(ltc_extension), LTC_EXTENSION_SYMBOLIC, 1, nullptr};
constexpr ltc_extension kProfile{sizeof(ltc_extension), LTC_EXTENSION_PROFILE, 1, &kSymbolic};

const ltc_plugin_api kApi = {
    .struct_size = LTC_SIZE_TO(ltc_plugin_api, memory_stats),
    .ext = &kProfile,
    .describe = slot<describe>,
    .device_open = slot<device_open>,
    .device_close = device_close,
    .buffer_create = slot<buffer_create>,
    .buffer_destroy = destroy<ltc_buffer>,
    .transfer = slot<transfer_bytes>,
    .claims = slot<claims>,
    .lower = slot<lower_graph>,
    .program_destroy = destroy<ltc_program>,
    .compile = slot<compile>,
    .executable_destroy = destroy<ltc_executable>,
    .execute = slot<execute>,
    .event_wait = slot<event_wait>,
    .event_destroy = destroy<ltc_event>,
    .plugin_close = destroy<ltc_plugin>,
    .program_text = slot<program_text>,
    .executable_save = slot<executable_save>,
    .executable_load = slot<executable_load>,
    .memory_stats = slot<memory_stats>,
};

ltc_plugin* start(const ltc_entry_args& args) {
  at::globalContext();  // kernels ask it, so its end comes after that of their device
  use_atens_instruction_set();
  register_operators();
  install_memory_pool();
  return new ltc_plugin(args);
}

bool enter(ltc_entry_args* args) {
  return plugin::enter(args, {1, 0}, {1, 0}, kApi, [&] { return start(*args); });
}

}  // namespace
}  // namespace ltc::torchscript

bool ltc_plugin_entry(ltc_entry_args* args) { return ltc::torchscript::enter(args); }
