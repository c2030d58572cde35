// The Python module ltc._C. Everything that may wait or compile releases the GIL.
#include <pybind11/chrono.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <torch/csrc/Generator.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/pybind.h>

#include "core/base/env.h"
#include "core/base/log.h"
#include "core/ops/op_table.h"
#include "core/python/captures.h"
#include "core/python/compile_listener.h"
#include "core/python/exports.h"
#include "core/python/patches/native.h"
#include "core/python/patches/run_backward.h"
#include "core/python/signals.h"
#include "core/python/source_lines.h"
#include "core/report/compiles.h"
#include "core/report/fallback_policy.h"
#include "core/report/misses.h"
#include "core/report/timeline.h"
#include "core/run/device/device_table.h"
#include "core/run/device/memory_snapshot.h"
#include "core/run/device/replay.h"
#include "core/run/process/fork.h"
#include "core/run/process/process_end.h"
#include "core/torch/dispatch/infer.h"
#include "core/torch/distributed/backend.h"
#include "core/torch/distributed/idle_steps.h"
#include "core/torch/ltc.h"
#include "core/torch/tensor/assertions.h"
#include "core/torch/tensor/current_device.h"
#include "core/torch/tensor/generator.h"
#include "core/torch/tensor/transfer.h"

namespace py = pybind11;
using namespace py::literals;

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
  ltc::collectives::IdleSteps::instance().end_all();
  ltc::stop_other_threads(release_gil, std::chrono::milliseconds(500));
  ltc::DeviceTable::instance().rest();
  ltc::tell_compiles();
}

void end_background_work() {
  ltc::collectives::IdleSteps::instance().rest();
  ltc::DeviceTable::instance().end_background_work();
}

template <typename Items, typename Describe>
py::list list_of(const Items& items, Describe describe) {
  py::list result;
  for (const auto& item : items) result.append(describe(item));
  return result;
}

py::dict stop_timeline() {
  const ltc::timeline::Timeline timeline = ltc::timeline::stop();
  const auto describe_event = [](const ltc::timeline::Event& event) {
    return py::dict("name"_a = event.name, "reason"_a = event.reason, "detail"_a = event.detail, "contents"_a = event.contents,
                    "where"_a = ltc::location_text(event.where), "thread"_a = event.thread, "begin_ns"_a = event.begin_ns,
                    "end_ns"_a = event.end_ns, "run"_a = event.run_id, "program"_a = event.program, "ops"_a = event.ops,
                    "bytes"_a = event.bytes);
  };
  const auto describe_kernel = [](const ltc::timeline::Kernel& kernel) {
    return py::dict("name"_a = kernel.name, "note"_a = kernel.note, "step"_a = kernel.step, "nodes"_a = kernel.nodes,
                    "bytes"_a = kernel.bytes, "runs"_a = kernel.runs, "ns"_a = kernel.total_ns);
  };
  const auto describe_scratch = [](const ltc::timeline::Scratch& block) {
    return py::dict("label"_a = block.label, "step"_a = block.step, "offset"_a = block.offset, "bytes"_a = block.bytes,
                    "first"_a = block.first, "last"_a = block.last);
  };
  const auto describe_program = [&](const ltc::timeline::ProgramFacts& program) {
    const auto describe_stage = [](const ltc::GraphStage& stage) {
      return py::dict("name"_a = stage.name, "graph"_a = stage.graph);
    };
    return py::dict("id"_a = program.id, "graph"_a = program.graph, "stages"_a = list_of(program.stages, describe_stage),
                    "ops"_a = program.ops, "device_steps"_a = program.device_steps, "host_steps"_a = program.host_steps,
                    "from_disk"_a = program.is_from_disk, "kernels"_a = list_of(program.kernels, describe_kernel),
                    "buffers"_a = list_of(program.scratch, describe_scratch));
  };
  return py::dict("events"_a = list_of(timeline.events, describe_event),
                  "programs"_a = list_of(timeline.programs, describe_program), "begin_ns"_a = timeline.begin_ns,
                  "end_ns"_a = timeline.end_ns, "thread"_a = timeline.thread, "dropped"_a = timeline.dropped);
}

// The lines are texts as location_text() writes them.
py::list memory_snapshots() {
  const auto describe_event = [](const ltc::memory_history::Event& event) {
    using Event = ltc::memory_history::Event;
    const char* kind = event.kind == Event::kAlloc ? "alloc" : event.kind == Event::kFree ? "free" : "oom";
    return py::make_tuple(kind, event.address, event.bytes, ltc::location_text(event.where), event.time_us, event.free_bytes);
  };
  const auto describe_buffer = [](const ltc::DeviceMemory::Held& held) {
    return py::make_tuple(held.address, held.bytes, ltc::location_text(held.where));
  };
  std::vector<ltc::MemorySnapshot> snapshots;
  {
    py::gil_scoped_release released;
    snapshots = ltc::memory_snapshots();
  }
  return list_of(snapshots, [&](const ltc::MemorySnapshot& snapshot) {
    return py::make_tuple(snapshot.device, list_of(snapshot.held, describe_buffer), list_of(snapshot.events, describe_event));
  });
}

py::list op_rows() {
  py::list rows;
  for (const ltc::OpRow& row : ltc::op_rows())
    rows.append(py::make_tuple(row.id, row.name, row.schema, static_cast<int>(row.tier), op_doc(row)));
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
  return list_of(ltc::fallbacks(), [](const ltc::Fallback& one) {
    return py::dict("op"_a = one.op, "count"_a = one.count, "bytes"_a = one.bytes, "where"_a = one.where,
                    "reason"_a = one.reason);
  });
}

py::list misses() {
  return list_of(ltc::misses(), [](const ltc::MissCount& one) {
    return py::dict("difference"_a = one.difference, "where"_a = one.where, "count"_a = one.count);
  });
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
  m.def("make_process_group", &ltc::make_process_group, "on_cpu"_a, "store"_a, "name"_a, "timeout"_a);
  m.def("heed_signals", &ltc::heed_signals);
  m.def("sync", &sync_devices, py::arg("device") = py::none(), py::arg("wait") = false, ReleaseGil());
  m.def("ends_steps", [] { return ltc::env::is_set(ltc::env::kAutoStep); });
  m.def(
      "optimizer_begins", [] { for_devices(std::nullopt, [](ltc::LazyDevice& device) { device.optimizer_begins(); }); },
      ReleaseGil());
  m.def(
      "optimizer_ends", [] { for_devices(std::nullopt, [](ltc::LazyDevice& device) { device.optimizer_ends(); }); },
      ReleaseGil());
  m.def("wait_device_ops", &ltc::wait_device_ops, ReleaseGil());
  m.def("end_process", &end_process, ReleaseGil());
  m.def("end_background_work", &end_background_work, ReleaseGil());
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
  m.def("timeline_start", &ltc::timeline::start, "every_kernel"_a = false);
  m.def("timeline_stop", &stop_timeline);
  m.def("set_compile_listener", &ltc::set_python_compile_listener);
  m.def("memory_history_start", &ltc::memory_history::start, ReleaseGil());
  m.def("memory_history_stop", &ltc::memory_history::stop, ReleaseGil());
  m.def("memory_snapshots", &memory_snapshots);
  m.def("replay", [](const std::string& graph, const py::bytes& params, int device) {
    const std::string bytes = params;
    py::gil_scoped_release released;
    return ltc::replay(graph, bytes, static_cast<uint32_t>(device));
  });
  m.def("op_rows", &op_rows);
  m.def("set_dry_run_limit", &ltc::set_dry_run_limit);
  ltc::bind_captures(m);
  ltc::bind_exports(m);
}
