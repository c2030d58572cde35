#include "core/report/compiles.h"

#include "core/report/metrics.h"

namespace ltc {

void count_compile(CompiledProgram::Source source) {
  switch (source) {
    case CompiledProgram::kDisk: metrics::counter(metrics::kDiskHits) += 1; return;
    case CompiledProgram::kQuick: metrics::counter(metrics::kQuickCompile) += 1; return;
    case CompiledProgram::kReused: metrics::counter(metrics::kSymbolicReuse) += 1; return;
    case CompiledProgram::kCompiledSymbolic: metrics::counter(metrics::kSymbolicCompile) += 1; [[fallthrough]];
    case CompiledProgram::kCompiled: metrics::counter(metrics::kUncachedCompile) += 1;
  }
}

}  // namespace ltc
