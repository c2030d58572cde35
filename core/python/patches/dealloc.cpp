// How Python's objects of tensors are released. PyTorch gives up the interpreter's lock around the release of every tensor, since
// some memory takes long to release. The release of a tensor that is only recorded takes less time than that and keeps the lock.
// All other tensors go PyTorch's way: of other devices, with memory, hooks or gradients of their own, or shared with C++.
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/autograd/variable.h>

#include "core/python/patches/native.h"
#include "core/torch/tensor/tensor.h"

namespace ltc {
namespace {

Slot<destructor> g_dealloc;

// Whether the tensor's release ends nothing of autograd's: no gradient, no hooks, no node that only it holds.
bool is_free_of_autograd(const c10::TensorImpl& tensor) {
  const auto* meta = static_cast<const torch::autograd::AutogradMeta*>(tensor.autograd_meta());
  if (!meta) return true;
  return meta->grad_fn_ && meta->grad_fn_.use_count() > 1 && !meta->grad_.defined() && !meta->is_view_ && !meta->fw_grad_ &&
         meta->hooks_.empty() && !meta->cpp_hooks_list_ && !meta->retains_grad_;
}

// Whether releasing the object's tensor waits for nothing and calls nobody.
bool is_only_recorded(const THPVariable& object) {
  if (object.backward_hooks || object.post_accumulate_grad_hooks || object.cdata.use_count() != 1) return false;
  const c10::TensorImpl& tensor = *object.cdata.unsafeGetTensorImpl();
  return tensor.pyobj_slot()->load_pyobj() == reinterpret_cast<const PyObject*>(&object) && is_free_of_autograd(tensor) &&
         forget_record(tensor);
}

// tp_dealloc of torch.Tensor's base, which those of its subclasses end with.
void dealloc(PyObject* self) {
  auto& object = *reinterpret_cast<THPVariable*>(self);
  if (!is_only_recorded(object)) return g_dealloc.original()(self);
  PyObject_GC_UnTrack(self);
  object.cdata.~Tensor();
  Py_TYPE(self)->tp_free(self);
}

bool install_dealloc() {
#ifdef Py_GIL_DISABLED
  return false;
#else
  PyTypeObject* const base = reinterpret_cast<PyTypeObject*>(THPVariableClass)->tp_base;
  return base->tp_basicsize == sizeof(THPVariable) && g_dealloc.install(&base->tp_dealloc, &dealloc);
#endif
}

}  // namespace

const NativePatch kDealloc{"dealloc", &install_dealloc, [] { return g_dealloc.uninstall(); }};

}  // namespace ltc
