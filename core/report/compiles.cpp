#include "core/report/compiles.h"

#include <mutex>
#include <utility>
#include <vector>

#include "core/report/metrics.h"

namespace ltc {
namespace {

std::atomic<CompileListener> g_listener{nullptr};
std::mutex g_mutex;

std::vector<CompileFacts>& kept() {
  static auto* instance = new std::vector<CompileFacts>();  // leaked: threads may outlive static destruction
  return *instance;
}

void count(CompiledProgram::Source source) {
  switch (source) {
    case CompiledProgram::kDisk: metrics::counter(metrics::kDiskHits) += 1; return;
    case CompiledProgram::kQuick: metrics::counter(metrics::kQuickCompile) += 1; return;
    case CompiledProgram::kReused: metrics::counter(metrics::kSymbolicReuse) += 1; return;
    case CompiledProgram::kCompiledSymbolic: metrics::counter(metrics::kSymbolicCompile) += 1; [[fallthrough]];
    case CompiledProgram::kCompiled: metrics::counter(metrics::kUncachedCompile) += 1;
  }
}

}  // namespace

namespace detail {
std::atomic<bool> compiles_are_kept{false};
}

void note_compile(CompileCause cause, const CompiledProgram& compiled) {
  count(compiled.source);
  if (!g_listener.load()) return;
  const uint64_t ns = timeline::now_ns() - cause.begin_ns;
  CompileFacts facts{std::move(cause), compiled.source, ns, timeline::facts_of(*compiled.program)};
  std::lock_guard lock(g_mutex);
  kept().push_back(std::move(facts));
  detail::compiles_are_kept = true;
}

void set_compile_listener(CompileListener listener) { g_listener = listener; }

void tell_kept_compiles() {
  std::vector<CompileFacts> told;
  {
    std::lock_guard lock(g_mutex);
    told = std::exchange(kept(), {});
    detail::compiles_are_kept = false;
  }
  const CompileListener listener = g_listener;
  if (!listener) return;
  for (const CompileFacts& facts : told) listener(facts);
}

}  // namespace ltc
