// The labels that a profiler is to see: torch.profiler.record_function, which every optimizer puts around its steps.
#pragma once

#include <Python.h>

namespace ltc {

// A label that nobody sees costs PyTorch two calls through its interpreter of schemas, and an object of TorchScript's that holds
// nothing. From now on all of them get the same such object at once. `enter` and `exit` are the functions behind the ops
// profiler::_record_function_enter_new and _record_function_exit; they stay the objects that they are. With a profiler, a mode,
// a transform or a tracer, and with other arguments than record_function's, they do what they did before.
//
// Nothing if somebody watches right now, or with a PyTorch whose labels are not known here. Once per process; needs the GIL.
void make_labels_fast(PyObject* enter, PyObject* exit);

}  // namespace ltc
