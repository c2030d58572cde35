// Kernels in explicit vectors, for dialects that have them. Compilers of kernels rarely find these by themselves: on PoCL a chain
// of float operations runs three to ten times faster so.
//
// The lanes are neighbouring values of one variable: of the work item's, where all that an item does has this form, or of a
// loop's. Reads and writes of memory are then at the same place for all lanes, or side by side.
#pragma once
#include <functional>
#include <string>

#include "kernels/graph/ir.h"
#include "kernels/print/dialect.h"

namespace ltc::kernels {

inline constexpr int64_t kLanes = 16;

// How instructions that are the same for all lanes are printed.
struct ScalarText {
  std::function<std::string(Ref)> statement;
  std::function<std::string(const Index&)> index;
  std::function<std::string(BlockId)> loop;  // "for (...) {"
  std::function<std::string(int64_t)> constant;
};

// Neighbouring values of the variable are neighbouring elements.
bool is_side_by_side(const Index& index, VarId var);

// Whether items can be lanes.
bool items_are_lanes(const Kernel& kernel);
// How many vectors side by side one item does. In a loop over rows several read more of each: fewer pages are walked through.
int64_t vectors_per_item(const Kernel& kernel);
// The statements of the items of these vectors, from the one that the item's variable names.
std::string lane_statements(const Kernel& kernel, const Dialect& dialect, const ScalarText& scalar, int depth);

// Whether the values of a loop's variable can be lanes: the body stores or folds into accumulators, no more.
bool loop_is_lanes(const Kernel& kernel, BlockId loop);
// The loop's steps of kLanes values and the folding of the lanes into the accumulators. The loop's variable is declared before
// it, and stands at the first value that is left.
std::string lane_loop(const Kernel& kernel, BlockId loop, const std::string& extent, const Dialect& dialect,
                      const ScalarText& scalar, int depth);

}  // namespace ltc::kernels
