// torch.profiler.record_function, which every optimizer puts around its steps. A label that nobody sees costs PyTorch two calls
// through its interpreter of schemas, and an object that holds nothing. Here all such labels get one object. With a profiler, a
// mode, a transform or a tracer, and with other arguments than record_function's, PyTorch's functions run.
#include <torch/csrc/autograd/record_function_ops.h>
#include <torch/csrc/jit/api/object.h>
#include <torch/csrc/utils/pybind.h>

#include "core/python/patches/native.h"
#include "core/torch/tensor/thread_state.h"

namespace ltc {
namespace {

namespace py = pybind11;
using torch::autograd::profiler::PythonRecordFunction;

Slot<vectorcallfunc> g_enter, g_exit;
// PyTorch's result for a label without callbacks. PyTorch does nothing at such a label's end.
PyObject* g_unseen = nullptr;

// PyTorch may refuse another object as no text.
bool is_text(PyObject* object) { return PyUnicode_CheckExact(object) && PyUnicode_IS_COMPACT_ASCII(object); }

PyObject* enter(PyObject* function, PyObject* const* args, size_t count, PyObject* keywords) {
  const bool takes_fast_path =
      PyVectorcall_NARGS(count) == 2 && !keywords && is_text(args[0]) && (args[1] == Py_None || is_text(args[1]));
  return takes_fast_path && nothing_intercepts() ? Py_NewRef(g_unseen) : g_enter.original()(function, args, count, keywords);
}

PyObject* leave(PyObject* function, PyObject* const* args, size_t count, PyObject* keywords) {
  if (PyVectorcall_NARGS(count) == 1 && !keywords && args[0] == g_unseen && nothing_intercepts()) Py_RETURN_NONE;
  return g_exit.original()(function, args, count, keywords);
}

bool is_unseen(const py::object& record) {
  const c10::IValue value(py::cast<torch::jit::Object>(record)._ivalue());
  return !value.toCustomClass<PythonRecordFunction>()->record.isActive();
}

// Null if the object is no function of C++ that is called by vectorcall.
vectorcallfunc* call_of(const py::object& function) {
  if (!Py_IS_TYPE(function.ptr(), &PyCFunction_Type)) return nullptr;
  vectorcallfunc* const call = &reinterpret_cast<PyCFunctionObject*>(function.ptr())->vectorcall;
  return *call ? call : nullptr;
}

bool install_record_function() try {
  const py::object ops = py::module_::import("torch").attr("ops").attr("profiler");
  py::object enter_op = ops.attr("_record_function_enter_new").attr("_op");
  py::object exit_op = ops.attr("_record_function_exit").attr("_RecordFunction").attr("_op");
  if (!nothing_intercepts() || !call_of(enter_op) || !call_of(exit_op)) return false;
  py::object record = enter_op("", py::none());
  if (!is_unseen(record)) return false;  // a profiler has begun in another thread
  g_unseen = record.release().ptr();
  const bool installed = g_enter.install(call_of(enter_op), &enter) && g_exit.install(call_of(exit_op), &leave);
  enter_op.release(), exit_op.release();  // they keep the functions' objects alive
  return installed;
} catch (const std::exception&) {
  return false;
}

// Labels that are open now may end later: the end of one that nobody sees is nothing with PyTorch's function either.
bool uninstall_record_function() { return g_enter.is_there() && g_exit.is_there() && g_enter.uninstall() && g_exit.uninstall(); }

}  // namespace

const NativePatch kRecordFunction{"record_function", &install_record_function, &uninstall_record_function};

}  // namespace ltc
