#include "core/python/captures.h"

#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/python_variable.h>

#include <algorithm>

#include "core/python/source_lines.h"
#include "core/run/device/device_table.h"
#include "core/torch/tensor/current_device.h"
#include "core/torch/tensor/tensor.h"

namespace py = pybind11;

namespace ltc {
namespace {

constexpr size_t kMostVariants = 128;

// A number of exactly one of these types: a subclass may mean something else.
std::optional<NumberOperand> number_of(py::handle value) {
  if (PyFloat_CheckExact(value.ptr())) return NumberOperand::of(PyFloat_AS_DOUBLE(value.ptr()));
  if (!PyLong_CheckExact(value.ptr())) return std::nullopt;
  int overflow = 0;
  const int64_t integer = PyLong_AsLongLongAndOverflow(value.ptr(), &overflow);
  return overflow ? std::nullopt : std::optional(NumberOperand::of(integer));
}

// The items of a list or a tuple.
std::span<PyObject* const> items(const py::object& sequence) {
  return {PySequence_Fast_ITEMS(sequence.ptr()), static_cast<size_t>(PySequence_Fast_GET_SIZE(sequence.ptr()))};
}

// A C function that is called with the arguments one by one: `otherwise`, called with a list of them, where such a call was not
// captured yet. It holds `otherwise` where no collector of garbage looks, so that one must not hold the function.
py::cpp_function entry(const py::object& captures, py::object otherwise) {
  return [self = &captures.cast<Captures&>(), alive = captures, otherwise = std::move(otherwise)](const py::args& args) {
    py::object results = self->call(items(args));
    return results.is_none() ? otherwise(py::list(args)) : results;
  };
}

constexpr int kWantsGradient = -1, kSeveralDevices = -2;

// Where a function of these values computes: the ordinal of the one device that they are on, if they are on any; or one of the
// above.
int place_of_call(const py::list& values) {
  std::optional<c10::DeviceIndex> device;
  for (PyObject* const value : items(values)) {
    if (!THPVariable_Check(value)) continue;
    const at::Tensor& tensor = THPVariable_Unpack(value);
    if (tensor.requires_grad() && at::GradMode::is_enabled()) return kWantsGradient;
    if (!is_lazy(tensor)) continue;
    if (device.value_or(tensor.device().index()) != tensor.device().index()) return kSeveralDevices;
    device = tensor.device().index();
  }
  return device.value_or(current_device());
}

// Settings of the thread that change the ops that the same calls record.
int recording_modes() {
  const auto autocast = static_cast<int>(at::autocast::get_autocast_dtype(kLtc)) * 2 + at::autocast::is_autocast_enabled(kLtc);
  return autocast << 8 | static_cast<int>(c10::get_default_dtype_as_scalartype());
}

TensorArguments arguments(int device, std::vector<at::Tensor> tensors) {
  return TensorArguments(DeviceTable::instance().get(static_cast<uint32_t>(device)), std::move(tensors));
}

}  // namespace

Captures::Arguments Captures::sort(std::span<PyObject* const> values) {
  Arguments sorted;
  sorted.tensors.reserve(values.size());
  sorted.slots.reserve(values.size());
  for (const py::handle value : values) {
    if (THPVariable_Check(value.ptr())) {
      sorted.tensors.push_back(THPVariable_Unpack(value.ptr()));
      sorted.slots.push_back({Slot::kTensor, {}});
    } else if (const auto number = number_of(value)) {
      sorted.numbers.push_back(*number);
      sorted.slots.push_back({Slot::kNumber, {}});
    } else {
      sorted.slots.push_back({Slot::kOther, py::reinterpret_borrow<py::object>(value)});
    }
  }
  return sorted;
}

// A number that the function returns is what it returned.
Captures::Arguments Captures::sort_results(const py::list& values) {
  Arguments sorted = sort(items(values));
  for (size_t i = 0; i < values.size(); ++i) {
    if (sorted.slots[i].kind == Slot::kNumber) sorted.slots[i] = {Slot::kOther, values[i]};
  }
  return sorted;
}

// 1 is not True and not 1.0: the function may ask.
bool Captures::equal(const std::vector<Slot>& a, const std::vector<Slot>& b) {
  return std::ranges::equal(a, b, [](const Slot& one, const Slot& two) {
    if (one.kind != two.kind) return false;
    if (one.other.ptr() == two.other.ptr()) return true;
    return Py_TYPE(one.other.ptr()) == Py_TYPE(two.other.ptr()) && one.other.equal(two.other);
  });
}

py::list Captures::give(const std::vector<Slot>& results, std::vector<at::Tensor> tensors) {
  py::list list(results.size());
  size_t next = 0;
  for (size_t i = 0; i < results.size(); ++i) {
    const Slot& result = results[i];
    PyObject* item = result.kind == Slot::kTensor ? THPVariable_Wrap(std::move(tensors[next++])) : result.other.inc_ref().ptr();
    PyList_SET_ITEM(list.ptr(), static_cast<Py_ssize_t>(i), item);
  }
  return list;
}

py::object Captures::call(std::span<PyObject* const> args) {
  Arguments sorted = sort(args);
  if (t_capture) return py::none();
  const TensorArguments given = arguments(device_, std::move(sorted.tensors));
  const auto variants = variants_;
  for (const auto& variant : *variants) {
    if (!equal(variant->args, sorted.slots) || !variant->function->fits(given)) continue;
    auto scalars = variant->numbers.scalars(sorted.numbers);
    if (!scalars) continue;
    std::vector<at::Tensor> results;
    {
      py::gil_scoped_release released;
      results = variant->function->call(given, *std::move(scalars));
    }
    return give(variant->results, std::move(results));
  }
  return py::none();
}

py::list Captures::begin(const py::list& args) {
  opened_ = sort(items(args));
  open_ = std::make_unique<FunctionCapture>(arguments(device_, std::move(opened_.tensors)));
  py::list list(args.size());
  size_t next = 0;
  for (size_t i = 0; i < args.size(); ++i) {
    const bool is_tensor = opened_.slots[i].kind == Slot::kTensor;
    PyObject* item = is_tensor ? THPVariable_Wrap(open_->placeholders()[next++]) : py::object(args[i]).release().ptr();
    PyList_SET_ITEM(list.ptr(), static_cast<Py_ssize_t>(i), item);
  }
  return list;
}

py::list Captures::finish(const py::list& results, const std::vector<size_t>& fixed) {
  Arguments sorted = sort_results(results);
  for (const at::Tensor& tensor : sorted.tensors) {
    TORCH_CHECK(!tensor.requires_grad(), "a result needs a gradient, but what was captured has none");
  }
  std::vector<bool> is_fixed;
  for (size_t i = 0; i < opened_.slots.size(); ++i) {
    if (opened_.slots[i].kind == Slot::kNumber) is_fixed.push_back(std::ranges::find(fixed, i) != fixed.end());
  }
  std::shared_ptr<const CapturedFunction> function;
  std::vector<at::Tensor> given;
  {
    py::gil_scoped_release released;
    std::tie(function, given) = open_->finish(sorted.tensors);
  }
  open_.reset();
  NumberOperands numbers(function->captured(), std::move(opened_.numbers), std::move(is_fixed));
  add({std::move(function), std::move(opened_.slots), sorted.slots, std::move(numbers)});
  return give(sorted.slots, std::move(given));
}

// A variant that differs in numbers only and the new one become one that takes any.
void Captures::add(Variant variant) {
  auto variants = std::make_shared<Variants>(*variants_);
  const auto merges = [&](const std::shared_ptr<const Variant>& known) {
    if (!equal(known->args, variant.args) || !equal(known->results, variant.results)) return false;
    if (!known->function->computes_like(*variant.function)) return false;
    auto both = known->numbers.merged(variant.numbers);
    if (both) variant.numbers = *std::move(both);
    return both.has_value();
  };
  if (const auto known = std::ranges::find_if(*variants, merges); known != variants->end()) variants->erase(known);
  variants->insert(variants->begin(), std::make_shared<const Variant>(std::move(variant)));
  if (variants->size() > kMostVariants) variants->pop_back();
  variants_ = std::move(variants);
}

std::string Captures::refusal() const { return open_ ? open_->refusal() : ""; }

std::string Captures::abandon() {
  const std::string why = refusal();
  open_.reset();
  opened_ = {};
  return why;
}

void bind_captures(py::module_& m) {
  py::class_<Captures>(m, "Captures")
      .def(py::init<int>())
      .def("call", [](Captures& captures, const py::list& args) { return captures.call(items(args)); })
      .def("entry", [](const py::object& captures, py::object otherwise) { return entry(captures, std::move(otherwise)); })
      .def("begin", &Captures::begin)
      .def("finish", &Captures::finish)
      .def("refusal", &Captures::refusal)
      .def("abandon", &Captures::abandon)
      .def("__len__", &Captures::size);
  m.attr("WANTS_GRADIENT") = kWantsGradient;
  m.attr("SEVERAL_DEVICES") = kSeveralDevices;
  m.def("place_of_call", &place_of_call);
  m.def("recording_modes", &recording_modes);
  m.def("is_capturing", [] { return t_capture != nullptr; });
  m.def("set_known_line", [](const std::string& line) { set_known_line(line); });
}

}  // namespace ltc
