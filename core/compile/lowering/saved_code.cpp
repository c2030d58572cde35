#include "core/compile/lowering/saved_code.h"

#include "core/base/disk_cache.h"
#include "core/compile/lowering/plugin_code.h"
#include "core/compile/lowering/prefetch.h"
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
  try {
    const auto saved = find_saved(*disk, key, target);
    if (!saved) return false;
    ByteReader in(saved->rest());
    SymbolicGraph general = SymbolicGraph::read(in);
    if (saved->executables.size() != 1 || !saved->executables[0] || !in.at_end())
      fail(Code::kDataCorrupt, "saved bytes are damaged: code for many sizes");
    target.symbolic->insert(std::move(general), target.precision, {nullptr, saved->executables[0]});
    return true;
  } catch (const std::exception& error) {  // a plugin's error too
    disk->reject(key, error.what());
    return false;
  }
}

void save_code(const Graph& example, const SymbolicGraph& general, const std::shared_ptr<ltc_executable>& executable,
               const CompileTarget& target) {
  DiskCache* const disk = DiskCache::instance();
  if (!disk) return;
  ByteWriter out;
  if (!save_executables(out, {executable}, target.device)) return;
  general.write(out, example);
  disk->insert(code_key(example, target), cat(target.device.plugin().name(), ", ", example.nodes.size(), " ops, for many sizes"),
               out.take());
}

}  // namespace ltc
