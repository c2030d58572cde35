// tensor.to("ltc"). A small tensor of the CPU, moved to a device of ours with no further argument, is uploaded without PyTorch's
// dispatcher. Everything else runs PyTorch's method: subclasses, modes, gradients, other memory formats, errors.
#include <torch/csrc/Device.h>
#include <torch/csrc/autograd/python_variable.h>

#include "core/python/patches/native.h"
#include "core/torch/tensor/transfer.h"

namespace ltc {
namespace {

Slot<vectorcallfunc> g_tensor_to;

std::optional<c10::Device> device_of_ours(PyObject* object) {
  if (THPDevice_Check(object)) {
    const c10::Device device = reinterpret_cast<THPDevice*>(object)->device;
    return device.type() == kLtc ? std::optional(device) : std::nullopt;
  }
  const bool is_name = PyUnicode_CheckExact(object) && PyUnicode_CompareWithASCIIString(object, kDeviceName) == 0;
  return is_name ? std::optional(c10::Device(kLtc)) : std::nullopt;
}

PyObject* to(PyObject* method, PyObject* const* args, size_t count, PyObject* keywords) {
  if (PyVectorcall_NARGS(count) == 2 && !keywords && Py_TYPE(args[0]) == reinterpret_cast<PyTypeObject*>(THPVariableClass)) {
    at::Tensor uploaded;
    if (const std::optional<c10::Device> device = device_of_ours(args[1])) {
      try {
        uploaded = try_fast_upload(THPVariable_Unpack(args[0]), *device);
      } catch (const std::exception&) {  // PyTorch meets it too, and says it in its own way
      }
    }
    if (uploaded.defined()) return THPVariable_Wrap(std::move(uploaded));
  }
  return g_tensor_to.original()(method, args, count, keywords);
}

}  // namespace

const NativePatch kTensorTo{"tensor_to", [] { return g_tensor_to.install(call_of_tensor_method("to"), &to); },
                            [] { return g_tensor_to.uninstall(); }};

}  // namespace ltc
