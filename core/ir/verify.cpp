#include "core/ir/verify.h"

#include <algorithm>

#include "core/base/env.h"
#include "core/base/error.h"

namespace ltc {
namespace {

bool is_number(DType dtype) {
  return dtype == DType::kF64 || dtype == DType::kI64 || dtype == DType::kBool || dtype == DType::kC128;
}

// One walk over a graph in the order of definition.
class Verifier {
 public:
  Verifier(const Graph& graph, const char* after) : graph_(graph), after_(after), defined_(graph.types.size(), false) {}

  void run() {
    for (const TypeId type : graph_.types) check(type != kNoType, "a value has no type");
    for (const Param& param : graph_.params) check_param(param);
    const std::vector<bool> params = defined_;
    for (const Node& node : graph_.nodes) check_node(node);
    check_outputs(params);
    check_aliases();
  }

 private:
  template <typename... Parts>
  void check(bool condition, const Parts&... parts) const {
    if (!condition) fail(Code::kInternal, "[verify] after ", after_, ": ", parts...);
  }

  void define(ValueId value, const std::string& where) {
    check(value < defined_.size(), where, " defines %", value, ", there are ", defined_.size(), " values");
    check(!defined_[value], where, " defines %", value, " a second time");
    defined_[value] = true;
  }

  void use(ValueId value, const std::string& where) const {
    check(value < defined_.size(), where, " reads %", value, ", there are ", defined_.size(), " values");
    check(defined_[value], where, " reads %", value, " before it is defined");
  }

  void check_param(const Param& param) {
    define(param.value, "a param");
    check(!param.scalar || graph_.type(param.value).sizes.empty(), "scalar param %", param.value, " has a rank");
    check(!param.scalar || is_number(graph_.type(param.value).dtype), "scalar param %", param.value,
          " is not f64, i64, bool or c128");
    check(!param.scalar || param.alias_output == kNone, "scalar param %", param.value, " has an alias_output");
  }

  void check_node(const Node& node) {
    check(node.op > kOpResult, "a node has the reserved op ", node.op);
    const std::string& name = op_name(node.op);
    for (const ValueId input : node.inputs) {
      if (input != kNone) use(input, name);
    }
    for (const ValueId output : node.outputs) {
      if (output != kNone) define(output, name);
    }
    check(std::ranges::any_of(node.outputs, [](ValueId output) { return output != kNone; }), name, " has no wanted output");
  }

  void check_outputs(const std::vector<bool>& params) const {
    std::vector<bool> seen(defined_.size(), false);
    for (const ValueId output : graph_.outputs) {
      use(output, "return");
      check(!params[output], "output %", output, " is a param");
      check(!seen[output], "output %", output, " is listed twice");
      seen[output] = true;
    }
  }

  void check_aliases() const {
    std::vector<bool> taken(graph_.outputs.size(), false);
    for (const auto& [value, scalar, alias] : graph_.params) {
      if (alias == kNone) continue;
      check(alias < taken.size(), "param %", value, " aliases output ", alias, " of ", taken.size());
      check(!taken[alias], "two params alias output ", alias);
      check(same_shape(graph_.type(value), graph_.type(graph_.outputs[alias])), "param %", value, " and its alias, output ",
            alias, ", differ in dtype or sizes");
      taken[alias] = true;
    }
  }

  const Graph& graph_;
  const char* after_;
  std::vector<bool> defined_;
};

}  // namespace

void verify(const Graph& graph, const char* after) { Verifier(graph, after).run(); }

bool is_verifying() {
  static const bool is_set = env::is_set(env::kVerify);
  return is_set;
}

}  // namespace ltc
