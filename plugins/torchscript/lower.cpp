#include "torchscript/lower.h"

#include <c10/util/StringUtil.h>
#include <torch/csrc/jit/ir/constants.h>

#include <charconv>
#include <optional>
#include <string_view>

#include "torchscript/fusion/clusters.h"
#include "torchscript/graph/errors.h"
#include "torchscript/graph/schema.h"
#include "torchscript/graph/types.h"
#include "torchscript/ops/random_layouts.h"
#include "torchscript/rewrites/layouts.h"
#include "torchscript/rewrites/rewrites.h"

namespace ltc::torchscript {
namespace {

using torch::jit::Node;
using torch::jit::Symbol;
using torch::jit::Value;

TensorSpec declared(const ltc_type& type) { return {to_torch(type.dtype), {type.sizes, type.sizes + type.rank}}; }

c10::TypePtr scalar_type(ltc_dtype dtype) {
  switch (dtype) {
    case LTC_F64: return c10::FloatType::get();
    case LTC_I64: return c10::IntType::get();
    case LTC_BOOL: return c10::BoolType::get();
    case LTC_C128: return c10::ComplexType::get();
    default: throw Failure(LTC_UNSUPPORTED, c10::str("[lower] a scalar param of ltc dtype ", dtype));
  }
}

// "model.py:12" as the printer of torch wants it.
torch::jit::SourceRange source_range(std::string_view location) {
  const size_t colon = location.rfind(':');
  size_t line = 0;
  if (colon != location.npos) std::from_chars(location.data() + colon + 1, location.data() + location.size(), line);
  auto source = std::make_shared<torch::jit::Source>("", std::string(location.substr(0, line ? colon : location.size())), line);
  return {std::move(source), 0, 0};
}

class Lowering {
 public:
  Lowering(const ltc_graph& source, c10::Device device, const Symbols& symbols)
      : source_(source), binder_(source, device), values_(source.value_count) {
    program_.device = device;
    program_.symbols = symbols;
    program_.graph = std::make_shared<torch::jit::Graph>();
    for (auto& numbers : numbers_) numbers.resize(source.value_count);
  }

  Program run() {
    add_params();
    for (size_t i = 0; i < source_.node_count; ++i) add_node(static_cast<uint32_t>(i));
    for (size_t i = 0; i < source_.output_count; ++i) graph().registerOutput(value(source_.outputs[i]));
    return std::move(program_);
  }

 private:
  torch::jit::Graph& graph() { return *program_.graph; }
  Node* append(Node* node) { return graph().insertNode(node); }

  void add_params() {
    for (size_t i = 0; i < source_.param_count; ++i) {
      const ltc_param& param = *source_.params[i];
      if (param.flags & ~uint32_t{LTC_PARAM_SCALAR}) {
        throw Failure(LTC_UNSUPPORTED, c10::str("[lower] param ", i, " has unknown flags ", param.flags));
      }
      const ltc_type& type = *source_.types[param.value];
      const bool is_scalar = param.flags & LTC_PARAM_SCALAR;
      program_.params.push_back(
          {is_scalar, type.dtype, is_scalar ? TensorSpec{} : declared(type), param.alias_output != LTC_NONE});
      values_[param.value] = graph().addInput();
      values_[param.value]->setType(is_scalar ? scalar_type(type.dtype)
                                              : tensor_type(program_.params.back().spec, program_.device));
    }
  }

  void add_node(uint32_t index) {
    const ltc_node& node = *source_.nodes[index];
    try {
      const BoundNode bound = binder_.bind(node);
      number_dtype_ = number_dtype(node, bound);
      std::vector<Value*> arguments;
      for (const Binding& binding : bound.bindings) arguments.push_back(argument(binding));
      const auto& schema = bound.op.schema();
      const size_t results = writes(schema) ? node.output_count : schema.returns().size();
      Node* call = append(graph().create(Symbol::fromQualString(schema.name()), arguments, results));
      if (node.location.size > 0) call->setSourceRange(source_range(text(node.location)));
      program_.origins.emplace(call, Origin{bound.op, index});
      bind_results(node, call, !writes(schema) && returns_list(schema));
      if (!program_.symbols.empty() && has_stand_in(node, bound, *call)) mark(node, *call);
    } catch (const Failure& failure) {
      throw Failure(failure.error().code, failure.error().message, index);
    }
  }

  void mark(const ltc_node& node, Node& call) {
    mark_symbolic(call);
    for (size_t i = 0; i < node.output_count; ++i) {
      if (node.outputs[i] != LTC_NONE) mark_symbolic(*values_[node.outputs[i]]->node());  // another one, of a list
    }
  }

  // Marks the constants that have some.
  bool has_stand_in(const ltc_node& node, const BoundNode& bound, Node& call) {
    const auto has = [this](uint32_t id) {
      return id != LTC_NONE && program_.symbols.contains_any({source_.types[id]->sizes, source_.types[id]->rank});
    };
    bool found = std::any_of(node.inputs, node.inputs + node.input_count, has) ||
                 std::any_of(node.outputs, node.outputs + node.output_count, has);
    for (size_t i = 0; i < bound.bindings.size(); ++i) {
      const Binding& binding = bound.bindings[i];
      const std::string& name = bound.op.schema().arguments()[i].name();
      const ltc_attr* const attr = ltc_find_attr(&node, name.data(), name.size(), "");
      if (binding.kind != Binding::kConstant || !attr || !has_stand_in(*attr)) continue;
      // A boolean that is given as a whole number, for example.
      if (!program_.symbols.is_part_of(binding.constant)) {
        throw Failure(LTC_UNSUPPORTED, c10::str("'", name, "' differs from run to run, and is no number"));
      }
      mark_symbolic(*call.input(i)->node());
      found = true;
    }
    return found;
  }

  bool has_stand_in(const ltc_attr& attr) const {
    if (attr.kind == LTC_ATTR_INT || attr.kind == LTC_ATTR_INTS)
      return program_.symbols.contains_any({attr.value.ints, attr.count});
    return (attr.kind == LTC_ATTR_FLOAT || attr.kind == LTC_ATTR_FLOATS) &&
           std::any_of(attr.value.floats, attr.value.floats + attr.count,
                       [this](double number) { return program_.symbols.is_part_of(number); });
  }

  void bind_results(const ltc_node& node, Node* call, bool is_list) {
    if (is_list) {
      call->output()->setType(c10::ListType::ofTensors());
      call = append(graph().createListUnpack(call->output(), node.output_count));
    }
    for (size_t i = 0; i < node.output_count; ++i) {
      const uint32_t id = node.outputs[i];
      if (id == LTC_NONE) continue;
      if (id >= source_.value_count) throw Failure(LTC_INVALID_ARGUMENT, c10::str("[lower] output ", id, " is no value"));
      values_[id] = call->outputs()[i];
      values_[id]->setType(tensor_type(declared(*source_.types[id]), program_.device));
    }
  }

  Value* argument(const Binding& binding) {
    switch (binding.kind) {
      case Binding::kConstant: return graph().insertConstant(binding.constant);
      case Binding::kTensor: return tensor(binding.values[0]);
      case Binding::kTensors: return tensors(binding.values, c10::TensorType::get());
      case Binding::kOptionalTensors: return tensors(binding.values, c10::OptionalType::ofTensor());
      case Binding::kScalar: return value(binding.values[0]);
      case Binding::kFloat: return as_float(value(binding.values[0]));
    }
    throw Failure(LTC_INTERNAL, "[lower] unknown binding");
  }

  Value* value(uint32_t id) {
    if (id >= source_.value_count || !values_[id]) {
      throw Failure(LTC_INVALID_ARGUMENT, c10::str("[lower] value ", id, " is used before it is made"));
    }
    return values_[id];
  }

  Value* tensor(uint32_t id) { return binder_.is_scalar(id) ? number(id) : value(id); }

  Value* tensors(c10::ArrayRef<uint32_t> ids, c10::TypePtr element) {
    std::vector<Value*> elements;
    for (uint32_t id : ids) elements.push_back(id == LTC_NONE ? graph().insertConstant(c10::IValue()) : tensor(id));
    Node* list = graph().create(torch::jit::prim::ListConstruct, elements);
    list->output()->setType(c10::ListType::create(std::move(element)));
    return append(list)->output();
  }

  // Among float32 operands a real number is float32 from the start: the result is the same, and no kernel has to cast it.
  std::optional<at::ScalarType> number_dtype(const ltc_node& node, const BoundNode& bound) const {
    bool has_float = false;
    for (const Binding& binding : bound.bindings) {
      for (uint32_t id : binding.values) {
        if (id == LTC_NONE || binder_.is_scalar(id)) continue;
        const ltc_dtype dtype = source_.types[id]->dtype;
        if (dtype != LTC_F32 && dtype != LTC_BOOL) return std::nullopt;
        has_float |= dtype == LTC_F32;
      }
    }
    for (size_t i = 0; i < node.output_count; ++i) {
      const uint32_t id = node.outputs[i];
      if (id >= source_.value_count || (source_.types[id]->dtype != LTC_F32 && source_.types[id]->dtype != LTC_BOOL)) {
        return std::nullopt;
      }
    }
    return has_float ? std::optional(at::kFloat) : std::nullopt;
  }

  // One tensor per scalar param and type, however many nodes read it.
  Value* number(uint32_t id) {
    const auto own = to_torch(source_.types[id]->dtype);
    const bool as_is = !number_dtype_ || at::isComplexType(own);
    Value*& made = numbers_[as_is ? 0 : 1][id];
    if (!made) {
      Value* dtype = graph().insertConstant(as_is ? c10::IValue() : c10::IValue(*number_dtype_));
      made = append(graph().create(number_kind(), {value(id), dtype}))->output();
      made->setType(tensor_type({as_is ? own : *number_dtype_, {}}));
    }
    return made;
  }

  Value* as_float(Value* scalar) {
    if (scalar->type()->kind() == c10::TypeKind::FloatType) return scalar;
    static const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("ltc_torchscript::to_float", "");
    Node* node = append(graph().create(Symbol::fromQualString("ltc_torchscript::to_float"), {scalar}));
    node->output()->setType(c10::FloatType::get());
    program_.origins.emplace(node, Origin{op, LTC_NONE});
    return node->output();
  }

  const ltc_graph& source_;
  const Binder binder_;
  std::vector<Value*> values_;                  // by value id
  std::vector<Value*> numbers_[2];              // by value id: in their own type, in number_dtype_
  std::optional<at::ScalarType> number_dtype_;  // of the node at hand
  Program program_;
};

constexpr size_t kMostSymbolicNodes = 64;  // of a graph that is mostly symbolic

void check_share(const Program& program) {
  size_t symbolic = 0;
  for (const auto& [node, origin] : program.origins) symbolic += is_symbolic(*node);
  if (symbolic <= std::max(kMostSymbolicNodes, program.origins.size() / 2)) return;
  throw Failure(LTC_UNSUPPORTED, c10::str(symbolic, " of ", program.origins.size(),
                                          " nodes have sizes that differ from run to run, more than pays for one program"));
}

Program lower_symbolic(const ltc_graph& graph, c10::Device device, const ltc_symbolic_sizes& sizes) {
  const GeneralGraph general(graph, sizes);
  Program program = Lowering(general.graph(), device, general.symbols()).run();
  check_share(program);
  return program;
}

}  // namespace

Program lower(const ltc_graph& graph, c10::Device device, const ltc_symbolic_sizes* sizes) {
  Program program = sizes ? lower_symbolic(graph, device, *sizes) : Lowering(graph, device, {}).run();
  choose_kernels(program, false);
  for (const Node* node : program.graph->nodes()) program.groups.push_back({{node}, false});
  return program;
}

void optimize(Program& program) {
  if (!program.device.is_cpu()) return;
  slice_stacks(program);
  hoist_views(program);
  join_parts(program);
  join_products(program);
  split_biases(program);
  fold_relus(program);
  choose_kernels(program, true);
  if (program.packs_weights && !layouts_seed()) pack_weights(program);
  choose_layouts(program);
  program.groups = find_groups(program);
}

void claim(const ltc_graph& graph, c10::Device device, uint32_t* cluster) {
  const Binder binder(graph, device);
  for (size_t i = 0; i < graph.node_count; ++i) {
    try {
      binder.bind(*graph.nodes[i]);
      cluster[i] = 1;
    } catch (const Failure&) {
      cluster[i] = 0;  // the host computes it
    }
  }
}

}  // namespace ltc::torchscript
