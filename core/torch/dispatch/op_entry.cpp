#include "core/torch/dispatch/op_entry.h"

#include <algorithm>
#include <mutex>
#include <unordered_map>

#include "core/torch/dispatch/own_ops.h"

namespace ltc {
namespace {

using c10::TypeKind;

bool is_tensor_like(const c10::TypePtr& type) {
  if (type->kind() == TypeKind::OptionalType) return is_tensor_like(type->expectRef<c10::OptionalType>().getElementType());
  return type->kind() == TypeKind::TensorType;
}

bool is_list_of(const c10::TypePtr& type, bool (*element)(const c10::TypePtr&)) {
  if (type->kind() == TypeKind::OptionalType) return is_list_of(type->expectRef<c10::OptionalType>().getElementType(), element);
  return type->kind() == TypeKind::ListType && element(type->expectRef<c10::ListType>().getElementType());
}

bool is_number(const c10::TypePtr& type) {
  if (type->kind() == TypeKind::OptionalType) return is_number(type->expectRef<c10::OptionalType>().getElementType());
  return type->kind() == TypeKind::NumberType || type->kind() == TypeKind::FloatType;
}

bool is_dtype(const c10::TypePtr& type) {
  if (type->kind() == TypeKind::OptionalType) return is_dtype(type->expectRef<c10::OptionalType>().getElementType());
  return type->kind() == TypeKind::ScalarTypeType;
}

bool is_placement(const std::string& name) {
  static const char* const names[] = {"memory_format", "layout", "device", "pin_memory", "non_blocking", "generator"};
  return std::ranges::find(names, name) != std::end(names);
}

bool aliases(const c10::Argument& arg) { return arg.alias_info() != nullptr; }
bool is_written(const c10::Argument& arg) { return arg.alias_info() && arg.alias_info()->isWrite(); }

Arg describe(const c10::Argument& arg, const OpRow* row) {
  Arg result{arg.name(), ArgKind::kConstant, is_dtype(arg.real_type()), is_written(arg)};
  if (is_tensor_like(arg.type())) {
    result.kind = ArgKind::kTensor;
  } else if (is_list_of(arg.type(), is_tensor_like)) {
    result.kind = ArgKind::kTensorList;
  } else if (is_placement(arg.name())) {
    result.kind = ArgKind::kPlacement;
  } else if (is_number(arg.type()) && !(row && row->is_static(arg.name()))) {
    result.kind = ArgKind::kNumber;
    if (arg.default_value()) result.default_number = to_number(*arg.default_value());
    if (row && row->flags & kZeroIsStatic) result.default_number = to_number(0.0);
  }
  return result;
}

// Tensors or one list of tensors, what is written and returned aside.
bool returns_tensors(const c10::FunctionSchema& schema) {
  size_t tensors = 0, lists = 0, others = 0;
  for (const c10::Argument& result : schema.returns()) {
    if (is_written(result)) continue;
    ++(is_tensor_like(result.type()) ? tensors : is_list_of(result.type(), is_tensor_like) ? lists : others);
  }
  return others == 0 && (lists == 0 || (lists == 1 && tensors == 0)) && (tensors + lists > 0 || writes(schema));
}

// Whether the arguments are the same, out arguments aside.
bool same_arguments(const c10::FunctionSchema& a, const c10::FunctionSchema& b, size_t count) {
  if (b.arguments().size() != count) return false;
  for (size_t i = 0; i < count; ++i) {
    if (*a.arguments()[i].type() != *b.arguments()[i].type() || a.arguments()[i].name() != b.arguments()[i].name()) return false;
  }
  return true;
}

bool begins_with_arguments(const c10::FunctionSchema& out, const c10::FunctionSchema& functional) {
  const size_t count = std::ranges::count_if(out.arguments(), [](const c10::Argument& arg) { return !arg.is_out(); });
  return same_arguments(out, functional, count);
}

// The op of that base name without aliasing that takes the first `count` arguments of `schema`.
std::optional<c10::OperatorHandle> find_functional(const c10::FunctionSchema& schema, const std::string& name, size_t count) {
  const auto fits = [&](const c10::OperatorHandle& op) {
    const auto& other = op.schema();
    return same_arguments(schema, other, count) && std::ranges::none_of(other.arguments(), aliases) &&
           std::ranges::none_of(other.returns(), aliases) && returns_tensors(other);
  };
  auto& dispatcher = c10::Dispatcher::singleton();
  if (auto op = dispatcher.findSchema({name, schema.overload_name()}); op && fits(*op)) return op;
  for (const c10::OperatorHandle& op : overloads_of(name)) {
    if (fits(op)) return op;
  }
  return std::nullopt;
}

// Ops whose kernels give their result other sizes or strides than their shape functions do.
constexpr std::string_view kReshapedByKernel[] = {"aten::isin.Scalar_Tensor", "aten::reflection_pad3d",
                                                  "aten::reflection_pad3d_backward", "aten::replication_pad2d",
                                                  "aten::replication_pad3d"};

// Whether PyTorch's composite kernel computes the geometry and calls an .out form that backends implement. The other composites
// of that dispatch key compute with further ops; their .out form is a composite itself.
bool is_structured(const c10::OperatorHandle& op) {
  if (!op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutogradNonFunctional)) return false;
  if (std::ranges::find(kReshapedByKernel, toString(op.operator_name())) != std::end(kReshapedByKernel)) return false;
  const auto& schema = op.schema();
  for (const c10::OperatorHandle& out : overloads_of(schema.name())) {
    const auto& arguments = out.schema().arguments();
    if (!arguments.empty() && arguments.back().is_out() && begins_with_arguments(out.schema(), schema)) {
      return !out.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd);
    }
  }
  return false;
}

// Ops whose results' sizes or presence depend on values, and random ones, cannot be recorded by schema. Null if `op` can.
const char* why_not_traced(const std::optional<c10::OperatorHandle>& op, const OpRow* row) {
  if (!op) return "it has no functional form";
  if (row && row->tier == Tier::kHost) return "the op table keeps it on the host";
  if (row && row->flags & kTraceTagged) return nullptr;
  if (!returns_tensors(op->schema())) return "its results are no tensors";
  if (op->hasTag(at::Tag::dynamic_output_shape)) return "the size of its result depends on values";
  if (op->hasTag(at::Tag::data_dependent_output)) return "its result depends on values in a way that cannot be traced";
  if (op->hasTag(at::Tag::nondeterministic_seeded)) return "it is random and has no recipe";
  return nullptr;
}

// By result: the argument that it is.
std::vector<size_t> returned_arguments(const c10::FunctionSchema& schema) {
  std::vector<size_t> returns;
  for (const c10::Argument& result : schema.returns()) {
    size_t argument = OpEntry::kFresh;
    for (size_t i = 0; is_written(result) && i < schema.arguments().size(); ++i) {
      const c10::Argument& arg = schema.arguments()[i];
      if (is_written(arg) && arg.alias_info()->beforeSets() == result.alias_info()->beforeSets()) argument = i;
    }
    returns.push_back(argument);
  }
  return returns;
}

}  // namespace

bool writes(const c10::FunctionSchema& schema) { return std::ranges::any_of(schema.arguments(), is_written); }

OpEntry::OpEntry(const c10::OperatorHandle& handle, bool as_writing) : called(handle) {
  const auto& schema = handle.schema();
  const auto& arguments = schema.arguments();
  const size_t outs = std::ranges::count_if(arguments, [](const c10::Argument& arg) { return arg.is_out(); });
  const size_t written = std::ranges::count_if(arguments, is_written);

  if (std::ranges::none_of(arguments, aliases)) {
    recorded = handle;
    kind = OpKind::kFunctional;
  } else if (!as_writing && outs > 0 && outs == schema.returns().size()) {
    recorded = find_functional(schema, schema.name(), arguments.size() - outs);
    kind = OpKind::kOut;
  } else if (!as_writing && schema.name().ends_with('_') && schema.returns().size() == 1 && written == 1 &&
             is_written(arguments[0])) {
    recorded = find_functional(schema, schema.name().substr(0, schema.name().size() - 1), arguments.size());
    kind = OpKind::kInPlace;
  }
  const bool is_view = std::ranges::any_of(arguments, [](const c10::Argument& arg) { return aliases(arg) && !is_written(arg); });
  if (!recorded && written > 0 && !is_view) {
    recorded = handle;
    kind = OpKind::kWriting;
  }

  const std::string name = recorded ? toString(recorded->operator_name()) : toString(handle.operator_name());
  const OpRow* row = find_op_row(name);
  why_eager = why_not_traced(recorded, row);
  if (why_eager) {
    kind = OpKind::kEager;
    recorded.reset();
  } else {
    structured = kind != OpKind::kWriting && is_structured(*recorded);
  }
  id = intern_op(name);
  flags = row ? row->flags : 0;
  returns = returned_arguments(schema);
  if (kind == OpKind::kOut) out_count = outs;
  for (size_t i = 0; i < arguments.size() - out_count; ++i) args.push_back(describe(arguments[i], row));
}

namespace {

OpEntry& find_entry(const c10::OperatorHandle& handle, bool as_writing) {
  struct Table {
    std::mutex mutex;
    std::unordered_map<const c10::FunctionSchema*, std::unique_ptr<OpEntry>> entries[2];
  };
  static auto* table = new Table();
  std::lock_guard lock(table->mutex);
  auto& entry = table->entries[as_writing][&handle.schema()];
  if (!entry) entry = std::make_unique<OpEntry>(handle, as_writing);
  return *entry;
}

}  // namespace

OpEntry& OpEntry::of(const c10::OperatorHandle& handle) { return find_entry(handle, false); }

OpEntry& OpEntry::named(std::string_view name) {
  const size_t dot = std::min(name.find('.'), name.size());
  const std::string base = "aten::" + std::string(name.substr(0, dot));
  const std::string overload(name.substr(std::min(dot + 1, name.size())));
  return of(c10::Dispatcher::singleton().findSchemaOrThrow(base.c_str(), overload.c_str()));
}

OpEntry& OpEntry::writing(const c10::OperatorHandle& handle) { return find_entry(handle, true); }

c10::SmallVector<at::Tensor, 2> written_tensors(const OpEntry& entry, const c10::IValue* args) {
  c10::SmallVector<at::Tensor, 2> tensors;
  const auto add = [&](const at::Tensor& tensor) {
    if (tensor.defined()) tensors.push_back(tensor);
  };
  for (size_t i = 0; i < entry.args.size() + entry.out_count; ++i) {
    if (i < entry.args.size() && !entry.args[i].written) continue;
    if (args[i].isTensor()) {
      add(args[i].toTensor());
    } else if (args[i].isTensorList()) {
      for (const at::Tensor& tensor : args[i].toTensorVector()) add(tensor);
    }
  }
  return tensors;
}

}  // namespace ltc
