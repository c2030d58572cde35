// The Python module ltc._C. Everything that may wait or compile releases the GIL.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <torch/csrc/Generator.h>
#include <torch/csrc/autograd/python_variable.h>

#include "core/base/log.h"
#include "core/ops/op_table.h"
#include "core/python/captures.h"
#include "core/python/patches/native.h"
#include "core/python/patches/run_backward.h"
#include "core/python/signals.h"
#include "core/python/source_lines.h"
#include "core/report/fallback_policy.h"
#include "core/report/misses.h"
#include "core/report/timeline.h"
#include "core/run/device/device_table.h"
#include "core/run/device/replay.h"
#include "core/run/process/fork.h"
#include "core/run/process/process_end.h"
#include "core/torch/dispatch/infer.h"
#include "core/torch/ltc.h"
#include "core/torch/tensor/assertions.h"
#include "core/torch/tensor/current_device.h"
#include "core/torch/tensor/generator.h"
#include "core/torch/tensor/transfer.h"

namespace py = pybind11;

namespace {

using ReleaseGil = py::call_guard<py::gil_scoped_release>;

// The devices that `index` names: one, or all in use for None.
void for_devices(std::optional<int> index, void (*visit)(ltc::LazyDevice&)) {
  index ? visit(ltc::DeviceTable::instance().get(static_cast<uint32_t>(*index))) : ltc::DeviceTable::instance().for_each(visit);
}

void sync_devices(std::optional<int> index, bool wait) {
  for_devices(index, [](ltc::LazyDevice& device) { device.sync(ltc::metrics::kMarkStep); });
  if (!wait) return;
  for_devices(index, [](ltc::LazyDevice& device) {
    device.wait();
    ltc::check_assertions(device);
  });
}

// Python's exit: threads that still record, daemons, stop before Python ends them, and so does what they have queued. This thread
// goes on: handlers of the program's may come after this one.
void end_process() {
  if (ltc::forked()) return;
  const auto release_gil = [] {
    if (PyGILState_Check()) PyEval_SaveThread();
  };
  ltc::stop_other_threads(release_gil, std::chrono::milliseconds(500));
  ltc::DeviceTable::instance().rest();
}

py::dict stop_timeline() {
  const ltc::timeline::Timeline timeline = ltc::timeline::stop();
  py::list events, programs;
  for (const auto& event : timeline.events) {
    py::dict entry;
    entry["name"] = event.name;
    entry["reason"] = event.reason;
    entry["detail"] = event.detail;
    entry["where"] = ltc::location_text(event.where);
    entry["thread"] = event.thread;
    entry["begin_ns"] = event.begin_ns;
    entry["end_ns"] = event.end_ns;
    entry["run"] = event.run_id;
    entry["program"] = event.program;
    entry["ops"] = event.ops;
    entry["bytes"] = event.bytes;
    events.append(entry);
  }
  for (const auto& program : timeline.programs) {
    py::dict entry;
    entry["id"] = program.id;
    entry["graph"] = program.graph;
    entry["ops"] = program.ops;
    entry["device_steps"] = program.device_steps;
    entry["host_steps"] = program.host_steps;
    entry["from_disk"] = program.is_from_disk;
    programs.append(entry);
  }
  py::dict result;
  result["events"] = events;
  result["programs"] = programs;
  result["begin_ns"] = timeline.begin_ns;
  result["end_ns"] = timeline.end_ns;
  result["thread"] = timeline.thread;
  result["dropped"] = timeline.dropped;
  return result;
}

py::list op_rows() {
  py::list rows;
  for (const ltc::OpRow& row : ltc::op_rows())
    rows.append(py::make_tuple(row.id, row.name, row.schema, static_cast<int>(row.tier), row.doc));
  return rows;
}

py::dict device_properties(int index) {
  const ltc::host::DeviceInfo& info = ltc::DeviceTable::instance().get(static_cast<uint32_t>(index)).queue().device().info();
  py::dict result;
  result["name"] = info.name;
  result["total_memory"] = info.memory_bytes;
  result["fingerprint"] = info.fingerprint;
  return result;
}

py::list fallbacks() {
  py::list result;
  for (const ltc::Fallback& one : ltc::fallbacks()) {
    py::dict entry;
    entry["op"] = one.op;
    entry["count"] = one.count;
    entry["bytes"] = one.bytes;
    entry["where"] = one.where;
    entry["reason"] = one.reason;
    result.append(entry);
  }
  return result;
}

py::list misses() {
  py::list result;
  for (const ltc::MissCount& one : ltc::misses()) {
    py::dict entry;
    entry["difference"] = one.difference;
    entry["where"] = one.where;
    entry["count"] = one.count;
    result.append(entry);
  }
  return result;
}

py::object default_generator(int index) {
  return py::reinterpret_steal<py::object>(THPGenerator_Wrap(ltc::default_generator(static_cast<c10::DeviceIndex>(index))));
}

const ltc::NativePatch& find_patch(std::string_view name) {
  for (const ltc::NativePatch* patch : ltc::native_patches())
    if (name == patch->name) return *patch;
  throw py::key_error(std::string(name));
}

py::object with_rows(py::handle tensor, int64_t rows) {
  at::Tensor result;
  {
    const at::Tensor& given = THPVariable_Unpack(tensor.ptr());
    py::gil_scoped_release released;
    result = ltc::with_rows(given, rows);
  }
  return py::reinterpret_steal<py::object>(THPVariable_Wrap(std::move(result)));
}

}  // namespace

PYBIND11_MODULE(_C, m) {
  m.def("register_device", &ltc::register_device);
  m.def("install_patch", [](std::string_view name) { return find_patch(name).install(); });
  m.def("uninstall_patch", [](std::string_view name) { return find_patch(name).uninstall(); });
  m.def("around_run_backward", [](py::handle original) {
    PyObject* const function = ltc::around_run_backward(original.ptr());
    return function ? py::reinterpret_steal<py::object>(function) : throw py::error_already_set();
  });
  m.def("record_source_lines", &ltc::record_source_lines);
  m.def("log_info", [](const std::string& text) { ltc::log::info(text); });
  m.def("heed_signals", &ltc::heed_signals);
  m.def("sync", &sync_devices, py::arg("device") = py::none(), py::arg("wait") = false, ReleaseGil());
  m.def("wait_device_ops", &ltc::wait_device_ops, ReleaseGil());
  m.def("end_process", &end_process, ReleaseGil());
  m.def(
      "graph_text", [](int device) { return ltc::DeviceTable::instance().get(static_cast<uint32_t>(device)).trace_text(); },
      ReleaseGil());

  m.def(
      "device_count", [] { return static_cast<int>(ltc::device_count()); }, ReleaseGil());
  m.def("current_device", [] { return static_cast<int>(ltc::current_device()); });
  m.def("device_properties", &device_properties);
  m.def("set_device", [](int device) { ltc::set_current_device(static_cast<c10::DeviceIndex>(device)); });
  m.def("forked", &ltc::forked);
  m.def("default_generator", &default_generator);
  m.def("seed_all", &ltc::seed_all);

  m.def("with_rows", &with_rows);

  m.def("counter_names", &ltc::counter_names);
  m.def("counter_value", &ltc::counter_value);
  m.def("metrics_report", &ltc::metrics_report);
  m.def("fallbacks", &fallbacks);
  m.def("misses", &misses);
  m.def("reset_metrics", &ltc::reset_metrics);
  m.def("timeline_start", &ltc::timeline::start);
  m.def("timeline_stop", &stop_timeline);
  m.def("replay", [](const std::string& graph, const py::bytes& params, int device) {
    const std::string bytes = params;
    py::gil_scoped_release released;
    return ltc::replay(graph, bytes, static_cast<uint32_t>(device));
  });
  m.def("op_rows", &op_rows);
  m.def("set_dry_run_limit", &ltc::set_dry_run_limit);
  ltc::bind_captures(m);
}
