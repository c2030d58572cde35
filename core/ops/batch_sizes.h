// Packed sequences: the rows of each step behind those of the step before, the longest sequence first.
#pragma once

#include <cstdint>
#include <span>

namespace ltc {

// Whether steps of these sizes make up so many rows: all of the batch in the first, at least one in each, and never more than in
// the one before.
inline bool are_batch_sizes(std::span<const int64_t> sizes, int64_t batch, int64_t rows) {
  int64_t most = batch, left = rows;
  for (const int64_t size : sizes) {
    if (size < 1 || size > most || size > left) return false;
    most = size;
    left -= size;
  }
  return left == 0 && !sizes.empty() && sizes.front() == batch;
}

}  // namespace ltc
