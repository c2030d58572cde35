#include "core/python/device_type.h"

#include <torch/csrc/Device.h>

#include "core/torch/tensor/tensor.h"

namespace ltc {
namespace {

PyGetSetDef g_attribute = {};
getter g_getter = nullptr;
PyObject* g_type = nullptr;

PyObject* type_of_device(PyObject* device, void* closure) {
  if (reinterpret_cast<THPDevice*>(device)->device.type() == kLtc) return Py_NewRef(g_type);
  return g_getter(device, closure);
}

}  // namespace

void make_device_type_fast() {
  PyObject* const found = PyObject_GetAttrString(reinterpret_cast<PyObject*>(&THPDeviceType), "type");  // kept for ever
  if (g_type || !found || !Py_IS_TYPE(found, &PyGetSetDescr_Type)) return PyErr_Clear();
  auto& descriptor = *reinterpret_cast<PyGetSetDescrObject*>(found);
  g_type = PyUnicode_InternFromString(kDeviceName);
  if (!g_type) return PyErr_Clear();
  g_attribute = *descriptor.d_getset;
  g_getter = std::exchange(g_attribute.get, &type_of_device);
  descriptor.d_getset = &g_attribute;
}

}  // namespace ltc
