#include "core/compile/lowering/saved_code.h"

#include "core/base/disk_cache.h"
#include "core/compile/lowering/plugin_code.h"
#include "core/compile/lowering/symbolic_programs.h"
#include "core/host/plugin.h"
#include "core/ir/binary.h"

namespace ltc {
namespace {

std::string code_key(const Graph& graph, const CompileTarget& target) {
  ByteWriter out;
  out.text("code for many sizes");
  write_graph(out, without_numbers(graph));
  return target_key(target) + out.take();
}

}  // namespace

bool load_code(const Graph& graph, const CompileTarget& target) {
  DiskCache* const disk = DiskCache::instance();
  if (!disk) return false;
  const std::string key = code_key(graph, target);
  const auto saved = disk->find(key);
  if (!saved) return false;
  try {
    ByteReader in(*saved);
    SymbolicGraph general = SymbolicGraph::read(in);
    std::shared_ptr<ltc_executable> executable = load(in.text(), target.device);
    if (!executable || !in.at_end()) fail(Code::kDataCorrupt, "saved bytes are damaged: code for many sizes");
    target.symbolic->insert(std::move(general), target.precision, {nullptr, std::move(executable)});
    return true;
  } catch (const std::exception& error) {  // a plugin's error too
    disk->reject(key, error.what());
    return false;
  }
}

void save_code(const Graph& example, const SymbolicGraph& general, const ltc_executable* executable,
               const CompileTarget& target) {
  DiskCache* const disk = DiskCache::instance();
  if (!disk) return;
  const auto bytes = target.device.save_executable(executable);
  if (!bytes) return;
  ByteWriter out;
  general.write(out, example);
  out.text(*bytes);
  disk->insert(code_key(example, target), cat(target.device.plugin().name(), ", ", example.nodes.size(), " ops, for many sizes"),
               out.take());
}

}  // namespace ltc
