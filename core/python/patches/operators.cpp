// The operators + - * / of torch.Tensor. Between plain tensors of the device, or one and a number, they are recorded without
// PyTorch's dispatcher. Everything else runs PyTorch's method: tensors of other devices, subclasses, modes, transforms, errors.
#include <torch/csrc/autograd/python_variable.h>

#include <algorithm>

#include "core/python/patches/native.h"
#include "core/torch/dispatch/hot_ops.h"
#include "core/torch/tensor/tensor.h"

namespace ltc {
namespace {

PyTypeObject* g_tensor_type = nullptr;  // torch.Tensor: a subclass may define the operator anew

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

// A method of torch.Tensor that stands for an operator. A reflected one changes the places of its operands.
template <Operator kOp, bool kReflected>
struct Method {
  static_assert(!kReflected || kOp == Operator::kAdd || kOp == Operator::kMul, "the op must be commutative");
  static inline Slot<vectorcallfunc> slot;

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
    return slot.original()(method, args, count, keywords);
  }

  static bool install(const char* name) { return slot.install(call_of_tensor_method(name), &call); }
  static bool is_there() { return slot.is_there(); }
  static bool uninstall() { return slot.uninstall(); }
};

struct Row {
  const char* method;
  bool (*install)(const char* method);
  bool (*is_there)();
  bool (*uninstall)();
};

template <Operator kOp, bool kReflected = false>
constexpr Row row(const char* method) {
  using This = Method<kOp, kReflected>;
  return {method, &This::install, &This::is_there, &This::uninstall};
}

constexpr Row kRows[] = {row<Operator::kAdd>("__add__"),        row<Operator::kAdd, true>("__radd__"),
                         row<Operator::kSub>("__sub__"),        row<Operator::kMul>("__mul__"),
                         row<Operator::kMul, true>("__rmul__"), row<Operator::kDiv>("__truediv__")};

bool uninstall_operators() {
  if (!std::ranges::all_of(kRows, [](const Row& row) { return row.is_there(); })) return false;
  for (const Row& row : kRows) row.uninstall();
  return true;
}

bool install_operators() {
  g_tensor_type = reinterpret_cast<PyTypeObject*>(THPVariableClass);
  for (const Row& row : kRows) {
    if (row.install(row.method)) continue;
    for (const Row& other : kRows) other.uninstall();  // those before this one
    return false;
  }
  return true;
}

}  // namespace

const NativePatch kOperators{"operators", &install_operators, &uninstall_operators};

}  // namespace ltc
