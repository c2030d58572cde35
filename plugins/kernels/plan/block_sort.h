// Sorting by the lanes of blocks, for devices whose threads meet in them: tiles in a block's memory, then runs of tiles merged in
// pairs, a kernel for each doubling, by as many blocks as there are tiles. Each thread finds by a binary search where its part of
// a merge begins (O. Green, R. McColl, D. Bader, GPU Merge Path, ICS 2012). So a sort takes O(n log n) comparisons whatever the
// elements are, is stable, and gives the same on each run.
#pragma once
#include "kernels/plan/plan.h"

namespace ltc::kernels {

// Elements that a block holds.
inline constexpr int64_t kSortTile = 256 * 9;

Source render_sort_pass(const SortPass& pass, const Dialect& dialect);

}  // namespace ltc::kernels
