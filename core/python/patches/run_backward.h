// tensor.backward() of tensors of the device.
#pragma once

#include <Python.h>

namespace ltc {

// A function that stands for `run_backward`, of torch.autograd's engine: takes the calls of backward() for tensors of the device
// where nothing unusual is asked for, and hands all others on. A new reference; null with an error set. Needs the GIL.
PyObject* around_run_backward(PyObject* run_backward);

}  // namespace ltc
