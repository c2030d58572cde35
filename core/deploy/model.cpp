#include "core/deploy/model.h"

#include "core/base/env.h"
#include "core/base/log.h"
#include "core/compile/build_program.h"
#include "core/compile/cache/saved_program.h"
#include "core/compile/lowering/precision.h"
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

CompileTarget target_of(Device& device) { return {device.device(), device.demotion(), precision_for(device.device())}; }

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
  for (const Step& step : program.steps) {
    if (step.on_device) continue;
    for (size_t i = 0; i < step.graph.nodes.size(); ++i) {
      const std::string_view name = op_name(step.graph.nodes[i].op);
      if (text.find(name) == std::string::npos) text += cat(text.empty() ? "" : ", ", name, " (", step.reasons[i], ")");
    }
  }
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

}  // namespace

BufferRef Device::upload(TypeId type, std::shared_ptr<const void> data) {
  auto buffer = std::make_shared<Buffer>(*this, type);
  executor.upload({type, std::const_pointer_cast<void>(std::move(data))}, *buffer);
  executor.require(*buffer);
  return buffer;
}

std::shared_ptr<Model> Model::load(const std::string& path, const ModelOptions& options) {
  return std::shared_ptr<Model>(new Model(Archive::open(path), options));
}

Model::Model(std::shared_ptr<const Archive> archive, const ModelOptions& options) : archive_(std::move(archive)) {
  for (auto& device : open_devices(options)) instances_.push_back(make_instance(std::move(device), options.runs_executables));
}

Model::~Model() = default;

std::unique_ptr<Instance> Model::make_instance(std::unique_ptr<host::PluginDevice> device, bool runs_executables) {
  auto instance = std::make_unique<Instance>(std::move(device));
  if (target_.empty()) target_ = text_of_target(instance->device);
  for (const Function& function : archive_->functions())
    instance->functions.push_back(compile(function, instance->device, runs_executables));
  std::lock_guard lock(instance->device.mutex);
  instance->state = upload(archive_->state(), instance->device);
  instance->constants = upload(archive_->constants(), instance->device);
  return instance;
}

std::string Model::save(size_t function) {
  Instance& instance = *instances_.front();
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

LoadedFunction Model::compile(const Function& function, Device& device, bool runs_executables) {
  LoadedFunction loaded{nullptr, given_up(function, archive_->state().size())};
  if (function.code.outputs.empty()) return loaded;
  try {
    if (runs_executables) loaded.program = take_executable(function, device);
    if (!loaded.program) loaded.program = build_program(function.code, target_of(device)).program;
  } catch (const Error& error) {
    fail(error.code(), archive_->path(), ": function ", function.name, ": ", error.what());
  }
  if (const std::string ops = host_ops(*loaded.program); !ops.empty())
    fail(Code::kUnsupported, archive_->path(), ": function ", function.name, ": plugin ", device.device().plugin().name(),
         " does not run ", ops);
  return loaded;
}

std::vector<BufferRef> Model::upload(const std::vector<NamedTensor>& values, Device& device) {
  std::vector<BufferRef> buffers;
  for (const NamedTensor& value : values)
    buffers.push_back(device.upload(value.type, std::shared_ptr<const void>(archive_, value.data.data())));
  return buffers;
}

}  // namespace ltc::deploy
