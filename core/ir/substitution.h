// Values that take the place of others while a pass walks a graph in order.
#pragma once

#include <vector>

#include "core/ir/graph.h"

namespace ltc {

// Keeps the rule that outputs are distinct and none is a param: what would break it is refused. Values that are added to the
// graph meanwhile are as good as any.
class Substitution {
 public:
  explicit Substitution(const Graph& graph) : to_(graph.types.size(), kNone), fixed_(graph.types.size(), false), output_(fixed_) {
    for (const Param& param : graph.params) fixed_[param.value] = true;
    for (const ValueId output : graph.outputs) fixed_[output] = output_[output] = true;
  }

  ValueId operator()(ValueId value) const { return value < to_.size() && to_[value] != kNone ? to_[value] : value; }

  // Whether readers of `value` may read `by` instead.
  bool allowed(ValueId value, ValueId by) const { return !at(output_, value) || !at(fixed_, by); }

  void replace(ValueId value, ValueId by) {
    set(to_, value, by, kNone);
    if (at(output_, value)) set(fixed_, by, true, false);
  }

  void apply(std::vector<ValueId>& values) const {
    for (ValueId& value : values) value = (*this)(value);
  }

 private:
  static bool at(const std::vector<bool>& flags, ValueId value) { return value < flags.size() && flags[value]; }

  template <typename T>
  static void set(std::vector<T>& items, ValueId value, T item, T nothing) {
    if (value >= items.size()) items.resize(value + 1, nothing);
    items[value] = item;
  }

  std::vector<ValueId> to_;
  std::vector<bool> fixed_;   // params and outputs: no output can become one of these
  std::vector<bool> output_;  // outputs of the original graph
};

}  // namespace ltc
