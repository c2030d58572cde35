// The attribute `type` of torch.device. PyTorch writes the name to a stream at each read, and an optimizer reads it for every
// parameter at each step. Devices of ours give one string instead.
#include <torch/csrc/Device.h>

#include "core/python/patches/native.h"
#include "core/torch/tensor/tensor.h"

namespace ltc {
namespace {

Slot<PyGetSetDef*> g_device_type;
PyGetSetDef g_attribute = {};
PyObject* g_name = nullptr;

PyObject* type_of_device(PyObject* device, void* closure) {
  if (reinterpret_cast<THPDevice*>(device)->device.type() == kLtc) return Py_NewRef(g_name);
  return g_device_type.original()->get(device, closure);
}

bool install_device_type() {
  PyObject* const found = PyObject_GetAttrString(reinterpret_cast<PyObject*>(&THPDeviceType), "type");  // kept for ever
  if (!g_name) g_name = PyUnicode_InternFromString(kDeviceName);
  if (!g_name || !found || !Py_IS_TYPE(found, &PyGetSetDescr_Type)) return PyErr_Clear(), false;
  PyGetSetDef*& place = reinterpret_cast<PyGetSetDescrObject*>(found)->d_getset;
  g_attribute = *place;
  g_attribute.get = &type_of_device;
  return g_device_type.install(&place, &g_attribute);
}

}  // namespace

const NativePatch kDeviceType{"device_type", &install_device_type, [] { return g_device_type.uninstall(); }};

}  // namespace ltc
