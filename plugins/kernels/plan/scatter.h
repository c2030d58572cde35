// Writes by index.
//
// A work item walks along each line of the index, so two items never write one line, and lines never meet.
//
// If lines are few and long, their index is sorted first (block_sort.h). Elements for one place then lie side by side, as a run.
// A plain scatter writes the last element of a run. A scatter that adds works in two stages. First it adds up each chunk of a
// line; a line of n has about sqrt(n) chunks of sqrt(n) elements. Then it joins the sums of a run that spans several chunks. So a
// line of n takes O(sqrt n) steps, and the elements of each place are added in their order.
#pragma once
#include "kernels/plan/plan.h"

namespace ltc::kernels {

// If Options::block_sorts is set, gives scatters of few long lines the sorted index instead of their own, and one more operand:
// the place that each element of the sorted index came from.
void sort_scatters(Graph& graph, const Options& options);

// Plans the kernels of a scatter, of a scatter that adds, or of a scatter by strides.
void plan_scatter(Plan& plan, const Options& options, const Cluster& cluster);

}  // namespace ltc::kernels
