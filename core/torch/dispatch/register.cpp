#include "core/torch/dispatch/register.h"

#include <torch/library.h>

#include <algorithm>
#include <deque>

#include "core/torch/dispatch/boxed_kernel.h"
#include "core/torch/dispatch/own_ops.h"
#include "core/torch/dispatch/sparse_fallback.h"
#include "core/torch/tensor/tensor.h"

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

// Ops with a kernel of their own are left alone. An op with such a composite kernel would be taken apart into its .out form
// before a fallback sees it; an op that the table wants whole has a composite kernel too, and where the CPU has a kernel beside
// it, the two differ in rounding, or in speed. All others come through the fallback below.
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

void add_recorders(torch::Library& m) {
  for (const c10::OperatorHandle& op : own_ops()) {
    if (!needs_own_kernel(op)) continue;
    m.impl(toString(op.operator_name()).c_str(), torch::CppFunction::makeFromBoxedFunctor(std::make_unique<BoxedKernel>(op)));
  }
}

// Sparse tensors: what has no kernel of its own, the CPU runs. PyTorch's composite kernels come before the
// fallback, and those of the CPU for sparse tensors come before the composite ones.
void add_host_steps(torch::Library& m, c10::DispatchKey on_device, c10::DispatchKey on_cpu) {
  for (const c10::OperatorHandle& op : own_ops()) {
    if (!op.hasKernelForDispatchKey(on_cpu) || op.hasKernelForDispatchKey(on_device)) continue;
    m.impl(toString(op.operator_name()).c_str(), torch::CppFunction::makeFromBoxedFunction<&run_sparse_on_host>());
  }
}

torch::Library& library(const char* ns, c10::DispatchKey key) {
  static auto* all = new std::deque<torch::Library>();  // registrations last as long as the process
  return all->emplace_back(torch::Library::IMPL, ns, key, __FILE__, __LINE__);
}

}  // namespace

void register_all_ops() {
  using Key = c10::DispatchKey;
  add_recorders(library("aten", Key::PrivateUse1));
  add_host_steps(library("aten", Key::SparsePrivateUse1), Key::SparsePrivateUse1, Key::SparseCPU);
  add_host_steps(library("aten", Key::SparseCsrPrivateUse1), Key::SparseCsrPrivateUse1, Key::SparseCsrCPU);
  for (const Key key : {Key::SparsePrivateUse1, Key::SparseCsrPrivateUse1})
    library("_", key).fallback(torch::CppFunction::makeFromBoxedFunction<&run_sparse_on_host>());
  library("_", Key::PrivateUse1).fallback(torch::CppFunction::makeFromBoxedFunction<&record_any>());
}

}  // namespace ltc
