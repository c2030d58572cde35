#include "core/python/methods.h"

#include <torch/csrc/autograd/python_variable.h>

#include <utility>

namespace ltc {

vectorcallfunc replace_method(const char* name, vectorcallfunc call) {
  PyObject* const method = PyObject_GetAttrString(THPVariableClass, name);  // kept for ever
  if (!method || !Py_IS_TYPE(method, &PyMethodDescr_Type)) return PyErr_Clear(), nullptr;
  return std::exchange(reinterpret_cast<PyMethodDescrObject*>(method)->vectorcall, call);
}

}  // namespace ltc
