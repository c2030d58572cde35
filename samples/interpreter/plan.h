// A graph in this plugin's own form: a list of steps over typed values.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "memory.h"
#include "ops.h"

namespace interpreter {

// One node of the graph.
struct Step {
  std::string op;
  ltc_dtype dtype;                // picks the op's kernel
  std::vector<uint32_t> in, out;  // values, or LTC_NONE
  std::vector<Attribute> attributes;
  // Derived from the others.
  Kernel kernel = nullptr;
  std::vector<uint32_t> ends = {};  // values that no later step names
};

// Immutable once made: any thread may run it.
class Plan {
 public:
  // Throws UNSUPPORTED, with the node to blame, for a node that no table has.
  explicit Plan(const ltc_graph& graph);
  // Throws DATA_CORRUPT for bytes that are cut short or damaged.
  explicit Plan(std::string_view saved);
  std::string save() const;

  const Type& type(uint32_t value) const { return types_[value]; }
  size_t value_count() const { return types_.size(); }
  const std::vector<uint32_t>& inputs() const { return inputs_; }
  const std::vector<uint32_t>& scalars() const { return scalars_; }
  const std::vector<uint32_t>& outputs() const { return outputs_; }
  // Whether a run may find an index out of range.
  bool may_fail() const { return may_fail_; }

  // The memory of each value; null for those in between, which live as long as they are needed. Runs also what does not depend on
  // a step that failed, then throws the first failure, with its node and the outputs that are good.
  void run(const std::vector<char*>& memory) const;

 private:
  void derive();
  Call call(const Step& step, const std::vector<char*>& memory, std::vector<Memory>& made) const;

  std::vector<Type> types_;  // by value
  std::vector<Step> steps_;  // by node
  std::vector<uint32_t> inputs_, scalars_, outputs_;
  bool may_fail_ = false;
};

// The slot `claims`.
void claim(const ltc_graph& graph, uint32_t* cluster);

}  // namespace interpreter
