#include "core/python/patches/run_backward.h"

#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/python_variable.h>

#include "core/torch/autograd/backward_engine.h"
#include "core/torch/tensor/tensor.h"

namespace ltc {
namespace {

struct Roots {
  std::vector<torch::autograd::Edge> edges;
  torch::autograd::variable_list gradients;
};

// Null for a subclass too: PyTorch may have to look at it.
const at::Tensor* plain_tensor(PyObject* object) {
  if (Py_TYPE(object) != reinterpret_cast<PyTypeObject*>(THPVariableClass)) return nullptr;
  const at::Tensor& tensor = THPVariable_Unpack(object);
  return tensor.defined() && is_lazy(tensor) ? &tensor : nullptr;
}

// False where PyTorch has to look at them.
bool read_roots(PyObject* tensors, PyObject* gradients, Roots& roots) {
  if (!PyTuple_CheckExact(tensors) || !PyTuple_CheckExact(gradients)) return false;
  const Py_ssize_t count = PyTuple_GET_SIZE(tensors);
  if (count == 0 || count != PyTuple_GET_SIZE(gradients)) return false;
  for (Py_ssize_t i = 0; i < count; ++i) {
    const at::Tensor* tensor = plain_tensor(PyTuple_GET_ITEM(tensors, i));
    const at::Tensor* gradient = plain_tensor(PyTuple_GET_ITEM(gradients, i));
    if (!tensor || !gradient || !tensor->requires_grad()) return false;
    roots.edges.push_back(torch::autograd::impl::gradient_edge(*tensor));
    roots.gradients.push_back(*gradient);
  }
  return true;
}

bool is_bool(PyObject* object) { return PyBool_Check(object); }

// run_backward(tensors, gradients, keep_graph, create_graph, (), allow_unreachable=True, accumulate_grad=True), as backward()
// calls it. grad() and backward(inputs=...) ask for more.
bool takes_fast_path(PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
  if (count != 5 || !keywords || PyTuple_GET_SIZE(keywords) != 2) return false;
  const auto is_true = [&](Py_ssize_t i, const char* name) {
    return args[count + i] == Py_True && !PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(keywords, i), name);
  };
  return is_bool(args[2]) && is_bool(args[3]) && PyTuple_CheckExact(args[4]) && PyTuple_GET_SIZE(args[4]) == 0 &&
         is_true(0, "allow_unreachable") && is_true(1, "accumulate_grad");
}

PyObject* run(PyObject* original, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
  HANDLE_TH_ERRORS
  Roots roots;
  if (!takes_fast_path(args, count, keywords) || !nothing_intercepts_backward() || !read_roots(args[0], args[1], roots))
    return PyObject_Vectorcall(original, args, static_cast<size_t>(count), keywords);
  {
    pybind11::gil_scoped_release released;
    run_backward(roots.edges, roots.gradients, args[2] == Py_True, args[3] == Py_True);
  }
  Py_RETURN_NONE;
  END_HANDLE_TH_ERRORS
}

}  // namespace

PyObject* around_run_backward(PyObject* run_backward) {
  static PyMethodDef method = {"run_backward", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&run)),
                               METH_FASTCALL | METH_KEYWORDS, nullptr};
  return PyCFunction_New(&method, run_backward);
}

}  // namespace ltc
