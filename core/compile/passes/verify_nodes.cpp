#include "core/compile/passes/verify_nodes.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/compile/types/rules.h"
#include "core/ir/text.h"

namespace ltc {
namespace {

enum class Known { kAll, kSome };  // ops that there is no rule for are a violation, or pass

class Checker {
 public:
  Checker(const Graph& graph, Code code, const std::string& begin) : graph_(graph), code_(code), begin_(begin) {}

  void run(Known known) const {
    for (const Node& node : graph_.nodes) {
      const OpRow* row = find_op_row(op_name(node.op));
      const std::string_view rule = row ? types::find_rule(row->name) : std::string_view();
      if (known == Known::kAll && rule.empty()) refuse(Code::kUnsupported, node, "has no rule for its types");
      if (!row) continue;
      const types::Arguments call(graph_, node, *row);
      check(call.violation().empty(), node, call.violation());
      check(rule.empty() || types::obeys(call, rule), node, "does not give a result of that type");
    }
  }

 private:
  void check(bool condition, const Node& node, const std::string& violation) const {
    if (!condition) refuse(code_, node, violation);
  }

  // With the node as a graph of its own, which has the types of its operands.
  [[noreturn]] void refuse(Code code, const Node& node, const std::string& violation) const {
    Graph alone{graph_.types, {}, {node}, {}};
    for (const ValueId input : node.inputs) {
      if (input != kNone && !std::ranges::count(alone.params, input, &Param::value)) alone.params.push_back({input});
    }
    std::ranges::copy_if(node.outputs, std::back_inserter(alone.outputs), [](ValueId output) { return output != kNone; });
    fail(code, begin_, op_name(node.op), " ", violation, at_location(node.location), ": ", print(alone));
  }

  const Graph& graph_;
  const Code code_;
  const std::string& begin_;
};

}  // namespace

void verify_nodes(const Graph& graph, const char* after) {
  Checker(graph, Code::kInternal, cat("[verify] after ", after, ": ")).run(Known::kSome);
}

void check_types(const Graph& graph) { Checker(graph, Code::kDataCorrupt, "").run(Known::kAll); }

}  // namespace ltc
