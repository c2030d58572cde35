// The boxed recorder for all ops, those of other libraries included.
#include <torch/library.h>

#include <algorithm>

#include "core/torch/record.h"
#include "core/torch/tensor.h"

namespace ltc {
namespace {

bool is_view(const c10::FunctionSchema& schema) {
  for (const c10::Argument& arg : schema.arguments()) {
    if (arg.alias_info() && !arg.alias_info()->isWrite()) return true;
  }
  return false;
}

// Their composite kernels ask for a tensor of the CPU or of CUDA, or tell the output from the operand by the address of its
// handle.
constexpr std::string_view kWithoutComposite[] = {"aten::mode.values", "aten::conj_physical_", "aten::addr_"};

// Ops with a kernel of their own (the files before this one in the build: static objects are made in link order) are left alone.
// An op with such a composite kernel would be taken apart into its .out form before a fallback sees it; an op that the table
// wants whole has a composite kernel too, and where the CPU has a kernel beside it, the two differ in rounding, or in speed. All
// others come through the fallback below.
bool needs_own_kernel(const c10::OperatorHandle& op) {
  if (op.hasKernelForDispatchKey(c10::DispatchKey::PrivateUse1) || is_view(op.schema())) return false;
  if (op.hasTag(at::Tag::inplace_view)) return false;  // changes what the tensor looks at, computes nothing
  if (op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutogradNonFunctional)) return true;
  const bool has_composite = op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd) ||
                             op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd);
  if (has_composite && op.hasKernelForDispatchKey(c10::DispatchKey::CPU)) return true;
  const std::string name = toString(op.operator_name());
  if (std::ranges::find(kWithoutComposite, name) != std::end(kWithoutComposite)) return true;
  const OpRow* row = find_op_row(name);
  return row && row->flags & kKeepWhole;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    if (!name.name.starts_with("aten::")) continue;
    const auto op = dispatcher.findSchema(name);
    if (!op || !needs_own_kernel(*op)) continue;
    m.impl(toString(name).c_str(), torch::CppFunction::makeFromBoxedFunctor(std::make_unique<BoxedKernel>(*op)));
  }
}

void refuse_sparse(const c10::OperatorHandle& op, torch::jit::Stack*) {
  TORCH_CHECK(false, "device ", kDeviceName, " has strided tensors only, and ", op.operator_name(), " is for a sparse one");
}
TORCH_LIBRARY_IMPL(_, SparsePrivateUse1, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&refuse_sparse>()); }
TORCH_LIBRARY_IMPL(_, SparseCsrPrivateUse1, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&refuse_sparse>()); }

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&record_any>()); }

}  // namespace
}  // namespace ltc
