#include "core/deploy/model.h"

#include <algorithm>
#include <functional>
#include <set>

#include "core/base/env.h"
#include "core/base/log.h"
#include "core/compile/cache/saved_program.h"
#include "core/compile/lowering/precision.h"
#include "core/deploy/compile_function.h"
#include "core/host/search.h"
#include "core/ir/text.h"

namespace ltc::deploy {
namespace {

constexpr uint32_t kMostInstances = 1024;

// One device for each instance.
std::vector<std::unique_ptr<host::PluginDevice>> open_devices(const ModelOptions& options) {
  const std::string backend = options.backend.empty() ? env::get(env::kBackend) : options.backend;
  const std::vector<host::BackendEntry> entries = host::parse_backends(backend);
  if (entries.size() != 1)
    fail(Code::kInvalidArgument, "a model runs on one backend, and '", backend, "' names ", entries.size());
  if (entries[0].devices.size() > 1)
    fail(Code::kInvalidArgument, "a model runs on one device, and '", backend, "' names ", entries[0].devices.size());
  if (options.instances == 0 || options.instances > kMostInstances)
    fail(Code::kInvalidArgument, "a model has from 1 to ", kMostInstances, " instances, and is to have ", options.instances);
  const auto plugin = host::find_plugin(entries[0], options.folders);
  std::vector<std::unique_ptr<host::PluginDevice>> devices;
  for (uint32_t i = 0; i < options.instances; ++i)
    devices.push_back(plugin->open_device(entries[0].devices.empty() ? 0 : entries[0].devices[0]));
  return devices;
}

// Programs of a function with dimensions that are kept, besides the one of the archive's sizes.
constexpr size_t kMostSizes = 64;

CompileTarget target_of(Device& device, std::shared_ptr<SymbolicPrograms> symbolic = nullptr) {
  return {device.device(), device.demotion(), precision_for(device.device()), std::move(symbolic)};
}

std::string text_of_target(Device& device) {
  const host::Plugin& plugin = device.device().plugin();
  const host::PluginInfo info = plugin.describe();
  std::string text = cat("ltc ", LTC_VERSION, "; plugin ", plugin.name(), " ", info.version, " ", info.build_id, "; device ",
                         device.device().info().fingerprint, "; precision ", precision_for(device.device()));
  for (const env::Variable& variable : {env::kClaims, env::kEffort}) {
    if (const std::string value = env::get(variable); !value.empty()) text += cat("; ", variable.name, " ", value);
  }
  for (uint32_t number = 1; number < kDTypeCount; ++number) {
    const auto dtype = static_cast<DType>(number);
    const DType stored = device.demotion().storage_dtype(dtype), computed = device.demotion().compute_dtype(dtype);
    if (stored != dtype || computed != dtype)
      text += cat("; ", dtype_name(dtype), " kept as ", dtype_name(stored), ", computed as ", dtype_name(computed));
  }
  return text;
}

// The ops that the plugin does not run, each once, with its reason.
std::string host_ops(const Program& program) {
  std::string text;
  std::set<OpId> told;
  for_each_host_node(program, [&](const Node& node, const std::string& reason) {
    if (told.insert(node.op).second) text += cat(text.empty() ? "" : ", ", op_name(node.op), " (", reason, ")");
  });
  return text;
}

std::vector<bool> given_up(const Function& function, size_t state_count) {
  std::vector<bool> result(state_count, false);
  for (const Update& update : function.updates) result[update.state] = true;
  const auto keep = [&](const ValueSource& source) {
    if (source.kind == ValueSource::kState) result[source.index] = false;
  };
  for (const Update& update : function.updates) keep(update.from);
  for (const ValueSource& source : function.result_sources) keep(source);
  std::vector<uint32_t> reads(state_count);
  for (const ValueSource& source : function.params) {
    if (source.kind == ValueSource::kState) ++reads[source.index];
  }
  for (size_t i = 0; i < state_count; ++i) {
    if (reads[i] != 1) result[i] = false;
  }
  return result;
}

const NamedType& first_with(const FunctionManifest& function, uint32_t dimension) {
  return *std::ranges::find_if(function.inputs, [&](const NamedType& input) {
    return std::ranges::count(input.sizes, dimension, &Formula::plain_dimension) > 0;
  });
}

}  // namespace

TensorView view_of(TypeId type, const void* data) {
  return {type_of(type).dtype, type_of(type).sizes, const_cast<void*>(data), type_of(type).size_bytes()};
}

std::string text_of(const TensorView& view) {
  std::string text(dtype_name(view.dtype));
  for (size_t i = 0; i < view.sizes.size(); ++i) text += cat(i == 0 ? "[" : ",", view.sizes[i]);
  return text + (view.sizes.empty() ? "[]" : "]");
}

std::vector<TypeId> results_of_call(const FunctionManifest& function, std::span<const TensorView> inputs) {
  Sizes sizes;
  take_sizes_of_call(function, inputs, sizes);
  std::vector<TypeId> types;
  for (const NamedType& result : function.results) types.push_back(result.type_at(sizes));
  return types;
}

void take_sizes_of_call(const FunctionManifest& function, std::span<const TensorView> inputs, Sizes& sizes) {
  sizes.assign(function.dimensions.size(), -1);
  for (size_t i = 0; i < std::min(inputs.size(), function.inputs.size()); ++i) {
    const NamedType& input = function.inputs[i];
    if (input.sizes.empty()) continue;
    const auto refuse = [&](const auto&... what) {
      fail(Code::kInvalidArgument, "function ", function.name, ": input ", input.name, what...);
    };
    const auto is_other = [&](const Formula& size, int64_t given) { return size.dimensions.empty() && size.offset != given; };
    if (inputs[i].dtype != type_of(input.type).dtype || inputs[i].sizes.size() != input.sizes.size() ||
        !std::ranges::equal(input.sizes, inputs[i].sizes, std::not_fn(is_other)))
      refuse(" is ", text_of(inputs[i]), ", and is to be ", input.text(function.dimensions));
    for (size_t dim = 0; dim < input.sizes.size(); ++dim) {
      const uint32_t number = input.sizes[dim].plain_dimension();
      if (number == kNone) continue;
      const auto& [name, min, max, example, is] = function.dimensions[number];
      const int64_t size = inputs[i].sizes[dim];
      if (size < min || size > max)
        refuse(": ", name, " is ", size, ", and is to be from ", min, max == INT64_MAX ? "" : cat(" to ", max));
      if (sizes[number] != -1 && size != sizes[number])
        refuse(": ", name, " is ", size, ", and is ", sizes[number], " in input ", first_with(function, number).name);
      sizes[number] = size;
    }
  }
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (const Dimension& dimension = function.dimensions[i]; !dimension.is.empty()) sizes[i] = dimension.is[0].value(sizes);
  }
}

Device::Device(std::unique_ptr<host::PluginDevice> opened) : DeviceMemory(std::move(opened)), executor(*this, kPendingRuns) {}

void Device::upload(Buffer& buffer, std::shared_ptr<const void> data) {
  buffer.completion = nullptr;
  buffer.error = nullptr;
  executor.upload({buffer.type, std::const_pointer_cast<void>(std::move(data))}, buffer);
  executor.require(buffer);
}

BufferRef Device::upload(TypeId type, std::shared_ptr<const void> data) {
  auto buffer = make_buffer(*this, type);
  upload(*buffer, std::move(data));
  return buffer;
}

std::shared_ptr<Model> Model::load(const std::string& path, const ModelOptions& options) {
  return std::shared_ptr<Model>(new Model(Archive::open(path, options.graphs), options));
}

Model::Model(std::shared_ptr<const Archive> archive, const ModelOptions& options)
    : archive_(std::move(archive)), runs_executables_(options.runs_executables) {
  for (auto& device : open_devices(options)) instances_.push_back(make_instance(std::move(device)));
}

Model::~Model() = default;

std::unique_ptr<Instance> Model::make_instance(std::unique_ptr<host::PluginDevice> device) {
  auto instance = std::make_unique<Instance>(std::move(device));
  if (target_.empty()) target_ = text_of_target(instance->device);
  std::lock_guard lock(instance->device.mutex);
  fill(*instance);
  return instance;
}

void Model::fill(Instance& instance) {
  Device& device = instance.device;
  if (device.device().plugin().understands(LTC_EXTENSION_SYMBOLIC))
    device.symbolic = std::make_shared<SymbolicPrograms>(kMostSizes);
  instance.of_sizes.assign(functions().size(), {});
  instance.functions.clear();
  for (const Function& function : functions())
    instance.functions.push_back(compile(function, examples_of(function.dimensions), device));
  upload(archive_->state(), device, instance.state);
  upload(archive_->constants(), device, instance.constants);
  instance.generation = device.device().generation();
}

void Model::reopen_if_lost(Instance& instance) {
  Device& device = instance.device;
  if (!device.device().is_lost() && instance.generation == device.device().generation()) return;
  device.executor.reopen_if_lost();
  fill(instance);
}

std::string Model::save(size_t function) {
  Instance& instance = *instances_.front();
  std::lock_guard lock(instance.device.mutex);
  const auto& program = instance.functions[function].program;
  return program ? save_program(*program, functions()[function].code, instance.device.device()) : "";
}

// Null where the archive has none for this target, or the plugin does not take it.
std::shared_ptr<const Program> Model::take_executable(const Function& function, Device& device) {
  const std::string_view bytes = archive_->executable(function.name, target_);
  if (bytes.empty()) return nullptr;
  try {
    auto program = load_program(SavedValue(std::string(bytes), device.device()), function.code, target_of(device));
    if (instances_.empty()) ++taken_executables_;
    return program;
  } catch (const Error& error) {
    log::warn(archive_->path(), ": function ", function.name, " is compiled, since its executable does not load: ", error.what());
    return nullptr;
  }
}

LoadedFunction Model::compile(const Function& function, Sizes sizes, Device& device) {
  SizedFunction sized = archive_->with_sizes(function, sizes);
  LoadedFunction loaded{.sizes = std::move(sizes), .program = nullptr, .gives_up = given_up(function, archive_->state().size())};
  loaded.inputs = std::move(sized.inputs), loaded.results = std::move(sized.results);
  for (const ValueId output : sized.code.outputs) loaded.outputs.push_back(sized.code.types[output]);
  if (loaded.outputs.empty()) return loaded;
  const bool is_example = loaded.sizes == examples_of(function.dimensions);
  try {
    if (runs_executables_ && is_example) loaded.program = take_executable(function, device);
    if (!loaded.program) {
      const std::string cause = !is_example          ? "executables are for the sizes that the archive has"
                                : !runs_executables_ ? "run_executables is not set"
                                                     : "the archive has no executable that loads for: " + target_;
      // The program of the archive's sizes is for these alone, so that it can be saved as an executable.
      loaded.program = compile_function(std::move(sized.code), target_of(device, is_example ? nullptr : device.symbolic), cause);
    }
  } catch (const Error& error) {
    fail(error.code(), archive_->path(), ": function ", function.name, ": ", error.what());
  }
  if (const std::string ops = host_ops(*loaded.program); !ops.empty())
    fail(Code::kUnsupported, archive_->path(), ": function ", function.name, ": plugin ", device.device().plugin().name(),
         " does not run ", ops);
  return loaded;
}

const LoadedFunction& Model::loaded(Instance& instance, size_t index, const Sizes& sizes) {
  if (instance.functions[index].sizes == sizes) return instance.functions[index];
  std::list<LoadedFunction>& known = instance.of_sizes[index];
  const auto found = std::ranges::find(known, sizes, &LoadedFunction::sizes);
  if (found != known.end()) {
    known.splice(known.begin(), known, found);
  } else {
    known.push_front(compile(functions()[index], sizes, instance.device));
    if (known.size() > kMostSizes) known.pop_back();
  }
  return known.front();
}

// Into the buffers that there are, which sessions may hold, too.
void Model::upload(const std::vector<NamedTensor>& values, Device& device, std::vector<BufferRef>& buffers) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (i == buffers.size()) buffers.push_back(make_buffer(device, values[i].type));
    if (buffers[i]->handle) continue;  // from a try that failed behind it
    device.upload(*buffers[i], std::shared_ptr<const void>(archive_, values[i].data.data()));
  }
}

}  // namespace ltc::deploy
