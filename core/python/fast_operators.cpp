#include "core/python/fast_operators.h"

#include <torch/csrc/autograd/python_variable.h>

#include "core/base/env.h"
#include "core/python/methods.h"
#include "core/torch/dispatch/hot_ops.h"
#include "core/torch/tensor/tensor.h"

namespace ltc {
namespace {

PyTypeObject* g_tensor_type = nullptr;  // torch.Tensor: subclasses may have their own ideas

// None for what is no plain number.
Number number_of(PyObject* object) {
  if (PyFloat_CheckExact(object)) return to_number(PyFloat_AS_DOUBLE(object));
  if (!PyLong_CheckExact(object)) return {};
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
  return overflow ? Number() : to_number(static_cast<int64_t>(value));
}

// Undefined if PyTorch has to do it.
at::Tensor record(Operator op, PyObject* self, PyObject* other) {
  if (Py_TYPE(self) != g_tensor_type) return {};
  const at::Tensor& tensor = THPVariable_Unpack(self);
  if (!is_lazy(tensor)) return {};
  if (Py_TYPE(other) == g_tensor_type) return record_operator(op, tensor, THPVariable_Unpack(other));
  const Number number = number_of(other);
  return number.dtype == DType::kNone ? at::Tensor() : record_operator(op, tensor, number);
}

// A method of torch.Tensor that stands for an operator.
template <Operator kOp, bool kReflected>
struct Method {
  static inline vectorcallfunc original = nullptr;

  static PyObject* call(PyObject* method, PyObject* const* args, size_t count, PyObject* keywords) {
    if (PyVectorcall_NARGS(count) == 2 && !keywords) {
      at::Tensor result;
      try {
        result = record(kOp, args[0], args[1]);
      } catch (pybind11::error_already_set& signal) {  // of a handler that ran in a wait
        signal.restore();
        return nullptr;
      } catch (const std::exception&) {  // PyTorch meets it too, and says it in its own way
      }
      if (result.defined()) return THPVariable_Wrap(std::move(result));
    }
    return original(method, args, count, keywords);
  }

  // Both operands of a reflected method may change places, or there is no such method here.
  static void install(const char* name) {
    static_assert(!kReflected || kOp == Operator::kAdd || kOp == Operator::kMul);
    original = replace_method(name, &call);
  }
};

}  // namespace

void make_operators_fast() {
  if (g_tensor_type || !env::is_set(env::kFastOperators)) return;
  g_tensor_type = reinterpret_cast<PyTypeObject*>(THPVariableClass);
  Method<Operator::kAdd, false>::install("__add__");
  Method<Operator::kAdd, true>::install("__radd__");
  Method<Operator::kSub, false>::install("__sub__");
  Method<Operator::kMul, false>::install("__mul__");
  Method<Operator::kMul, true>::install("__rmul__");
  Method<Operator::kDiv, false>::install("__truediv__");
}

}  // namespace ltc
