#include "core/torch/op_entry.h"

#include <algorithm>
#include <mutex>
#include <unordered_map>

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

Arg describe(const c10::Argument& arg, const OpRow* row) {
  Arg result{arg.name(), ArgKind::kConstant, is_dtype(arg.real_type()), {}};
  if (arg.default_value()) result.default_value = *arg.default_value();
  if (is_tensor_like(arg.type())) {
    result.kind = ArgKind::kTensor;
  } else if (is_list_of(arg.type(), is_tensor_like)) {
    result.kind = ArgKind::kTensorList;
  } else if (is_placement(arg.name())) {
    result.kind = ArgKind::kPlacement;
  } else if (is_number(arg.type()) && !(row && row->is_static(arg.name()))) {
    result.kind = ArgKind::kNumber;
  }
  return result;
}

bool returns_tensors(const c10::FunctionSchema& schema) {
  const auto& returns = schema.returns();
  return !returns.empty() && std::ranges::all_of(returns, [](const c10::Argument& r) { return is_tensor_like(r.type()); });
}

bool aliases(const c10::Argument& arg) { return arg.alias_info() != nullptr; }
bool is_written(const c10::Argument& arg) { return arg.alias_info() && arg.alias_info()->isWrite(); }

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
  auto& dispatcher = c10::Dispatcher::singleton();
  const auto fits = [&](const c10::OperatorHandle& op) {
    const auto& other = op.schema();
    return same_arguments(schema, other, count) && std::ranges::none_of(other.arguments(), aliases) &&
           std::ranges::none_of(other.returns(), aliases) && returns_tensors(other);
  };
  if (auto op = dispatcher.findSchema({name, schema.overload_name()}); op && fits(*op)) return op;
  for (const c10::OperatorName& candidate : dispatcher.getAllOpNames()) {
    if (candidate.name != name) continue;
    if (auto op = dispatcher.findSchema(candidate); op && fits(*op)) return op;
  }
  return std::nullopt;
}

// Whether PyTorch's composite kernel computes the geometry and calls an .out form that backends implement. The other composites
// of that dispatch key compute with further ops; their .out form is a composite itself.
bool is_structured(const c10::OperatorHandle& op) {
  if (!op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutogradNonFunctional)) return false;
  const auto& schema = op.schema();
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName& candidate : dispatcher.getAllOpNames()) {
    if (candidate.name != schema.name()) continue;
    const auto out = dispatcher.findSchema(candidate);
    if (out && out->schema().arguments().back().is_out() && begins_with_arguments(out->schema(), schema)) {
      return !out->hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd);
    }
  }
  return false;
}

// Ops whose results' sizes or presence depend on values, and random ones, cannot be recorded by schema. Null if `op` can.
const char* why_not_traced(const std::optional<c10::OperatorHandle>& op, const OpRow* row) {
  if (!op) return "it has no functional form";
  if (row && row->tier == Tier::kHost) return "the op table keeps it on the host";
  if (!returns_tensors(op->schema())) return "its results are no tensors";
  if (op->hasTag(at::Tag::dynamic_output_shape)) return "the size of its result depends on values";
  if (op->hasTag(at::Tag::data_dependent_output)) return "its result depends on values in a way that cannot be traced";
  if (op->hasTag(at::Tag::nondeterministic_seeded)) return "it is random and has no recipe";
  return nullptr;
}

}  // namespace

OpEntry::OpEntry(const c10::OperatorHandle& handle) : called(handle) {
  const auto& schema = handle.schema();
  const auto& arguments = schema.arguments();
  out_count = std::ranges::count_if(arguments, [](const c10::Argument& arg) { return arg.is_out(); });
  const size_t count = arguments.size() - out_count;

  if (std::ranges::none_of(arguments, aliases)) {
    functional = handle;
    kind = OpKind::kFunctional;
  } else if (out_count > 0 && out_count == schema.returns().size()) {
    functional = find_functional(schema, schema.name(), count);
    kind = OpKind::kOut;
  } else if (schema.name().ends_with('_') && schema.returns().size() == 1 && std::ranges::count_if(arguments, is_written) == 1 &&
             is_written(arguments[0])) {
    functional = find_functional(schema, schema.name().substr(0, schema.name().size() - 1), count);
    kind = OpKind::kInPlace;
  }

  const std::string name = functional ? toString(functional->operator_name()) : toString(handle.operator_name());
  const OpRow* row = find_op_row(name);
  why_eager = why_not_traced(functional, row);
  if (why_eager) {
    kind = OpKind::kEager;
    functional.reset();
  } else {
    structured = is_structured(*functional);
  }
  id = intern_op(name);
  flags = row ? row->flags : 0;
  for (size_t i = 0; i < count; ++i) args.push_back(describe(arguments[i], row));
}

OpEntry& OpEntry::of(const c10::OperatorHandle& handle) {
  struct Table {
    std::mutex mutex;
    std::unordered_map<const c10::FunctionSchema*, std::unique_ptr<OpEntry>> entries;
  };
  static auto* table = new Table();
  std::lock_guard lock(table->mutex);
  auto& entry = table->entries[&handle.schema()];
  if (!entry) entry = std::make_unique<OpEntry>(handle);
  return *entry;
}

}  // namespace ltc
