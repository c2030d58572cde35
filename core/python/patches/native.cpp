#include "core/python/patches/native.h"

#include <torch/csrc/autograd/python_variable.h>

namespace ltc {

std::span<const NativePatch* const> native_patches() {
  static constexpr const NativePatch* kAll[] = {&kDealloc, &kTensorTo, &kDeviceType, &kRecordFunction, &kOperators};
  return kAll;
}

vectorcallfunc* call_of_tensor_method(const char* name) {
  PyObject* const method = PyObject_GetAttrString(THPVariableClass, name);  // kept for ever
  if (!method || !Py_IS_TYPE(method, &PyMethodDescr_Type)) return PyErr_Clear(), nullptr;
  return &reinterpret_cast<PyMethodDescrObject*>(method)->vectorcall;
}

}  // namespace ltc
