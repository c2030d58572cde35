#include "torchscript/compile.h"

#include <ATen/WrapDimUtils.h>
#include <ATen/core/enum_tag.h>
#include <c10/util/StringUtil.h>
#include <c10/util/hash.h>
#include <torch/csrc/jit/ir/constants.h>

#include <algorithm>
#include <set>
#include <unordered_set>

#include "torchscript/fusion/clusters.h"
#include "torchscript/graph/errors.h"
#include "torchscript/graph/op_traits.h"
#include "torchscript/graph/schema.h"
#include "torchscript/ops/random_layouts.h"
#include "torchscript/ops/refusals.h"

namespace ltc::torchscript {

namespace prim = torch::jit::prim;

// Numbers the values of a jit graph and writes one instruction per node.
class Executable::Compiler {
 public:
  Compiler(const Program& program, Executable& out) : program_(program), out_(out) {}

  void run() {
    for (const torch::jit::Value* input : program_.graph->inputs()) new_slot(*input);
    lay_out_anew(program_.graph->inputs());
    for (const Program::Group& group : program_.groups) {
      if (group.is_fused) fused_.insert(group.nodes.begin(), group.nodes.end());
    }
    for (const Program::Group& group : program_.groups) group.is_fused ? add_cluster(group) : add(*group.nodes[0]);
    for (const torch::jit::Value* output : program_.graph->outputs()) out_.outputs_.push_back({slot(*output), 0});
    bind_params(mark_last_uses());
    out_.sized_.symbols = program_.symbols;
  }

 private:
  uint32_t new_slot(const torch::jit::Value& value) {
    const auto id = static_cast<uint32_t>(out_.slots_.size());
    out_.slots_.emplace_back();
    out_.is_constant_.push_back(false);
    out_.specs_.push_back(spec_of(value));
    note_sizes(value, id, out_.sized_.slots);
    slot_of_.insert_or_assign(&value, id);
    return id;
  }

  uint32_t new_constant(c10::IValue value) {
    const auto id = static_cast<uint32_t>(out_.slots_.size());
    out_.slots_.push_back(std::move(value));
    out_.is_constant_.push_back(true);
    out_.specs_.emplace_back();
    return id;
  }

  uint32_t slot(const torch::jit::Value& value) const { return slot_of_.at(&value); }

  // Notes those that differ from run to run.
  void note_sizes(const torch::jit::Value& value, uint32_t index, std::vector<Sized::Sizes>& to) const {
    if (program_.symbols.empty()) return;
    const torch::jit::Node& maker = *value.node();
    if (maker.kind() != prim::Param && !is_symbolic(maker)) return;
    TensorSpec spec = spec_of(value);
    if (program_.symbols.contains_any(spec.sizes)) to.push_back({index, std::move(spec.sizes)});
  }

  void note_threads(const torch::jit::Node& node, const Instruction& instruction) {
    if (!is_symbolic(node) || instruction.threads == Threads::kOne) return;
    out_.sized_.long_instructions.push_back({static_cast<uint32_t>(out_.instructions_.size()), instruction.threads});
  }

  void add_cluster(const Program::Group& group) {
    Cluster cluster = build_cluster(program_, group);
    Instruction instruction;
    instruction.kind = Kind::kTiles;
    instruction.threads = threads_for(group.nodes);
    instruction.node = program_.origins.at(group.nodes[0]).node;
    instruction.note = why_apart(program_, group);
    instruction.tiles = static_cast<uint32_t>(out_.tiles_.size());
    note_sizes(*group.nodes[0]->output(0), instruction.tiles, out_.sized_.tiles);
    note_threads(*group.nodes[0], instruction);
    out_.tiles_.push_back(std::move(cluster.tiles));
    out_.tile_facts_.push_back(facts_of(group));
    append(std::move(instruction), cluster.inputs, cluster.outputs);
  }

  Executable::TileFacts facts_of(const Program::Group& group) const {
    Executable::TileFacts facts;
    for (const torch::jit::Node* node : group.nodes) {
      if (!facts.label.empty()) facts.label += '+';
      facts.label += node->kind().toUnqualString();
      facts.nodes.push_back(program_.origins.at(node).node);
    }
    std::ranges::sort(facts.nodes);
    return facts;
  }

  // A number of which only tiles need to know is no tensor.
  bool is_wanted(const torch::jit::Node& number) const {
    return std::any_of(number.output()->uses().begin(), number.output()->uses().end(),
                       [&](const torch::jit::Use& use) { return !fused_.contains(use.user); });
  }

  void add(const torch::jit::Node& node) {
    if (node.kind() == prim::Constant) return add_constant(node);
    Instruction instruction;
    bool checked = false;  // what it may refuse
    if (node.kind() == prim::ListConstruct) {
      const auto& element = *node.output()->type()->castRaw<c10::ListType>()->getElementType();
      const bool may_lack = element.kind() == c10::TypeKind::OptionalType;
      instruction.kind = may_lack ? Kind::kOptionalTensorList : Kind::kTensorList;
    } else if (node.kind() == prim::ListUnpack) {
      instruction.kind = Kind::kUnpack;
    } else if (!node.outputs().empty() && number_source(*node.output(0))) {
      if (!is_wanted(node)) return;
      instruction.kind = Kind::kNumber;
      instruction.on_host = program_.device.is_cpu() || is_taken_from_host(node);
    } else {
      const bool on_host = program_.device.is_cpu();
      const Origin& origin = program_.origins.at(&node);
      instruction.op = origin.op;
      instruction.node = origin.node;
      instruction.note = why_apart(program_, {{&node}, false});
      instruction.layout = traits_of(origin.op.operator_name().name).layout;
      if (on_host) instruction.threads = threads_for(node, origin.op);
      if (origin.call) {
        instruction.kind = Kind::kDirect;
        instruction.direct = origin.call;
        if (instruction.threads == Threads::kAll) instruction.threads = Threads::kAny;  // it divides its work itself
      } else if (traits_of(origin.op.operator_name().name).makes_forms) {
        instruction.kind = Kind::kForm;
      } else if (writes(origin.op.schema())) {
        instruction.kind = Kind::kWritingCall;
      } else {
        instruction.twin = plan_in_place(node, origin.op);
        checked = instruction.twin && on_host && check_rows_first(node, origin);
      }
    }
    note_threads(node, instruction);
    append(std::move(instruction), node.inputs(), node.outputs());
    if (!checked && may_refuse(program_, node)) out_.committed_from_ = out_.instructions_.size();
  }

  // Rows are added to a table in place, and a large one is not copied: if its indices are looked at before the run is committed.
  bool check_rows_first(const torch::jit::Node& node, const Origin& origin) {
    const c10::OperatorName& name = origin.op.operator_name();
    if (name.name != "aten::index_add" || !name.overload_name.empty() || is_symbolic(node)) return false;
    const std::vector<int64_t> sizes = spec_of(*node.input(0)).sizes;
    const auto dim = torch::jit::toIValue(node.input(1));
    if (sizes.size() < 2 || !dim || !dim->isInt()) return false;
    Instruction check;
    check.kind = Kind::kCheckRows;
    check.node = origin.node;
    check.dim = c10::maybe_wrap_dim(dim->toInt(), static_cast<int64_t>(sizes.size()));
    check.rows = sizes[static_cast<size_t>(check.dim)];
    if (!checked_rows_.emplace(node.input(2), check.rows).second) return true;
    append(std::move(check), c10::ArrayRef<const torch::jit::Value*>(node.input(2)), c10::ArrayRef<torch::jit::Value*>());
    out_.committed_from_ = out_.instructions_.size();
    return true;
  }

  // Kernels of devices take a number among their operands from the host's memory if they compute element by element and have
  // another operand to say which device it is.
  bool is_taken_from_host(const torch::jit::Node& number) const {
    const auto& uses = number.output()->uses();
    return std::all_of(uses.begin(), uses.end(), [&](const torch::jit::Use& use) {
      const auto origin = program_.origins.find(use.user);
      const auto inputs = use.user->inputs();
      return origin != program_.origins.end() && origin->second.op.hasTag(at::Tag::pointwise) &&
             std::any_of(inputs.begin(), inputs.end(), [](const torch::jit::Value* input) {
               return input->type()->kind() == c10::TypeKind::TensorType && !number_source(*input);
             });
    });
  }

  void add_constant(const torch::jit::Node& node) {
    c10::IValue constant = torch::jit::toIValue(node.output()).value();
    const uint32_t id = new_constant(constant);
    slot_of_.emplace(node.output(), id);
    if (is_symbolic(node)) out_.sized_.constants.push_back({id, std::move(constant)});
  }

  // The result must fit the operand's memory. A number must not become a result: it would stay weak in promotion.
  std::optional<c10::OperatorHandle> plan_in_place(const torch::jit::Node& node, const c10::OperatorHandle& op) const {
    if (node.inputs().empty() || node.outputs().size() != 1 || number_source(*node.input(0))) return std::nullopt;
    const TensorSpec operand = spec_of(*node.input(0)), result = spec_of(*node.output());
    if (operand.dtype == at::ScalarType::Undefined || operand != result) return std::nullopt;
    return in_place_twin(op, program_.device);
  }

  template <typename Inputs, typename Outputs>
  void append(Instruction instruction, const Inputs& inputs, const Outputs& outputs) {
    instruction.first_operand = static_cast<uint32_t>(out_.operands_.size());
    instruction.operand_count = static_cast<uint32_t>(inputs.size());
    for (const torch::jit::Value* input : inputs) out_.operands_.push_back({slot(*input), 0});
    instruction.first_result = static_cast<uint32_t>(out_.results_.size());
    instruction.result_count = static_cast<uint32_t>(outputs.size());
    for (const torch::jit::Value* output : outputs) {
      out_.results_.push_back(output->hasUses() ? new_slot(*output) : kUnwanted);
    }
    out_.instructions_.push_back(std::move(instruction));
    lay_out_anew(outputs);
  }

  // Nothing is added unless the option layouts asks for it.
  template <typename Values>
  void lay_out_anew(const Values& values) {
    if (!layouts_seed_) return;
    static const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("ltc_torchscript::in_random_layout", "");
    for (const torch::jit::Value* value : values) {
      const TensorSpec spec = spec_of(*value);
      if (!value->hasUses() || spec.dtype == at::ScalarType::Undefined || number_source(*value)) continue;
      Instruction move;
      move.op = op;
      move.first_operand = static_cast<uint32_t>(out_.operands_.size());
      move.operand_count = 2;
      const uint32_t from = slot(*value);
      const size_t seed = c10::get_hash(*layouts_seed_, from, std::string(value->node()->kind().toQualString()), spec.sizes);
      out_.operands_.push_back({from, 0});
      out_.operands_.push_back({new_constant(static_cast<int64_t>(seed)), 0});
      move.first_result = static_cast<uint32_t>(out_.results_.size());
      move.result_count = 1;
      out_.results_.push_back(new_slot(*value));
      out_.instructions_.push_back(std::move(move));
    }
  }

  // Whether anybody reads it, by slot.
  std::vector<bool> mark_last_uses() {
    std::vector<bool> read_later = out_.is_constant_;
    const auto visit = [&](Operand& operand) {
      operand.last = !read_later[operand.slot];
      read_later[operand.slot] = true;
    };
    std::for_each(out_.outputs_.rbegin(), out_.outputs_.rend(), visit);
    std::for_each(out_.operands_.rbegin(), out_.operands_.rend(), visit);
    return read_later;
  }

  // Params have the first slots.
  void bind_params(const std::vector<bool>& is_read) {
    for (uint32_t slot = 0; slot < program_.params.size(); ++slot) {
      const Program::Param& param = program_.params[slot];
      if (!param.is_scalar) {
        if (param.may_be_donated) out_.donations_.push_back(slot);
        note_sizes(*program_.graph->inputs()[slot], static_cast<uint32_t>(out_.inputs_.size()), out_.sized_.inputs);
        out_.inputs_.push_back({param.spec, is_read[slot] ? std::optional(slot) : std::nullopt});
        continue;
      }
      if (is_read[slot]) out_.slot_scalars_.push_back({slot, out_.scalar_count_, param.dtype});
      ++out_.scalar_count_;
    }
  }

  const Program& program_;
  const std::optional<uint64_t> layouts_seed_ = program_.device.is_cpu() ? layouts_seed() : std::nullopt;
  Executable& out_;
  std::unordered_map<const torch::jit::Value*, uint32_t> slot_of_;
  std::unordered_set<const torch::jit::Node*> fused_;
  std::set<std::pair<const torch::jit::Value*, int64_t>> checked_rows_;  // indices, and of how many rows
};

Executable::Executable(const Program& program, host_compiler::HostKernels& kernels) : device_(program.device) {
  Compiler(program, *this).run();
  prepare(kernels);
  kernels_->write();  // an equal one of another program may be compiled already
}

void Executable::prepare(host_compiler::HostKernels& kernels) {
  kernels_ = std::make_shared<ProgramKernels>(kernels, tiles_);
  for (TileProgram& tiles : tiles_) tiles.use_kernels(kernels_);
  name_forms();
  if (sized_.symbols.empty()) plan_commit();
  size_t most = 0;
  for (const Instruction& i : instructions_) most = std::max<size_t>({most, i.operand_count, i.result_count});
  stack_.reserve(most + 1);
}

void Executable::name_forms() {
  for (Instruction& instruction : instructions_) {
    if (instruction.kind != Kind::kForm) continue;
    std::string key = c10::toString(instruction.op->operator_name());
    for (uint32_t i = 0; i < instruction.operand_count; ++i) {
      const uint32_t slot = operands_[instruction.first_operand + i].slot;
      key += is_constant_[slot] ? c10::str(" ", slots_[slot]) : " _";
    }
    instruction.form = static_cast<uint32_t>(form_keys_.size());
    form_keys_.push_back(std::move(key));
  }
  if (!form_keys_.empty()) keepers_.resize(slots_.size());
}

}  // namespace ltc::torchscript
