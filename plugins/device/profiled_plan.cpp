#include "device/profiled_plan.h"

#include <algorithm>

namespace ltc::device {

ProfiledPlan::ProfiledPlan(LoadedPlan& plan, const CompiledPlan& compiled_plan, Driver& driver, const plugin::Profiler& profiler)
    : plan_(plan), compiled_plan_(compiled_plan), profiler_(profiler) {
  driver.mark()->wait();  // the first kernel is not to wait for earlier work
  const auto& slots = compiled_plan.slots;
  std::vector<uint64_t> offsets(slots.size(), 0);
  for (size_t i = 1; i < slots.size(); ++i) offsets[i] = offsets[i - 1] + slots[i - 1];
  for (const ScratchUse& use : compiled_plan.scratch) {
    profiler.tell({.node = use.node,
                   .output = use.output,
                   .first_kernel = use.first,
                   .last_kernel = use.last,
                   .offset = offsets[use.slot],
                   .bytes = use.bytes});
  }
}

EventRef ProfiledPlan::submit(const Run& run) {
  const size_t end = std::min(run.end, compiled_plan_.launches.size());
  if (run.begin >= end) return plan_.submit(run);
  EventRef event;
  Run one = run;
  for (size_t i = run.begin; i < end; ++i) {
    one.begin = i;
    one.end = i + 1;
    one.fault_word = i + 1 == end ? run.fault_word : nullptr;
    const uint64_t begin_ns = plugin::Profiler::now_ns();
    event = plan_.submit(one);
    event->wait();
    const Launch& launch = compiled_plan_.launches[i];
    profiler_.tell({.name = launch.label,
                    .note = launch.note,
                    .nodes = launch.nodes,
                    .begin_ns = begin_ns,
                    .end_ns = plugin::Profiler::now_ns(),
                    .bytes = launch.bytes});
  }
  return event;
}

}  // namespace ltc::device
