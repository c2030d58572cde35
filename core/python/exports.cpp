#include "core/python/exports.h"

#include <pybind11/complex.h>
#include <pybind11/stl.h>
#include <torch/csrc/Generator.h>
#include <torch/csrc/autograd/python_variable.h>

#include <memory>

#include "core/run/device/device_table.h"
#include "core/torch/deploy/export.h"

namespace py = pybind11;
using namespace py::literals;

namespace ltc {
namespace {

std::vector<at::Tensor> tensors_of(const py::list& list) {
  std::vector<at::Tensor> tensors;
  for (const py::handle item : list) tensors.push_back(THPVariable_Unpack(item.ptr()));
  return tensors;
}

py::object wrap(at::Tensor tensor) { return py::reinterpret_steal<py::object>(THPVariable_Wrap(std::move(tensor))); }

py::list wrap_all(std::vector<at::Tensor> tensors) {
  py::list list;
  for (at::Tensor& tensor : tensors) list.append(wrap(std::move(tensor)));
  return list;
}

py::object dict_of(const ExportedFunction::Source& source) {
  static constexpr const char* kNames[] = {"argument", "constant", "output"};
  return py::dict(py::arg(kNames[source.kind]) = source.index);
}

py::dict dict_of(const ExportedFunction::Number& number) {
  py::dict dict("dtype"_a = number.dtype);
  if (number.seed_of != kNone) {
    dict["seed_of"] = number.seed_of;
  } else if (number.offset_of != kNone) {
    dict["offset_of"] = number.offset_of;
  } else {
    dict["value"] = number.value;
  }
  return dict;
}

py::list list_of(const auto& items, auto convert) {
  py::list list;
  for (const auto& item : items) list.append(convert(item));
  return list;
}

py::dict dict_of(const ExportedFunction& exported) {
  const auto source = [](const ExportedFunction::Source& one) { return dict_of(one); };
  const auto draw = [](const ExportedFunction::Draw& one) {
    const auto& generator = *static_cast<const at::Generator*>(one.generator.get());
    return py::dict("generator"_a = py::reinterpret_steal<py::object>(THPGenerator_Wrap(generator)), "seed"_a = one.seed,
                    "offset"_a = one.offset, "advance"_a = one.advance);
  };
  const auto update = [](const ExportedFunction::Update& one) { return py::make_tuple(one.argument, dict_of(one.from)); };
  return py::dict("graph"_a = py::bytes(exported.graph), "text"_a = exported.text, "json"_a = exported.json,
                  "params"_a = list_of(exported.params, source),
                  "numbers"_a = list_of(exported.numbers, [](const auto& one) { return dict_of(one); }),
                  "draws"_a = list_of(exported.draws, draw), "results"_a = list_of(exported.results, source),
                  "updates"_a = list_of(exported.updates, update), "constants"_a = wrap_all(exported.constants),
                  "host_ops"_a = exported.host_ops);
}

// A capture of one call. Guarded by the GIL.
class Export {
 public:
  Export(int device, const py::list& tensors)
      : device_(DeviceTable::instance().get(static_cast<uint32_t>(device))),
        open_(std::make_unique<FunctionCapture>(TensorArguments(device_, tensors_of(tensors)))) {}

  py::list placeholders() const { return wrap_all(open_->placeholders()); }

  // `compiles`: for run() and the host's ops.
  py::dict finish(const py::list& results, bool compiles) {
    std::vector<at::Tensor> given = tensors_of(results);
    ExportedFunction exported;
    {
      py::gil_scoped_release released;
      function_ = open_->function(given, compiles);
      open_.reset();
      rewind_generators(*function_);
      exported = export_function(device_, *function_);
    }
    return dict_of(exported);
  }

  // Its results for other tensors of the same kinds, which it may write.
  py::list run(const py::list& tensors) {
    std::vector<at::Tensor> given = tensors_of(tensors), results;
    {
      py::gil_scoped_release released;
      const TensorArguments arguments(device_, std::move(given));
      TORCH_CHECK(function_ && (function_->captured().program || !function_->captured().step) && function_->fits(arguments),
                  "an exported function is run on tensors of other kinds");
      results = function_->call(arguments, function_->captured().scalars);
      rewind_generators(*function_);
    }
    return wrap_all(std::move(results));
  }

  // Ends the capture. Why it was refused; empty if it was not.
  std::string abandon() {
    const std::string why = open_ ? open_->refusal() : "";
    open_.reset();
    return why;
  }

 private:
  LazyDevice& device_;
  std::unique_ptr<FunctionCapture> open_;
  std::shared_ptr<const CapturedFunction> function_;
};

void write(const std::string& path, const py::list& entries) {
  std::vector<ArchiveEntry> archive;
  for (const py::handle item : entries) {
    const auto entry = item.cast<py::tuple>();
    archive.push_back({entry[0].cast<std::string>(), ""});
    if (py::isinstance<py::bytes>(entry[1])) {
      archive.back().bytes = entry[1].cast<std::string>();
      continue;
    }
    archive.back().is_tensors = true;
    for (const auto& [name, tensor] : entry[1].cast<py::dict>())
      archive.back().tensors.emplace_back(name.cast<std::string>(), THPVariable_Unpack(tensor.ptr()));
  }
  py::gil_scoped_release released;
  write_archive(path, archive);
}

}  // namespace

void bind_exports(py::module_& m) {
  py::class_<Export>(m, "Export")
      .def(py::init<int, const py::list&>())
      .def("placeholders", &Export::placeholders)
      .def("finish", &Export::finish)
      .def("run", &Export::run)
      .def("abandon", &Export::abandon);
  m.def("write_archive", &write);
  m.def("graph_numbers", [](const std::string& graph) {
    const GraphNumbers numbers = graph_numbers(graph);
    py::list places;
    for (const auto& [owner, attr, element] : numbers.places)
      places.append(py::make_tuple(owner, attr == kNone ? int64_t{-1} : int64_t{attr}, element));
    return py::make_tuple(py::bytes(numbers.structure), numbers.numbers, places);
  });
}

}  // namespace ltc
