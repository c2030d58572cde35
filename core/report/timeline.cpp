#include "core/report/timeline.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <unordered_set>
#include <utility>

#include "core/compile/lowering/program.h"
#include "core/ir/text.h"

namespace ltc::timeline {
namespace {

constexpr size_t kMostEvents = 1u << 20;  // some 200 MB

std::atomic<bool> g_enabled{false};
std::mutex g_mutex;

struct Collected : Timeline {
  std::unordered_set<uint64_t> known_programs;
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

ProgramFacts facts_of(const Program& program) {
  ProgramFacts facts{.id = program.id, .graph = print(program.graph), .is_from_disk = !program.saved_as.empty()};
  facts.ops = static_cast<int64_t>(program.graph.nodes.size());
  facts.device_steps = std::ranges::count(program.steps, true, &Step::on_device);
  facts.host_steps = static_cast<int64_t>(program.steps.size()) - facts.device_steps;
  return facts;
}

}  // namespace

void start() {
  std::lock_guard lock(g_mutex);
  timeline() = {};
  timeline().events.reserve(1u << 12);
  timeline().thread = this_thread();
  timeline().begin_ns = now_ns();
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
    if (!g_enabled || !timeline().known_programs.insert(program.id).second) return;
  }
  ProgramFacts facts = facts_of(program);
  std::lock_guard lock(g_mutex);
  if (g_enabled) timeline().programs.push_back(std::move(facts));
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
