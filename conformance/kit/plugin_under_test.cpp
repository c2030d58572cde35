#include "conformance/kit/plugin_under_test.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>

#include "core/compile/lowering/abi_graph.h"
#include "core/host/library.h"
#include "core/host/search.h"
#include "core/host/sized.h"
#include "core/host/status.h"
#include "core/ir/text.h"

namespace ltc::conformance {
namespace {

std::string path_under_test, text_under_test;
std::unique_ptr<host::OptionList> options_under_test;
bool loaded_quietly = true;

// A handle that no plugin gives: out parameters hold it before a call, so that one that is set to null shows too.
template <typename T>
T* untouched() {
  static char place;
  return reinterpret_cast<T*>(&place);
}

void expect_untouched(const char* slot, const void* out, const Failure& failure, const void* before = nullptr) {
  EXPECT_EQ(out, before) << slot << " failed (" << failure << ") and wrote its out parameter; the contract: after an error "
                         << "every out parameter is unchanged";
}

[[noreturn]] void broken(const char* slot, const std::string& what) { throw std::runtime_error(cat(slot, " ", what)); }

// Whether the handle is an input that stays the caller's.
bool is_borrowed(const Device::RunArgs& run, const ltc_buffer* buffer) {
  for (size_t i = 0; i < run.inputs.size(); ++i) {
    if (run.inputs[i] == buffer && (run.donate.empty() || !run.donate[i])) return true;
  }
  return false;
}

void throw_if(const char* slot, const Failure& failure) {
  if (failure) broken(slot, cat("failed: ", code_text(failure.code), ": ", failure.message));
}

}  // namespace

void set_backend(const std::string& text) {
  text_under_test = text;
  static host::Options options;  // the list borrows them
  host::BackendEntry entry = host::parse_entry(text);
  options = host::with_environment(std::move(entry.options), entry.plugin);
  options_under_test = std::make_unique<host::OptionList>(options);
  path_under_test = std::move(entry.plugin);
}
const std::string& backend_path() { return path_under_test; }
const std::string& backend_text() { return text_under_test; }
const host::OptionList& backend_options() { return *options_under_test; }

ltc_plugin_entry_fn* backend_entry() {
  static ltc_plugin_entry_fn* const entry = [] {
    const FloatControl before = FloatControl::current();
    host::Library library = host::Library::open(path_under_test);
    loaded_quietly = FloatControl::current() == before;
    before.restore();
    auto* found = reinterpret_cast<ltc_plugin_entry_fn*>(library.find("ltc_plugin_entry"));
    library.keep();
    if (!found) fail(Code::kNotFound, path_under_test, " exports no ltc_plugin_entry");
    return found;
  }();
  return entry;
}

bool loading_kept_float_control() {
  backend_entry();
  return loaded_quietly;
}

ExpectFloatControl::~ExpectFloatControl() {
  if (FloatControl::current() == before_) return;
  before_.restore();
  ADD_FAILURE() << slot_ << " changed how the thread computes floating-point numbers (rounding, FTZ, DAZ, trapped exceptions); "
                << "the contract: that stays as it was, since the thread is the user's";
}

std::string code_text(ltc_code code) {
  if (code == 0) return "success";
  const bool known = code >= LTC_INVALID_ARGUMENT && code <= LTC_OUT_OF_RANGE;
  return known ? code_name(static_cast<Code>(code)) : cat("code ", code);
}

std::ostream& operator<<(std::ostream& out, const Failure& failure) {
  out << code_text(failure.code);
  if (failure) out << ": " << failure.message;
  return out;
}

// ---- the instance

Instance::Instance(HostCache* cache) : host_(std::make_unique<HostProbe>(cache)) {
  auto args = host::sized<ltc_entry_args>();
  args.host = host_->table();
  args.oldest = {LTC_ABI_MAJOR, 0};
  args.newest = {LTC_ABI_MAJOR, LTC_ABI_MINOR};
  args.option_count = backend_options().size();
  args.options = backend_options().data();
  const bool accepted = guarded("ltc_plugin_entry", [&] { return backend_entry()(&args); });
  if (!accepted) broken("ltc_plugin_entry", cat("refused ABI 1.0: ", args.reason ? args.reason : "no reason given"));
  if (!args.api) broken("ltc_plugin_entry", "accepted and gave no table");
  const size_t size = std::min(args.api->struct_size, sizeof(api_));
  std::memcpy(&api_, args.api, size);
  plugin_ = args.plugin;
  const bool has_memory =
      api_.describe && api_.device_open && api_.device_close && api_.buffer_create && api_.buffer_destroy && api_.transfer;
  if (!has_memory) broken("ltc_plugin_entry", "gave a table without the six memory slots, which every plugin must have");
}

Instance::~Instance() {
  if (api_.plugin_close) ended("plugin_close", [&] { api_.plugin_close(plugin_); });
  host_->close();
  for (const std::string& breach : host_->breaches()) ADD_FAILURE() << breach;
}

ltc_plugin_info Instance::describe() const {
  auto info = host::sized<ltc_plugin_info>();
  throw_if("describe", asked("describe", [&] { return api_.describe(plugin_, &info); }));
  return info;
}

Failure Instance::taken(const char* slot, ltc_status* status) {
  if (!status) return {};
  const Failure failure{status->code, status->node, status->message};
  host::status_destroy(status);
  EXPECT_TRUE(failure.code >= LTC_INVALID_ARGUMENT && failure.code <= LTC_OUT_OF_RANGE)
      << slot << " answered with the code " << failure.code << ", which ABI 1.0 does not have";
  return failure;
}

void Instance::ended(const char* slot, const std::function<void()>& call) {
  try {
    guarded(slot, call);
  } catch (const std::exception& e) {
    ADD_FAILURE() << e.what();
  }
}

// ---- the device

Device::Device(Instance& instance, uint32_t ordinal) : instance_(instance), info_(host::sized<ltc_device_info>()) {
  const ltc_plugin_info plugin = instance.describe();
  if (ordinal >= plugin.device_count) {
    const std::string why = plugin.why_no_device.data ? plugin.why_no_device.data : "";
    throw std::runtime_error(cat("no device ", ordinal, " to test: the plugin has ", plugin.device_count, ": ", why));
  }
  auto args = host::sized<ltc_device_args>();
  args.ordinal = ordinal;
  const Failure failure =
      Instance::asked("device_open", [&] { return api().device_open(instance.get(), &args, &info_, &device_); });
  throw_if("device_open", failure);
  if (!device_) broken("device_open", "succeeded and gave no device");
}

Device::~Device() {
  Instance::ended("device_close", [&] { api().device_close(device_); });
}

void Device::destroy_buffer(ltc_buffer* buffer) {
  Instance::ended("buffer_destroy", [&] { api().buffer_destroy(buffer); });
}
void Device::destroy_program(ltc_program* program) {
  Instance::ended("program_destroy", [&] { api().program_destroy(program); });
}
void Device::destroy_executable(ltc_executable* executable) {
  Instance::ended("executable_destroy", [&] { api().executable_destroy(executable); });
}
void Device::destroy_event(ltc_event* event) {
  if (api().event_destroy) Instance::ended("event_destroy", [&] { api().event_destroy(event); });
}

Failure Device::create_buffer(const ltc_type& type, Buffer& buffer) {
  auto args = host::sized<ltc_buffer_args>();
  args.type = &type;
  auto* const before = untouched<ltc_buffer>();
  ltc_buffer* made = before;
  const Failure failure = Instance::asked("buffer_create", [&] { return api().buffer_create(device_, &args, &made); });
  if (failure) {
    expect_untouched("buffer_create", made, failure, before);
    return failure;
  }
  if (!made || made == before) broken("buffer_create", "succeeded and gave no buffer");
  buffer = Buffer(*this, made);
  return {};
}

bool Device::opens_again(Instance& instance, uint32_t ordinal) {
  auto args = host::sized<ltc_device_args>();
  args.ordinal = ordinal;
  auto info = host::sized<ltc_device_info>();
  ltc_device* opened = nullptr;
  const Failure failure =
      Instance::asked("device_open", [&] { return instance.api().device_open(instance.get(), &args, &info, &opened); });
  if (opened) Instance::ended("device_close", [&] { instance.api().device_close(opened); });
  return failure.code != LTC_RESOURCE_EXHAUSTED;
}

bool Device::copies_parts() {
  const Buffer two = buffer(DType::kF32, {2});
  const float data = 1;
  Event done;
  const Failure failure = transfer(to_device(two, &data, sizeof data), done);
  if (!failure) (void)finish(done);
  return failure.code != LTC_UNSUPPORTED;
}

Buffer Device::buffer(DType dtype, const Sizes& sizes) {
  Buffer result;
  throw_if("buffer_create", create_buffer(abi_type(dtype, sizes), result));
  return result;
}

Failure Device::transfer(const ltc_transfer_args& args, Event& done) {
  ltc_event* event = nullptr;
  const Failure failure = Instance::asked("transfer", [&] { return api().transfer(device_, &args, &event); });
  if (failure) {
    expect_untouched("transfer", event, failure);
    return failure;
  }
  if (event && !instance_.is_asynchronous()) broken("transfer", "gave an event, but the plugin has no event_wait");
  done = Event(*this, event);
  return {};
}

Buffer Device::upload(const Array& array) {
  Buffer result = buffer(array.dtype, array.sizes);
  Event done;
  throw_if("transfer to the device", transfer(to_device(result, array.bytes.data(), array.bytes.size()), done));
  throw_if("transfer to the device", finish(done));
  return result;
}

Array Device::download(const Buffer& buffer, DType dtype, const Sizes& sizes) {
  Array result(dtype, sizes);
  Event done;
  throw_if("transfer from the device", transfer(from_device(buffer, result.bytes.data(), result.bytes.size()), done));
  throw_if("transfer from the device", finish(done));
  return result;
}

Failure Device::claims(const ltc_graph& graph, std::vector<uint32_t>& clusters) {
  clusters.assign(graph.node_count, 0);
  auto args = host::sized<ltc_claims_args>();
  args.graph = &graph;
  return Instance::asked("claims", [&] { return api().claims(device_, &args, clusters.data()); });
}

Failure Device::lower(const ltc_graph& graph, Program& program, const ltc_extension* ext) {
  auto args = host::sized<ltc_lower_args>();
  args.ext = ext;
  args.graph = &graph;
  auto* const before = untouched<ltc_program>();
  ltc_program* made = before;
  const Failure failure = Instance::asked("lower", [&] { return api().lower(device_, &args, &made); });
  if (failure) {
    expect_untouched("lower", made, failure, before);
    return failure;
  }
  if (!made || made == before) broken("lower", "succeeded and gave no program");
  program = Program(*this, made);
  return {};
}

Failure Device::compile(const ltc_compile_args& args, Executable& executable) {
  auto* const before = untouched<ltc_executable>();
  ltc_executable* made = before;
  const Failure failure = Instance::asked("compile", [&] { return api().compile(device_, &args, &made); });
  if (failure) {
    expect_untouched("compile", made, failure, before);
    return failure;
  }
  if (!made || made == before) broken("compile", "succeeded and gave no executable");
  executable = Executable(*this, made);
  return {};
}

Program Device::lower(const std::string& graph) {
  const Graph parsed = parse(graph);
  const AbiGraph abi(parsed);
  Program program;
  throw_if("lower", lower(*abi.get(), program));
  return program;
}

Executable Device::compile(const Program& program, uint32_t effort) {
  auto args = host::sized<ltc_compile_args>();
  args.program = program.get();
  args.effort = effort;
  Executable executable;
  throw_if("compile", compile(args, executable));
  return executable;
}

Executable Device::build(const std::string& graph) { return compile(lower(graph)); }

Executable Device::build(const Graph& graph) {
  const AbiGraph abi(graph);
  Program program;
  throw_if("lower", lower(*abi.get(), program));
  return compile(program);
}

Device::Run Device::submit(const RunArgs& run) {
  auto args = host::sized<ltc_execute_args>();
  args.ext = run.ext;
  args.executable = run.executable.get();
  args.input_count = run.inputs.size();
  args.inputs = run.inputs.data();
  args.donate = run.donate.empty() ? nullptr : run.donate.data();
  args.scalar_count = run.scalars.size();
  args.scalars = run.scalars.data();
  args.output_count = run.output_count;
  args.run_id = 1;
  std::vector<ltc_buffer*> outputs(run.output_count + 1, nullptr);
  ltc_event* event = nullptr;
  Run result;
  result.submitted = Instance::asked("execute", [&] { return api().execute(device_, &args, outputs.data(), &event); });
  const auto given = outputs.begin() + static_cast<ptrdiff_t>(run.output_count);
  EXPECT_EQ(*given, nullptr) << "execute wrote more than output_count outputs";
  if (result.submitted) {
    expect_untouched("execute", event, result.submitted);
    for (auto it = outputs.begin(); it != given; ++it) expect_untouched("execute", *it, result.submitted);
    return result;
  }
  if (event && !instance_.is_asynchronous()) broken("execute", "gave an event, but the plugin has no event_wait");
  result.done = Event(*this, event);
  for (auto it = outputs.begin(); it != given; ++it) {
    const auto number = cat(" output ", it - outputs.begin(), " of ", run.output_count);
    if (!*it) broken("execute", "succeeded and gave no" + number);
    if (std::find(outputs.begin(), it, *it) != it) broken("execute", "gave another output again as" + number);
    if (is_borrowed(run, *it)) broken("execute", "gave an input as" + number);
  }
  for (auto it = outputs.begin(); it != given; ++it) result.outputs.emplace_back(*this, *it);
  return result;
}

std::vector<Buffer> Device::run(const RunArgs& args) {
  Run result = submit(args);
  throw_if("execute", result.submitted);
  throw_if("the run", finish(result.done));
  return std::move(result.outputs);
}

Failure Device::wait(const Event& event, uint64_t timeout_ns, bool& finished) {
  if (!event) {
    finished = true;
    return {};
  }
  return Instance::asked("event_wait", [&] { return api().event_wait(event.get(), timeout_ns, &finished); });
}

Failure Device::finish(const Event& event) {
  bool finished = false;
  const Failure failure = wait(event, LTC_FOREVER, finished);
  EXPECT_TRUE(failure || finished) << "event_wait returned from a wait without a time limit, the work not finished";
  return failure;
}

ltc_memory_stats Device::memory_stats() {
  auto stats = host::sized<ltc_memory_stats>();
  stats.in_use_bytes = stats.peak_bytes = stats.limit_bytes = stats.largest_free_bytes = UINT64_MAX;
  throw_if("memory_stats", Instance::asked("memory_stats", [&] { return api().memory_stats(device_, &stats); }));
  return stats;
}

ltc_transfer_args to_device(const Buffer& buffer, const void* from, uint64_t size, uint64_t offset) {
  auto args = host::sized<ltc_transfer_args>();
  args.direction = LTC_TO_DEVICE;
  args.buffer = buffer.get();
  args.offset_bytes = offset;
  args.size_bytes = size;
  args.from = from;
  return args;
}

ltc_transfer_args from_device(const Buffer& buffer, void* to, uint64_t size, uint64_t offset) {
  auto args = host::sized<ltc_transfer_args>();
  args.direction = LTC_FROM_DEVICE;
  args.buffer = buffer.get();
  args.offset_bytes = offset;
  args.size_bytes = size;
  args.to = to;
  return args;
}

}  // namespace ltc::conformance
