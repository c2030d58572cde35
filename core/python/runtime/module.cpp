// The Python module ltc_runtime: archives with NumPy arrays in and out, over ltc/runtime.h. It knows no PyTorch.

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "ltc/runtime.h"

namespace py = pybind11;

namespace {

// NumPy's letters by ltc_dtype; empty where NumPy has no such type.
constexpr const char* kFormats[] = {"",   "?",   "u1", "i1", "i2", "i4", "i8", "f2", "", "f4", "f8",
                                    "c8", "c16", "u2", "u4", "u8", "",   "",   "",   "", "",   ""};

void check(ltcr_error* error) {
  if (!error) return;
  const std::unique_ptr<ltcr_error, void (*)(ltcr_error*)> owner(error, ltcr_error_destroy);
  const std::string message = ltcr_error_message(error);
  switch (ltcr_error_code(error)) {
    case LTC_INVALID_ARGUMENT: throw py::value_error(message);
    case LTC_NOT_FOUND: PyErr_SetString(PyExc_LookupError, message.c_str()); throw py::error_already_set();
    case LTC_RESOURCE_EXHAUSTED: PyErr_SetString(PyExc_MemoryError, message.c_str()); throw py::error_already_set();
    default: throw std::runtime_error(message);
  }
}

py::dtype dtype_of(const ltcr_tensor_info& info) {
  const char* format = info.dtype < std::size(kFormats) ? kFormats[info.dtype] : "";
  if (!*format) throw py::type_error(std::string(info.name) + " has a dtype that NumPy does not have");
  return py::dtype(format);
}

std::vector<py::ssize_t> sizes_of(const ltcr_tensor_info& info) { return {info.sizes, info.sizes + info.rank}; }

// Whether the array has the sizes that are fixed.
bool fits(const std::vector<py::ssize_t>& sizes, const ltcr_tensor_info& info) {
  bool fits = sizes.size() == info.rank;
  for (size_t i = 0; fits && i < info.rank; ++i) fits = info.sizes[i] < 0 || info.sizes[i] == sizes[i];
  return fits;
}

// The sizes that are expected; None stands for one that varies.
py::tuple shape_of(const ltcr_tensor_info& info) {
  py::tuple shape(info.rank);
  for (size_t i = 0; i < info.rank; ++i) shape[i] = info.sizes[i] < 0 ? py::object(py::none()) : py::int_(info.sizes[i]);
  return shape;
}

// Contiguous, of the dtype and sizes that are wanted.
py::array as_array(const py::handle& value, const ltcr_tensor_info& info) {
  const auto given = py::array::ensure(value);
  if (!given) throw py::type_error(std::string(info.name) + " is to be an array");
  const std::vector<py::ssize_t> sizes(given.shape(), given.shape() + given.ndim());
  if (!given.dtype().equal(dtype_of(info)) || !fits(sizes, info))
    throw py::value_error(std::string(info.name) + " is " + py::str(given.dtype()).cast<std::string>() + " " +
                          py::str(given.attr("shape")).cast<std::string>() + ", and is to be " +
                          py::str(dtype_of(info)).cast<std::string>() + " " + py::str(shape_of(info)).cast<std::string>());
  return py::module_::import("numpy").attr("ascontiguousarray")(given).cast<py::array>().reshape(sizes);
}

// The array has the shape's type: npy_intp is int64_t on all systems of this project.
ltcr_tensor view_of(const py::array& array, const ltcr_tensor_info& info) {
  static_assert(sizeof(py::ssize_t) == sizeof(int64_t));
  return {info.dtype, info.rank, reinterpret_cast<const int64_t*>(array.shape()), const_cast<void*>(array.data()),
          static_cast<size_t>(array.nbytes())};
}

py::list infos(size_t count, auto info_of) {
  py::list list;
  for (size_t i = 0; i < count; ++i) {
    const ltcr_tensor_info& info = *info_of(i);
    const char* format = info.dtype < std::size(kFormats) ? kFormats[info.dtype] : "";
    list.append(py::make_tuple(info.name, *format ? py::object(py::dtype(format)) : py::none(), shape_of(info)));
  }
  return list;
}

class Model {
 public:
  Model(const std::string& path, const std::optional<std::string>& backend, uint32_t flags, uint32_t instances) {
    ltcr_model_options options{sizeof options, backend ? backend->c_str() : nullptr, flags, instances};
    ltcr_model* model = nullptr;
    ltcr_error* error = nullptr;
    {
      py::gil_scoped_release released;
      error = ltcr_model_load(path.c_str(), &options, &model);
    }
    check(error);
    model_.reset(model, ltcr_model_destroy);
  }

  ltcr_model* get() const { return model_.get(); }

  size_t find(const std::string& function) const {
    size_t index = 0;
    check(ltcr_find_function(get(), function.c_str(), &index));
    return index;
  }

  // By name: the inputs and the results, each as (name, dtype, shape).
  py::dict functions() const {
    py::dict all;
    for (size_t i = 0; i < ltcr_function_count(get()); ++i)
      all[ltcr_function_name(get(), i)] =
          py::make_tuple(infos(ltcr_input_count(get(), i), [&](size_t input) { return ltcr_input(get(), i, input); }),
                         infos(ltcr_result_count(get(), i), [&](size_t result) { return ltcr_result(get(), i, result); }));
    return all;
  }

  py::dict dimensions() const {
    py::dict all;
    for (size_t i = 0; i < ltcr_function_count(get()); ++i) {
      py::list list;
      for (size_t dim = 0; dim < ltcr_dimension_count(get(), i); ++dim) {
        const ltcr_dimension& one = *ltcr_function_dimension(get(), i, dim);
        list.append(py::make_tuple(one.name, one.min, one.max == INT64_MAX ? py::object(py::none()) : py::int_(one.max)));
      }
      all[ltcr_function_name(get(), i)] = list;
    }
    return all;
  }

  py::list state() const {
    return infos(ltcr_state_count(get()), [&](size_t i) { return ltcr_state(get(), i); });
  }

 private:
  std::shared_ptr<ltcr_model> model_;
};

class Session {
 public:
  explicit Session(const Model& model) : model_(model) {
    ltcr_session* session = nullptr;
    check(ltcr_session_create(model_.get(), &session));
    session_.reset(session);
  }

  py::object run(const std::string& name, const py::args& args, const py::kwargs& kwargs) {
    const size_t function = model_.find(name);
    const std::vector<py::array> inputs = take_inputs(name, function, args, kwargs);
    std::vector<py::array> results;
    std::vector<ltcr_tensor> input_views, result_views;
    for (size_t i = 0; i < inputs.size(); ++i) input_views.push_back(view_of(inputs[i], *ltcr_input(model_.get(), function, i)));
    for (size_t i = 0; i < ltcr_result_count(model_.get(), function); ++i) {
      const ltcr_tensor_info& info = *ltcr_result(model_.get(), function, i);
      results.emplace_back(dtype_of(info), result_sizes(function, input_views, i));
      result_views.push_back(view_of(results.back(), info));
    }
    ltcr_error* error = nullptr;
    {
      py::gil_scoped_release released;
      error = ltcr_session_run(session_.get(), function, input_views.data(), input_views.size(), result_views.data(),
                               result_views.size());
    }
    check(error);
    return results.size() == 1 ? py::object(results[0]) : py::tuple(py::cast(results));
  }

  py::array get_state(const std::string& name) {
    const size_t index = find_state(name);
    const ltcr_tensor_info& info = *ltcr_state(model_.get(), index);
    py::array array(dtype_of(info), sizes_of(info));
    const ltcr_tensor view = view_of(array, info);
    check(ltcr_session_get_state(session_.get(), index, &view));
    return array;
  }

  void set_state(const std::string& name, const py::object& value) {
    const size_t index = find_state(name);
    const ltcr_tensor_info& info = *ltcr_state(model_.get(), index);
    const py::array array = as_array(value, info);
    const ltcr_tensor view = view_of(array, info);
    check(ltcr_session_set_state(session_.get(), index, &view));
  }

  void save(const std::string& path) { check(ltcr_session_save(session_.get(), path.c_str())); }
  void load(const std::string& path) { check(ltcr_session_load(session_.get(), path.c_str())); }
  void reset() { ltcr_session_reset(session_.get()); }

 private:
  std::vector<py::array> take_inputs(const std::string& name, size_t function, const py::args& args, const py::kwargs& kwargs) {
    const size_t count = ltcr_input_count(model_.get(), function);
    if (args.size() + kwargs.size() != count)
      throw py::type_error(name + " takes " + std::to_string(count) + " inputs, and was given " +
                           std::to_string(args.size() + kwargs.size()));
    std::vector<py::array> inputs;
    for (size_t i = 0; i < count; ++i) {
      const ltcr_tensor_info& info = *ltcr_input(model_.get(), function, i);
      if (i >= args.size() && !kwargs.contains(info.name)) throw py::type_error(name + " is missing the input " + info.name);
      inputs.push_back(as_array(i < args.size() ? py::object(args[i]) : py::object(kwargs[info.name]), info));
    }
    return inputs;
  }

  std::vector<py::ssize_t> result_sizes(size_t function, const std::vector<ltcr_tensor>& inputs, size_t result) const {
    const ltcr_tensor_info& info = *ltcr_result(model_.get(), function, result);
    if (std::find(info.sizes, info.sizes + info.rank, -1) == info.sizes + info.rank) return sizes_of(info);
    std::vector<int64_t> sizes(info.rank);
    check(ltcr_result_sizes(model_.get(), function, inputs.data(), inputs.size(), result, sizes.data(), nullptr));
    return {sizes.begin(), sizes.end()};
  }

  size_t find_state(const std::string& name) const {
    size_t index = 0;
    check(ltcr_find_state(model_.get(), name.c_str(), &index));
    return index;
  }

  struct Destroy {
    void operator()(ltcr_session* session) const { ltcr_session_destroy(session); }
  };
  const Model model_;
  std::unique_ptr<ltcr_session, Destroy> session_;
};

}  // namespace

PYBIND11_MODULE(ltc_runtime, m) {
  m.doc() = "Runs the functions of an archive of ltc.export, with NumPy arrays, without PyTorch.";
  m.attr("__version__") = ltcr_version();
  py::class_<Model>(m, "Model", "An archive, compiled for a device. Any thread may use it.")
      .def_property_readonly("functions", &Model::functions,
                             "By name: inputs and results, each as (name, dtype, shape); None stands for a size that varies.")
      .def_property_readonly(
          "dimensions", &Model::dimensions,
          "By name of the function: its sizes that vary, each as (name, min, max); max is None where there is no limit.")
      .def_property_readonly("state", &Model::state, "The tensors of the state, each as (name, dtype, shape).")
      .def(
          "metadata", [](const Model& model, const std::string& key) { return ltcr_metadata(model.get(), key.c_str()); },
          "The text that the archive has under that key; None where it has none.")
      .def(
          "session", [](const Model& model) { return std::make_unique<Session>(model); },
          "A state of its own, as the archive has it.");
  py::class_<Session>(m, "Session", "A state of a model, for one thread at a time.")
      .def("run", &Session::run, "Runs a function. Inputs by place or by name; returns the result, or a tuple of them.",
           py::arg("function"), py::pos_only())
      .def("get_state", &Session::get_state, py::arg("name"))
      .def("set_state", &Session::set_state, py::arg("name"), py::arg("value"))
      .def("save", &Session::save, "Writes all of the state as a safetensors file.", py::arg("path"))
      .def("load", &Session::load, "Sets all of the state from such a file.", py::arg("path"))
      .def("reset", &Session::reset, "Goes back to the state of the archive.");
  m.def(
      "load",
      [](const std::string& path, const std::optional<std::string>& backend, bool run_executables, uint32_t instances,
         bool trust_graphs) {
        const uint32_t flags =
            (run_executables ? uint32_t{LTCR_RUN_EXECUTABLES} : 0) | (trust_graphs ? uint32_t{LTCR_TRUST_GRAPHS} : 0);
        return Model(path, backend, flags, instances);
      },
      "Opens an archive and compiles its functions. backend: one entry as in LTC_BACKEND; default: that variable. "
      "run_executables: "
      "take those of the archive, which are code, where they fit. instances: over which sessions are spread, to compute at once. "
      "trust_graphs: take ops that no rule says the types of.",
      py::arg("path"), py::arg("backend") = py::none(), py::arg("run_executables") = false, py::arg("instances") = 1,
      py::arg("trust_graphs") = false);
}
