#include "torchscript/fusion/clusters.h"

#include <c10/util/StringUtil.h>

#include <algorithm>
#include <unordered_map>

#include "torchscript/fusion/formulas.h"
#include "torchscript/fusion/row_ops.h"
#include "torchscript/fusion/row_sums.h"

namespace ltc::torchscript {
namespace {

using torch::jit::Node;
using torch::jit::Value;

constexpr size_t kMostNodes = 64;       // of a cluster: as many tiles as may be alive fit the L2 cache
constexpr size_t kMostNeighbours = 24;  // that a node is compared with, the newest ones

bool is_uniform(const Node& node) {
  static const auto kind = torch::jit::Symbol::fromQualString("ltc_torchscript::philox");
  return node.kind() == kind && spec_of(*node.output()).dtype == at::kFloat;
}

const Formula* formula_of(const Program& program, const Node& node) {
  const auto origin = program.origins.find(&node);
  return origin == program.origins.end() ? nullptr : find_formula(node, origin->second.op.schema());
}

bool is_symbolic_constant(const Value* value) {
  return value->node()->kind() == torch::jit::prim::Constant && is_symbolic(*value->node());
}

// The sizes of a loop may differ from run to run, its constants may not.
bool is_elementwise(const Program& program, const Node& node) {
  if (std::ranges::any_of(node.inputs(), is_symbolic_constant)) return false;
  return node.outputs().size() == 1 && (is_uniform(node) || formula_of(program, node));
}

// Whether the value is there, or must be, only when all of a row is.
bool is_of_whole_rows(const Value& value) { return value.offset() > 0 || find_row_sum(*value.node()).length > 0; }
bool takes_whole(const Node& node, const Value& value) {
  const auto operands = find_row_op(node).length ? row_operands(node) : std::vector<const Value*>();
  return std::ranges::find(operands, &value) != operands.end();
}

// Puts each node into a set, alone or with others. Sets run in the order of their ranks, and whatever a set needs has a
// lower rank. To begin with, a node's rank is its position in the graph.
class Clustering {
 public:
  explicit Clustering(const Program& program) : program_(program) {}

  std::vector<Program::Group> run() {
    std::vector<Program::Group> ordered;
    for (const Node* node : program_.graph->nodes()) {
      is_known_from_the_start(*node) ? ordered.push_back({{node}, false}) : put(*node);
    }
    const size_t before = ordered.size();
    ordered.resize(before + sets_.size());
    for (Id id = 0; id < sets_.size(); ++id) {
      Program::Group& group = ordered[before + sets_[current(id)].rank];
      group.nodes.push_back(sets_[id].node);
      group.is_fused = sets_[id].fusable;
    }
    std::erase_if(ordered, [](const Program::Group& group) { return group.nodes.empty(); });
    return ordered;
  }

 private:
  using Id = size_t;  // of a set: first that of one node, in the graph's order
  // The use that the nodes of a set make of rows, all of one length.
  enum class Rows : uint8_t { kNothing, kSums, kOps };
  struct NodeSet {
    const Node* node;
    bool fusable;
    std::vector<int64_t> sizes;
    Id rank, merged_into;
    std::vector<Id> members, needs;  // needs: sets whose results it reads
    Rows rows = Rows::kNothing;
    int64_t row_length = 0;
  };

  // Constants, and numbers that are params.
  static bool is_known_from_the_start(const Node& node) {
    return node.kind() == torch::jit::prim::Constant || (node.outputs().size() == 1 && number_source(*node.output()));
  }

  void put(const Node& node) {
    const Id id = sets_.size();
    set_of_[&node] = id;
    const bool fusable = is_elementwise(program_, node);
    sets_.push_back({&node, fusable, fusable ? spec_of(*node.output()).sizes : std::vector<int64_t>(), id, id, {id}, {}});
    for (const Value* input : node.inputs()) {
      if (const auto made = set_of_.find(input->node()); made != set_of_.end()) sets_[id].needs.push_back(made->second);
    }
    if (const int64_t length = find_row_sum(node).length) put_rows(id, Rows::kSums, length);
    if (const int64_t length = find_row_op(node).length) put_rows(id, Rows::kOps, length);
    if (!fusable) return;
    merge_with(neighbours(node), id);
    for (const Value* input : node.inputs()) {
      if (spec_of(*input).sizes == sets_[id].sizes && !number_source(*input)) readers_[input].push_back(id);
    }
  }

  // Where the rows are made; a step that would only read them gains nothing there.
  void put_rows(Id id, Rows rows, int64_t length) {
    const Value& operand = *sets_[id].node->input(0);
    const auto made = set_of_.find(operand.node());
    if (made == set_of_.end() || is_of_whole_rows(operand)) return;
    NodeSet& set = sets_[id];
    set.sizes = spec_of(operand).sizes;
    set.rows = rows, set.row_length = length;
    set.fusable = true;
    set.fusable = try_merge(current(made->second), id);
  }

  static bool same_rows(const NodeSet& a, const NodeSet& b) {
    return a.rows == Rows::kNothing || b.rows == Rows::kNothing || (a.rows == b.rows && a.row_length == b.row_length);
  }

  // A sum is there when all of its row is, and a weight must be there before.
  bool waits_for_rows_of(const NodeSet& late, const NodeSet& early) {
    if (early.rows == Rows::kNothing && late.rows == Rows::kNothing) return false;
    return std::ranges::any_of(late.members, [&](Id member) {
      const Node& node = *sets_[member].node;
      return std::ranges::any_of(node.inputs(), [&](const Value* input) {
        const auto made = set_of_.find(input->node());
        if (made == set_of_.end() || &sets_[current(made->second)] != &early) return false;
        return is_of_whole_rows(*input) || takes_whole(node, *input);
      });
    });
  }

  Id current(Id id) {
    while (sets_[id].merged_into != id) id = sets_[id].merged_into = sets_[sets_[id].merged_into].merged_into;
    return id;
  }

  // Where its operands come from, and who else reads them; the newest first.
  std::vector<Id> neighbours(const Node& node) const {
    std::vector<Id> result;
    for (const Value* input : node.inputs()) {
      if (const auto made = set_of_.find(input->node()); made != set_of_.end()) result.push_back(made->second);
      const auto readers = readers_.find(input);
      if (readers == readers_.end()) continue;
      const size_t count = std::min(readers->second.size(), kMostNeighbours);
      result.insert(result.end(), readers->second.end() - static_cast<std::ptrdiff_t>(count), readers->second.end());
    }
    std::sort(result.begin(), result.end(), std::greater<>());
    if (result.size() > kMostNeighbours) result.resize(kMostNeighbours);
    return result;
  }

  // Each as often as it takes: once one has joined, another may have all that it needs.
  void merge_with(const std::vector<Id>& others, Id id) {
    const auto merges = [&](Id other) {
      const Id a = current(other), b = current(id);
      return a != b && try_merge(a, b);
    };
    while (std::ranges::any_of(others, merges)) {
    }
  }

  bool try_merge(Id a, Id b) {
    if (sets_[a].rank > sets_[b].rank) std::swap(a, b);
    const NodeSet &early = sets_[a], &late = sets_[b];
    if (!early.fusable || !late.fusable || early.sizes != late.sizes || early.members.size() + late.members.size() > kMostNodes)
      return false;
    if (!same_rows(early, late) || waits_for_rows_of(late, early)) return false;
    const bool moves_late = may_run_at(late, early);
    if (!moves_late && !is_read_only_by(early, a, b)) return false;
    merge(a, b, moves_late ? early.rank : late.rank);
    return true;
  }

  // Whether all that `late` needs is there when `early` runs, or made by it.
  bool may_run_at(const NodeSet& late, const NodeSet& early) {
    return std::all_of(late.needs.begin(), late.needs.end(), [&](Id need) { return sets_[current(need)].rank <= early.rank; });
  }

  bool is_read_only_by(const NodeSet& early, Id a, Id b) {
    return std::all_of(early.members.begin(), early.members.end(), [&](Id member) {
      return std::ranges::all_of(sets_[member].node->outputs(), [&](const Value* output) {
        return std::ranges::all_of(output->uses(), [&](const torch::jit::Use& use) {
          const auto reader = set_of_.find(use.user);
          return reader != set_of_.end() && (current(reader->second) == a || current(reader->second) == b);
        });
      });
    });
  }

  void merge(Id a, Id b, Id rank) {
    NodeSet &into = sets_[a], &gone = sets_[b];
    into.members.insert(into.members.end(), gone.members.begin(), gone.members.end());
    into.needs.insert(into.needs.end(), gone.needs.begin(), gone.needs.end());
    std::erase_if(into.needs, [&](Id need) { return current(need) == a || current(need) == b; });
    if (into.rows == Rows::kNothing) into.rows = gone.rows, into.row_length = gone.row_length;
    into.rank = rank;
    gone.merged_into = a;
  }

  const Program& program_;
  std::vector<NodeSet> sets_;
  std::unordered_map<const Node*, Id> set_of_;
  std::unordered_map<const Value*, std::vector<Id>> readers_;
};

// Writes the formulas of a cluster's nodes as one tile program.
class Builder {
 public:
  Builder(const Program& program, const std::vector<const Node*>& nodes)
      : program_(program), nodes_(nodes), result_{TileProgram(spec_of(*nodes[0]->output(0)).sizes), {}, {}, {}} {}

  Cluster run() {
    std::vector<const Node*> whole;
    std::vector<std::pair<const Node*, RowSum>> sums;
    for (const Node* node : nodes_) {
      if (const RowSum sum = find_row_sum(*node); sum.length) {
        sums.emplace_back(node, sum);
      } else {
        whole.push_back(node);
      }
    }
    for (const Node* node : whole) registers_[node->output(0)] = compute(*node);
    for (const Node* node : whole) {
      if (!is_read_outside(*node->output(0))) continue;
      result_.tiles.add_output(registers_.at(node->output(0)), spec_of(*node->output(0)).dtype == at::kBool);
      result_.outputs.push_back(node->output(0));
    }
    for (const auto& [node, sum] : sums) {
      result_.tiles.add_row_sum(registers_.at(node->input(0)), sum.length, sum.scale, spec_of(*node->output()).sizes);
      result_.outputs.push_back(node->output());
    }
    for (const Node* node : whole) {
      if (node->outputs().size() == 1) continue;
      result_.tiles.add_row_statistics(registers_.at(node->output(0)), find_row_op(*node).statistics);
      result_.outputs.insert(result_.outputs.end(), node->outputs().begin() + 1, node->outputs().end());
    }
    result_.tiles.finish();
    return std::move(result_);
  }

 private:
  using Register = TileProgram::Register;
  using Term = Formula::Term;
  static constexpr Register kAbsent = UINT16_MAX;

  bool is_read_outside(const Value& value) const {
    return std::any_of(value.uses().begin(), value.uses().end(), [&](const torch::jit::Use& use) {
      return std::find(nodes_.begin(), nodes_.end(), use.user) == nodes_.end();
    });
  }

  Register compute(const Node& node) {
    const RowOp step = find_row_op(node);
    return step.length ? row_op(node, step) : is_uniform(node) ? uniform(node) : formula(node);
  }

  Register row_op(const Node& node, const RowOp& step) {
    const Register in = operand(*node.input(0));
    c10::SmallVector<size_t, 2> rows;
    for (const Value* value : row_operands(node)) {
      result_.inputs.push_back(value);
      rows.push_back(result_.tiles.add_row_operand());
    }
    return result_.tiles.add_row_step(step.function, in, step.length, step.eps, rows);
  }

  Register uniform(const Node& node) {
    const size_t seed = seed_of(*node.input(0)), offset = seed_of(*node.input(1));
    return result_.tiles.add_uniform(seed, offset);
  }

  size_t seed_of(const Value& value) {
    if (const auto scalar = run_scalar(value)) return result_.tiles.add_seed(*scalar);
    result_.inputs.push_back(&value);
    return result_.tiles.add_seed();
  }

  Register formula(const Node& node) {
    const Formula& formula = *formula_of(program_, node);
    std::vector<Register> made;
    for (const Term& term : formula.terms) {
      const bool is_last = &term == &formula.terms.back();
      switch (term.kind) {
        case Term::Kind::kArgument: made.push_back(operand(*node.input(term.argument))); break;
        case Term::Kind::kLiteral: made.push_back(result_.tiles.add_literal(term.literal)); break;
        case Term::Kind::kCall: made.push_back(call(term, made, is_last)); break;
      }
    }
    return made.back();
  }

  // Leaves out calls that need no computing, except a node's result, which must be an instruction's own.
  Register call(const Term& term, const std::vector<Register>& made, bool is_result) {
    Register operands[kMostOperands] = {};
    for (int i = 0; i < operand_count(term.primitive); ++i) operands[i] = made[term.operands[i]];
    Primitive primitive = term.primitive;
    if (primitive == Primitive::k_maximum || primitive == Primitive::k_minimum) {
      if (operands[0] == kAbsent || operands[1] == kAbsent) {
        return keep(operands[0] == kAbsent ? operands[1] : operands[0], is_result);
      }
    }
    if (primitive == Primitive::k_mul && is_one(operands[0])) return keep(operands[1], is_result);
    if (primitive == Primitive::k_neg && result_.tiles.literal(operands[0])) {
      return result_.tiles.add_literal(-*result_.tiles.literal(operands[0]));
    }
    if (primitive == Primitive::k_fma && is_one(operands[1])) {
      const Register sum[] = {operands[2], operands[0]};
      return result_.tiles.add(Primitive::k_add, sum);
    }
    if (primitive == Primitive::k_fma && is_literal(operands[1], -1.f)) {
      const Register difference[] = {operands[2], operands[0]};
      return result_.tiles.add(Primitive::k_sub, difference);
    }
    return is_result ? result_.tiles.add(primitive, operands) : result_.tiles.find_or_add(primitive, operands);
  }

  Register keep(Register id, bool is_result) {
    return is_result && id != kAbsent ? result_.tiles.add(Primitive::k_copy, &id) : id;
  }

  bool is_literal(Register id, float value) const {
    return id != kAbsent && result_.tiles.literal(id) && *result_.tiles.literal(id) == value;
  }
  bool is_one(Register id) const { return is_literal(id, 1.f); }

  Register operand(const Value& value) {
    const Value* const number = number_source(value);
    const Value& source = number ? *number : value;
    const auto [entry, is_new] = registers_.try_emplace(&source, kAbsent);
    if (is_new) entry->second = new_operand(source);
    return entry->second;
  }

  // The scalar of the run that a value is.
  std::optional<TileProgram::RunScalar> run_scalar(const Value& value) {
    if (value.node()->kind() != torch::jit::prim::Param || !program_.params[value.offset()].is_scalar) return std::nullopt;
    const auto first = program_.params.begin(), param = first + static_cast<std::ptrdiff_t>(value.offset());
    const auto before = std::count_if(first, param, [](const Program::Param& one) { return one.is_scalar; });
    result_.scalars.push_back(&value);
    return TileProgram::RunScalar{static_cast<size_t>(before), param->dtype};
  }

  Register new_operand(const Value& value) {
    if (const auto constant = torch::jit::toIValue(&value)) {
      return constant->isNone() ? kAbsent : result_.tiles.add_literal(constant->toScalar().to<float>());
    }
    if (const auto scalar = run_scalar(value)) return result_.tiles.add_number(*scalar);
    result_.inputs.push_back(&value);
    const TensorSpec spec = spec_of(value);
    if (spec.dtype == at::ScalarType::Undefined) return result_.tiles.add_number();
    return result_.tiles.add_tensor(spec.dtype == at::kBool, spec.sizes == spec_of(*nodes_[0]->output(0)).sizes);
  }

  const Program& program_;
  const std::vector<const Node*>& nodes_;
  Cluster result_;
  std::unordered_map<const Value*, Register> registers_;
};

// Why a sum or a row-wise op joins no cluster; null for any other node.
const char* why_no_rows(const Node& node) {
  const RowSum sum = find_row_sum(node);
  const RowOp step = find_row_op(node);
  const char* why = sum.why_not ? sum.why_not : step.why_not;
  if (!why && (sum.length || step.length)) why = "no cluster with rows of this length makes its operand";
  return why;
}

std::string apart_text(const Node& node) {
  const char* why = why_no_rows(node);
  if (!why) return "";
  return c10::str("# apart: %", node.output(0)->debugName(), ", ", node.kind().toUnqualString(), ": ", why, "\n");
}

}  // namespace

std::vector<Program::Group> find_groups(const Program& program) { return Clustering(program).run(); }

const char* why_apart(const Program& program, const Program::Group& group) {
  const Node& first = *group.nodes[0];
  if (!group.is_fused) {
    const char* why = why_no_rows(first);
    return why ? why : "an operator of libtorch, which computes it as a whole";
  }
  for (const Value* input : first.inputs()) {
    const auto made = program.origins.find(input->node());
    if (made == program.origins.end()) continue;
    if (!is_elementwise(program, *made->first)) return "an operator of libtorch makes its operand";
    const bool same_sizes = spec_of(*input).sizes == spec_of(*first.output(0)).sizes;
    return same_sizes ? "what reads its operand runs before, or the loop has no room for more ops"
                      : "its operand has other sizes";
  }
  return "";
}

std::string clusters_text(const Program& program) {
  std::string text;
  for (const Program::Group& group : program.groups) {
    if (!group.is_fused) {
      text += apart_text(*group.nodes[0]);
      continue;
    }
    const Cluster cluster = build_cluster(program, group);
    text += c10::str("# one loop over ", at::IntArrayRef(spec_of(*group.nodes[0]->output(0)).sizes), ", reads");
    for (const auto* read : {&cluster.inputs, &cluster.scalars}) {
      for (const Value* value : *read) text += c10::str(" %", value->debugName());
    }
    text += ", makes";
    for (const Value* value : cluster.outputs) text += c10::str(" %", value->debugName());
    text += ":";
    for (const Node* node : group.nodes) text += c10::str(" ", node->kind().toUnqualString());
    text += c10::str("\n", cluster.tiles.text());
  }
  return text;
}

Cluster build_cluster(const Program& program, const Program::Group& group) { return Builder(program, group.nodes).run(); }

}  // namespace ltc::torchscript
