#include "core/python/labels.h"

#include <torch/csrc/autograd/record_function_ops.h>
#include <torch/csrc/jit/api/object.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/version.h>

#include "core/torch/tensor/thread_state.h"

namespace ltc {
namespace {

namespace py = pybind11;
using torch::autograd::profiler::PythonRecordFunction;

// Of these two ops, PyTorch 2.13 does nothing for a label without callbacks but make the object.
constexpr bool kKnowsLabels = TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR == 13;

vectorcallfunc g_enter = nullptr, g_exit = nullptr;
// What `enter` returns where there are no callbacks. It has nothing to say at the label's end either.
PyObject* g_unseen = nullptr;

// Of others PyTorch may say that they are no text.
bool is_text(PyObject* object) { return PyUnicode_CheckExact(object) && PyUnicode_IS_COMPACT_ASCII(object); }

PyObject* begin_label(PyObject* function, PyObject* const* args, size_t count, PyObject* keywords) {
  const bool is_usual =
      PyVectorcall_NARGS(count) == 2 && !keywords && is_text(args[0]) && (args[1] == Py_None || is_text(args[1]));
  return is_usual && is_unwatched() ? Py_NewRef(g_unseen) : g_enter(function, args, count, keywords);
}

PyObject* end_label(PyObject* function, PyObject* const* args, size_t count, PyObject* keywords) {
  if (PyVectorcall_NARGS(count) == 1 && !keywords && args[0] == g_unseen && is_unwatched()) Py_RETURN_NONE;
  return g_exit(function, args, count, keywords);
}

bool is_unseen(const py::object& record) {
  const c10::IValue value(py::cast<torch::jit::Object>(record)._ivalue());
  return !value.toCustomClass<PythonRecordFunction>()->record.isActive();
}

vectorcallfunc& call_of(PyObject* function) { return reinterpret_cast<PyCFunctionObject*>(function)->vectorcall; }
bool is_function(PyObject* object) { return Py_IS_TYPE(object, &PyCFunction_Type) && call_of(object); }

}  // namespace

void make_labels_fast(PyObject* enter_op, PyObject* exit_op) {
  if (!kKnowsLabels || g_unseen || !is_function(enter_op) || !is_function(exit_op) || !is_unwatched()) return;
  py::object record = py::handle(enter_op)("", py::none());
  if (!is_unseen(record)) return;  // a profiler has begun in another thread
  g_unseen = record.release().ptr();
  g_enter = std::exchange(call_of(enter_op), &begin_label);
  g_exit = std::exchange(call_of(exit_op), &end_label);
}

}  // namespace ltc
