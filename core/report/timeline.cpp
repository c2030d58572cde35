#include "core/report/timeline.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "core/base/hash.h"
#include "core/compile/lowering/program.h"
#include "core/ir/text.h"

namespace ltc::timeline {
namespace {

constexpr size_t kMostEvents = 1u << 20;  // some 200 MB

std::atomic<bool> g_enabled{false};
std::mutex g_mutex;

struct ProgramEntry {
  size_t place;  // in Timeline::programs
  uint64_t runs = 0, newest_run = 0;
};

struct Collected : Timeline {
  std::unordered_map<uint64_t, ProgramEntry> entries;  // by the program's id
  bool every_kernel = false;
};
Collected& timeline() {
  static auto* instance = new Collected();  // leaked: queue threads may outlive static destruction
  return *instance;
}

// The system's number of the thread, as other profilers have it.
uint64_t this_thread() {
  static thread_local const auto id = static_cast<uint64_t>(gettid());
  return id;
}

Event event_of(const Kernel& kernel, uint32_t number, const Program& program, uint64_t run_id) {
  Event event{.name = "kernel", .reason = kernel.name, .detail = kernel.note, .run_id = run_id, .program = program.id};
  event.begin_ns = kernel.begin_ns;
  event.end_ns = kernel.end_ns;
  event.ops = number;
  event.bytes = static_cast<int64_t>(kernel.bytes);
  if (!kernel.nodes.empty()) event.where = program.graph.nodes[kernel.nodes.back()].location;
  return event;
}

// Adds the kernels of one run of a step to the sums. A step whose kernels are others than before begins anew.
void sum_up(std::vector<Kernel>& sums, const std::vector<Kernel>& of_run, uint32_t step) {
  auto [begin, end] = std::ranges::equal_range(sums, step, {}, &Kernel::step);
  if (!std::ranges::equal(begin, end, of_run.begin(), of_run.end(), {}, &Kernel::name, &Kernel::name)) {
    begin = sums.insert(sums.erase(begin, end), of_run.begin(), of_run.end());
  }
  for (const Kernel& kernel : of_run) {
    Kernel& sum = *begin++;
    if (kernel.end_ns == 0) continue;
    ++sum.runs;
    sum.total_ns += static_cast<int64_t>(kernel.end_ns - kernel.begin_ns);
  }
}

}  // namespace

ProgramFacts facts_of(const Program& program) {
  ProgramFacts facts{
      .id = program.id, .graph = print(program.graph), .stages = program.stages, .is_from_disk = !program.saved_as.empty()};
  facts.ops = static_cast<int64_t>(program.graph.nodes.size());
  facts.device_steps = std::ranges::count(program.steps, true, &Step::on_device);
  facts.host_steps = static_cast<int64_t>(program.steps.size()) - facts.device_steps;
  return facts;
}

void start(bool every_kernel) {
  std::lock_guard lock(g_mutex);
  timeline() = {};
  timeline().events.reserve(1u << 12);
  timeline().thread = this_thread();
  timeline().begin_ns = now_ns();
  timeline().every_kernel = every_kernel;
  g_enabled = true;
}

Timeline stop() {
  std::lock_guard lock(g_mutex);
  if (!g_enabled.exchange(false)) return {};
  timeline().end_ns = now_ns();
  return std::exchange(timeline(), {});
}

bool enabled() { return g_enabled.load(std::memory_order_relaxed); }

uint64_t now_ns() {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count());
}

void add(Event event) {
  event.thread = this_thread();
  std::lock_guard lock(g_mutex);
  // Events that began before the timeline do not belong to it.
  if (!g_enabled || event.begin_ns < timeline().begin_ns) return;
  if (timeline().events.size() == kMostEvents) {
    ++timeline().dropped;
    return;
  }
  timeline().events.push_back(std::move(event));
}

void add_program(const Program& program) {
  {
    std::lock_guard lock(g_mutex);
    if (!g_enabled || timeline().entries.contains(program.id)) return;
  }
  ProgramFacts facts = facts_of(program);
  std::lock_guard lock(g_mutex);
  if (!g_enabled || !timeline().entries.try_emplace(program.id, ProgramEntry{timeline().programs.size()}).second) return;
  timeline().programs.push_back(std::move(facts));
}

bool wants_kernels(const Program& program, uint64_t run_id) {
  add_program(program);
  std::lock_guard lock(g_mutex);
  const auto found = timeline().entries.find(program.id);
  if (!g_enabled || found == timeline().entries.end()) return false;
  ProgramEntry& entry = found->second;
  if (entry.newest_run != run_id) ++entry.runs;
  entry.newest_run = run_id;
  const bool is_power_of_four = std::has_single_bit(entry.runs) && std::countr_zero(entry.runs) % 2 == 0;
  return is_power_of_four || timeline().every_kernel;
}

void add_kernels(const Program& program, RunKernels found) {
  for (uint32_t i = 0; i < found.kernels.size(); ++i) {
    if (found.kernels[i].end_ns != 0) add(event_of(found.kernels[i], i, program, found.run_id));
  }
  std::lock_guard lock(g_mutex);
  const auto entry = timeline().entries.find(program.id);
  if (!g_enabled || entry == timeline().entries.end()) return;
  ProgramFacts& facts = timeline().programs[entry->second.place];
  sum_up(facts.kernels, found.kernels, found.step);
  std::erase_if(facts.scratch, [&](const Scratch& block) { return block.step == found.step; });
  std::ranges::move(found.scratch, std::back_inserter(facts.scratch));
}

void Span::begin(const char* name, uint64_t run_id) {
  event_.name = name;
  event_.run_id = run_id;
  event_.begin_ns = now_ns();
}

void Span::here() {
  if (is_on()) event_.where = current_location();
}

void Span::with_callers() {
  if (is_on()) event_.detail = location_text(current_callers());
}

void Span::contents(const void* data, size_t bytes) {
  if (is_on()) event_.contents = hash_bytes(0, data, bytes);
}

void Span::of(const Program& program) {
  if (!is_on()) return;
  event_.program = program.id;
  event_.ops = static_cast<int64_t>(program.graph.nodes.size());
  add_program(program);
}

void Span::of(const Step& host_step) {
  const Graph& graph = host_step.graph;
  if (!is_on() || graph.nodes.empty()) return;
  const Node& first = graph.nodes.front();
  because(op_name(first.op));
  if (!host_step.reasons.empty()) detail(host_step.reasons.front());
  at(first.location);
  int64_t bytes = 0;
  const auto add = [&](ValueId value) { bytes += static_cast<int64_t>(graph.type(value).size_bytes()); };
  for (const Param& param : graph.params) {
    if (!param.scalar) add(param.value);
  }
  for (const ValueId output : graph.outputs) add(output);
  count(static_cast<int64_t>(graph.nodes.size()), bytes);
}

void Span::end() {
  event_.end_ns = now_ns();
  add(std::move(event_));
}

}  // namespace ltc::timeline
