#include "core/python/release.h"

#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/version.h>

#include "core/torch/tensor/tensor.h"

// PyTorch 2.13's release of an object, of which this one leaves nothing out that a tensor without gradients and hooks needs.
#if TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR == 13 && !defined(Py_GIL_DISABLED)
#define LTC_KNOWS_RELEASE 1
#endif

namespace ltc {

#ifdef LTC_KNOWS_RELEASE

namespace {

destructor g_original = nullptr;

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
void release(PyObject* self) {
  auto& object = *reinterpret_cast<THPVariable*>(self);
  if (!is_only_recorded(object)) return g_original(self);
  PyObject_GC_UnTrack(self);
  object.cdata.~Tensor();
  Py_TYPE(self)->tp_free(self);
}

}  // namespace

void make_releases_fast() {
  PyTypeObject* const base = reinterpret_cast<PyTypeObject*>(THPVariableClass)->tp_base;
  if (g_original || base->tp_basicsize != sizeof(THPVariable)) return;
  g_original = std::exchange(base->tp_dealloc, &release);
}

#else

void make_releases_fast() {}

#endif

}  // namespace ltc
