#include "core/deploy/model.h"

#include <algorithm>

#include "core/base/env.h"
#include "core/base/log.h"
#include "core/compile/build_program.h"
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

std::shared_ptr<Model> Model::load(const std::string& path, const std::string& backend, const std::vector<std::string>& folders) {
  auto archive = Archive::open(path);
  return std::shared_ptr<Model>(new Model(std::move(archive), open_device(backend, folders)));
}

Model::Model(std::shared_ptr<const Archive> archive, std::unique_ptr<host::PluginDevice> device)
    : archive_(std::move(archive)), device_(std::move(device)) {
  for (const Function& function : archive_->functions()) loaded_.push_back(compile(function));
  std::lock_guard lock(device_.mutex);
  state_ = upload(archive_->state());
  constants_ = upload(archive_->constants());
}

Model::~Model() = default;

LoadedFunction Model::compile(const Function& function) {
  LoadedFunction loaded{nullptr, given_up(function, archive_->state().size())};
  if (function.code.outputs.empty()) return loaded;
  try {
    const CompileTarget target(device_.device(), device_.demotion(), precision_for(device_.device()));
    loaded.program = build_program(function.code, target).program;
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
