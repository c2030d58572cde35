// Rules for the types of each op: rules.inc has a line for each family, sizes_*.cpp what a line cannot say.
#pragma once

#include <string_view>

#include "core/compile/types/arguments.h"

namespace ltc::types {

// Whether operands and attributes fit together, so that no index that follows from them lies outside of a value. Appends the
// sizes that the line writes as `$`, in its order.
using SizeFunction = bool (*)(const Arguments& call, std::vector<Dims>& sizes);

struct NamedFunction {
  std::string_view name;
  SizeFunction function;
};
std::vector<NamedFunction> view_functions();
std::vector<NamedFunction> index_functions();
std::vector<NamedFunction> window_functions();
std::vector<NamedFunction> other_functions();

// Empty for an op that rules.inc does not have. Names are those of the op table.
std::string_view find_rule(std::string_view op);
std::vector<std::string_view> ops_with_rules();  // as rules.inc spells them
// Whether the call obeys the rule. Its schema has been checked.
bool obeys(const Arguments& call, std::string_view rule);

// ---- for the functions

// A dim as the op means it; none if there is no such dim. A value of rank 0 has one dim of size 1 here.
std::optional<size_t> dim_of(int64_t dim, size_t rank);
// A number that sizes can be computed with in 64 bits.
inline bool is_moderate(int64_t number) { return number > -(int64_t{1} << 40) && number < int64_t{1} << 40; }
bool are_moderate(const Dims& numbers);
// Numpy's broadcasting, onto `sizes`; false if they do not fit.
bool broadcast_onto(Dims& sizes, const Dims& more);
inline bool broadcasts_to(const Dims& from, const Dims& to) {
  Dims sizes = to;
  return broadcast_onto(sizes, from) && sizes == to;
}
inline bool has_sizes(const Type* type, const Dims& sizes) { return type && type->sizes == sizes; }

}  // namespace ltc::types
