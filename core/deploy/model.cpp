#include "core/deploy/model.h"

#include <algorithm>

#include "core/base/env.h"
#include "core/base/log.h"
#include "core/compile/build_program.h"
#include "core/compile/cache/saved_program.h"
#include "core/compile/lowering/precision.h"
#include "core/host/search.h"
#include "core/ir/text.h"

namespace ltc::deploy {
namespace {

std::unique_ptr<host::PluginDevice> open_device(const std::string& backend, const std::vector<std::string>& folders) {
  const std::vector<host::BackendEntry> entries = host::parse_backends(backend.empty() ? env::get(env::kBackend) : backend);
  if (entries.size() != 1)
    fail(Code::kInvalidArgument, "a model runs on one backend, and '", backend, "' names ", entries.size());
  if (entries[0].devices.size() > 1)
    fail(Code::kInvalidArgument, "a model runs on one device, and '", backend, "' names ", entries[0].devices.size());
  const auto plugin = host::find_plugin(entries[0], folders);
  return plugin->open_device(entries[0].devices.empty() ? 0 : entries[0].devices[0]);
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
  for (size_t i = 0; i < state_count; ++i) {
    if (std::ranges::count(function.params, ValueSource{ValueSource::kState, static_cast<uint32_t>(i)}) != 1) result[i] = false;
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

std::shared_ptr<Model> Model::load(const std::string& path, const std::string& backend, const std::vector<std::string>& folders,
                                   bool runs_executables) {
  auto archive = Archive::open(path);
  return std::shared_ptr<Model>(new Model(std::move(archive), open_device(backend, folders), runs_executables));
}

Model::Model(std::shared_ptr<const Archive> archive, std::unique_ptr<host::PluginDevice> device, bool runs_executables)
    : archive_(std::move(archive)), device_(std::move(device)) {
  for (const Function& function : archive_->functions()) loaded_.push_back(compile(function, runs_executables));
  std::lock_guard lock(device_.mutex);
  state_ = upload(archive_->state());
  constants_ = upload(archive_->constants());
}

Model::~Model() = default;

CompileTarget Model::compile_target() {
  return CompileTarget(device_.device(), device_.demotion(), precision_for(device_.device()));
}

std::string Model::target() {
  host::PluginDevice& device = device_.device();
  const host::PluginInfo info = device.plugin().describe();
  std::string text = cat("ltc ", LTC_VERSION, "; plugin ", plugin_name(), " ", info.version, " ", info.build_id, "; device ",
                         device.info().fingerprint, "; precision ", precision_for(device));
  for (const env::Variable& variable : {env::kClaims, env::kEffort}) {
    if (const std::string value = env::get(variable); !value.empty()) text += cat("; ", variable.name, " ", value);
  }
  for (uint32_t number = 1; number < kDTypeCount; ++number) {
    const auto dtype = static_cast<DType>(number);
    const DType stored = device_.demotion().storage_dtype(dtype), computed = device_.demotion().compute_dtype(dtype);
    if (stored != dtype || computed != dtype)
      text += cat("; ", dtype_name(dtype), " kept as ", dtype_name(stored), ", computed as ", dtype_name(computed));
  }
  return text;
}

std::string Model::save(size_t function) {
  const auto& program = loaded_[function].program;
  return program ? save_program(*program, functions()[function].code, device_.device()) : "";
}

// Null where the archive has none for this target, or the plugin does not take it.
std::shared_ptr<const Program> Model::take_executable(const Function& function) {
  const std::string_view bytes = archive_->executable(function.name, target());
  if (bytes.empty()) return nullptr;
  try {
    auto program = load_program(SavedValue(std::string(bytes), device_.device()), function.code, compile_target());
    ++taken_executables_;
    return program;
  } catch (const Error& error) {
    log::warn(archive_->path(), ": function ", function.name, " is compiled, since its executable does not load: ", error.what());
    return nullptr;
  }
}

LoadedFunction Model::compile(const Function& function, bool runs_executables) {
  LoadedFunction loaded{nullptr, given_up(function, archive_->state().size())};
  if (function.code.outputs.empty()) return loaded;
  try {
    if (runs_executables) loaded.program = take_executable(function);
    if (!loaded.program) loaded.program = build_program(function.code, compile_target()).program;
  } catch (const Error& error) {
    fail(error.code(), archive_->path(), ": function ", function.name, ": ", error.what());
  }
  if (const std::string ops = host_ops(*loaded.program); !ops.empty())
    fail(Code::kUnsupported, archive_->path(), ": function ", function.name, ": plugin ", plugin_name(), " does not run ", ops);
  return loaded;
}

std::vector<BufferRef> Model::upload(const std::vector<NamedTensor>& values) {
  std::vector<BufferRef> buffers;
  for (const NamedTensor& value : values)
    buffers.push_back(device_.upload(value.type, std::shared_ptr<const void>(archive_, value.data.data())));
  return buffers;
}

}  // namespace ltc::deploy
