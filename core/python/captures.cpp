#include "core/python/captures.h"

#include <torch/csrc/autograd/python_variable.h>

#include "core/python/source_lines.h"

namespace py = pybind11;

namespace ltc {
namespace {

constexpr size_t kMostVariants = 128;

// Tensors apart from the rest.
struct Sorted {
  std::vector<at::Tensor> tensors;
  std::vector<py::object> others;  // null where a tensor is
};

Sorted sort(const py::list& values) {
  Sorted sorted;
  sorted.tensors.reserve(values.size());
  sorted.others.reserve(values.size());
  for (const py::handle value : values) {
    if (THPVariable_Check(value.ptr())) {
      sorted.tensors.push_back(THPVariable_Unpack(value.ptr()));
      sorted.others.emplace_back();
    } else {
      sorted.others.push_back(py::reinterpret_borrow<py::object>(value));
    }
  }
  return sorted;
}

// 1 is not True and not 1.0: the function may ask.
bool equal(const std::vector<py::object>& a, const std::vector<py::object>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].ptr() == b[i].ptr()) continue;
    if (!a[i] || !b[i] || Py_TYPE(a[i].ptr()) != Py_TYPE(b[i].ptr()) || !a[i].equal(b[i])) return false;
  }
  return true;
}

TensorArguments arguments(int device, std::vector<at::Tensor> tensors) {
  return TensorArguments(LazyDevice::get(static_cast<uint32_t>(device)), std::move(tensors));
}

}  // namespace

py::list Captures::give(const Variant& variant, std::vector<at::Tensor> tensors) {
  py::list list(variant.results.size());
  size_t next = 0;
  for (size_t i = 0; i < variant.results.size(); ++i) {
    const py::object& result = variant.results[i];
    PyObject* item = result ? result.inc_ref().ptr() : THPVariable_Wrap(std::move(tensors[next++]));
    PyList_SET_ITEM(list.ptr(), static_cast<Py_ssize_t>(i), item);
  }
  return list;
}

py::object Captures::call(const py::list& args) {
  Sorted sorted = sort(args);
  if (t_capture) return py::none();
  const TensorArguments given = arguments(device_, std::move(sorted.tensors));
  for (const Variant& variant : variants_) {
    if (!equal(variant.args, sorted.others) || !variant.function->fits(given)) continue;
    const Variant found = variant;  // another thread may change the list meanwhile
    std::vector<at::Tensor> results;
    {
      py::gil_scoped_release released;
      results = found.function->call(given);
    }
    return give(found, std::move(results));
  }
  return py::none();
}

py::list Captures::begin(const py::list& args) {
  Sorted sorted = sort(args);
  open_ = std::make_unique<FunctionCapture>(arguments(device_, std::move(sorted.tensors)));
  opened_ = {nullptr, std::move(sorted.others), {}};
  std::vector<at::Tensor> stand_ins = open_->stand_ins();
  return give({nullptr, {}, opened_.args}, std::move(stand_ins));
}

py::list Captures::finish(const py::list& results) {
  Sorted sorted = sort(results);
  for (const at::Tensor& tensor : sorted.tensors) {
    TORCH_CHECK(!tensor.requires_grad(), "a result needs a gradient, but what was captured has none");
  }
  std::vector<at::Tensor> given;
  {
    py::gil_scoped_release released;
    std::tie(opened_.function, given) = open_->finish(sorted.tensors);
  }
  open_.reset();
  opened_.results = std::move(sorted.others);
  variants_.push_front(std::move(opened_));
  if (variants_.size() > kMostVariants) variants_.pop_back();
  return give(variants_.front(), std::move(given));
}

std::string Captures::abandon() {
  const std::string refusal = open_ ? open_->refusal() : "";
  open_.reset();
  opened_ = {};
  return refusal;
}

void bind_captures(py::module_& m) {
  py::class_<Captures>(m, "Captures")
      .def(py::init<int>())
      .def("call", &Captures::call)
      .def("begin", &Captures::begin)
      .def("finish", &Captures::finish)
      .def("abandon", &Captures::abandon)
      .def("__len__", &Captures::size);
  m.def("is_capturing", [] { return t_capture != nullptr; });
  m.def("set_known_line", [](const std::string& line) { set_known_line(line); });
}

}  // namespace ltc
