// The user's lines of what a step gives.
#pragma once

#include <span>
#include <vector>

#include "core/ir/location.h"
#include "core/ir/trace.h"

namespace ltc {

// By root: the line of the op that makes it. `locations`: of the trace's nodes, in order.
inline std::vector<LocationId> output_lines(const Trace& trace, std::span<const Root> roots,
                                            std::span<const LocationId> locations) {
  std::vector<LocationId> by_record(trace.records.size(), kNoLocation), lines;
  size_t nodes = 0;
  for (size_t i = 0; i < by_record.size(); ++i) {
    const Record& record = trace.records[i];
    if (record.op == kOpResult) by_record[i] = by_record[record.in[0]];
    if (is_node(record)) by_record[i] = locations[nodes++];
  }
  for (const Root& root : roots) lines.push_back(by_record[root.value]);
  return lines;
}

}  // namespace ltc
