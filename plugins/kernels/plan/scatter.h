// Writes by index.
//
// A work item per line of the index walks along it, so two of a line never write at once, and lines never meet. Where lines are
// few and long, their index is sorted first (block_sort.h), so that what goes to one place lies side by side, as a run: of
// equals the last is written; what is added is added up by pieces of a line, each as long as there are pieces, then from piece
// to piece where a run goes on. So a line of n takes O(sqrt n) steps, and each place's elements are added in their order.
#pragma once
#include "kernels/plan/plan.h"

namespace ltc::kernels {

// Gives such scatters, where Options::block_sorts asks for it, the sorted index instead of their own, and behind the source where
// each element of the index came from.
void sort_scatters(Graph& graph, const Options& options);

// Of a scatter, a scatter that adds, or one by strides.
void plan_scatter(Plan& plan, const Options& options, const Cluster& cluster);

}  // namespace ltc::kernels
