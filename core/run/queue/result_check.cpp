#include "core/run/queue/result_check.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "core/base/env.h"
#include "core/base/log.h"
#include "core/compile/lowering/compiler.h"
#include "core/ir/text.h"
#include "core/report/metrics.h"
#include "core/run/queue/compare_values.h"
#include "core/run/queue/copy_out.h"
#include "core/run/queue/executor.h"
#include "core/run/queue/reproducer.h"

namespace ltc {
namespace {

// ---- parts of a graph

// Some nodes of a graph as a graph of its own, and the values of the whole that are its params, in order.
struct Part {
  Graph graph;
  std::vector<ValueId> params;
};

Part part_of(const Graph& whole, const std::vector<bool>& nodes, std::span<const ValueId> outputs) {
  Part part;
  std::vector<bool> is_scalar(whole.types.size(), false), is_made(whole.types.size(), false);
  for (const Param& param : whole.params) is_scalar[param.value] = param.scalar;
  part.graph.types = whole.types;
  std::vector<bool> is_param(whole.types.size(), false);
  for (size_t i = 0; i < whole.nodes.size(); ++i) {
    if (!nodes[i]) continue;
    const Node& node = whole.nodes[i];
    for (const ValueId input : node.inputs) {
      if (input == kNone || is_made[input] || is_param[input]) continue;
      is_param[input] = true;
      part.graph.params.push_back({input, is_scalar[input]});
      part.params.push_back(input);
    }
    part.graph.nodes.push_back(node);
    for (const ValueId output : node.outputs) {
      if (output != kNone) is_made[output] = true;
    }
  }
  part.graph.outputs.assign(outputs.begin(), outputs.end());
  part.graph = parse(print(part.graph));  // without the values of the rest
  return part;
}

std::vector<ValueId> outputs_of(const Node& node) {
  std::vector<ValueId> outputs;
  std::ranges::copy_if(node.outputs, std::back_inserter(outputs), [](ValueId value) { return value != kNone; });
  return outputs;
}

std::vector<bool> only(const Graph& graph, size_t node) {
  std::vector<bool> nodes(graph.nodes.size(), false);
  nodes[node] = true;
  return nodes;
}

// The nodes that the value is made of, at most `depth` of them one after the other.
std::vector<bool> nodes_behind(const Graph& graph, ValueId value, size_t depth) {
  std::vector<size_t> left(graph.types.size(), 0);  // by value: how many more
  std::vector<bool> nodes(graph.nodes.size(), false);
  left[value] = depth;
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    size_t most = 0;
    for (const ValueId output : outputs_of(graph.nodes[i])) most = std::max(most, left[output]);
    if (most == 0) continue;
    nodes[i] = true;
    for (const ValueId input : graph.nodes[i].inputs) {
      if (input != kNone) left[input] = std::max(left[input], most - 1);
    }
  }
  return nodes;
}

// ---- numbers as values

HostValue value_of(const Scalar& scalar, TypeId type) {
  HostValue value = allocate_host_value(type);
  const size_t size = type_of(type).size_bytes();
  const auto flag = static_cast<uint8_t>(scalar.i != 0);
  std::memcpy(value.data.get(), size == 1 ? static_cast<const void*>(&flag) : &scalar, size);
  return value;
}

Scalar scalar_of(const HostValue& value) {
  Scalar scalar{};
  std::memcpy(&scalar, value.data.get(), std::min(type_of(value.type).size_bytes(), sizeof(scalar)));
  return scalar;
}

// ---- runs

struct Operands {
  std::vector<HostValue> buffers;
  std::vector<Scalar> scalars;
};

Operands split(const Graph& graph, std::span<const HostValue> params) {
  Operands operands;
  for (size_t i = 0; i < params.size(); ++i) {
    if (graph.params[i].scalar) {
      operands.scalars.push_back(scalar_of(params[i]));
    } else {
      operands.buffers.push_back(params[i]);
    }
  }
  return operands;
}

std::vector<HostValue> run_on_cpu(const Graph& graph, std::span<const HostValue> params) {
  const Operands operands = split(graph, params);
  return host_runner()(graph, operands.buffers, operands.scalars);
}

HostValue fetch(DeviceExecutor& executor, const BufferRef& buffer) {
  HostValue value = allocate_host_value(buffer->type);
  DeviceExecutor::CopyOut(executor, buffer, value.data.get(), value.data).finish();
  return value;
}

std::vector<HostValue> run_on_device(DeviceExecutor& executor, Graph graph, std::span<const HostValue> params,
                                     uint32_t precision) {
  for (Param& param : graph.params) param.alias_output = kNone;
  Operands operands = split(graph, params);
  Run run;
  run.scalars = std::move(operands.scalars);
  for (const HostValue& value : operands.buffers) {
    run.inputs.push_back(std::make_shared<Buffer>(executor.memory(), value.type));
    executor.upload(value, *run.inputs.back());
  }
  for (const ValueId output : graph.outputs)
    run.outputs.push_back(std::make_shared<Buffer>(executor.memory(), graph.types[output]));
  run.program = compile(std::move(graph), {executor.device(), executor.demotion(), precision});
  executor.run_steps(run);
  std::vector<HostValue> results;
  for (const BufferRef& output : run.outputs) results.push_back(fetch(executor, output));
  return results;
}

// ---- tolerances

// A difference in a run's output may have come a long way: it only says where to look.
constexpr double kSuspicion = 10;

double tolerance_of(const TypeDemotion& demotion, TypeId type) {
  return tolerance_of(demotion.storage_dtype(type_of(type).dtype));
}

// Sums of many elements may cancel each other, and what remains has the errors of the elements.
bool adds_up(const Graph& graph, const Node& node) {
  const std::string& name = op_name(node.op);
  for (const char* part : {"mm", "conv", "norm", "backward", "index", "scatter", "cumsum", "dot", "attention", "linear", "fft"}) {
    if (name.find(part) != name.npos) return true;
  }
  int64_t made = 0;
  for (const ValueId output : outputs_of(node)) made = std::max(made, graph.type(output).element_count);
  return std::ranges::any_of(node.inputs,
                             [&](ValueId input) { return input != kNone && graph.type(input).element_count > made; });
}

}  // namespace

// ---- the check

// The values of the program's graph, by id.
struct ResultCheck::Values {
  const Graph& graph;
  std::vector<HostValue> params;                         // of params, numbers too
  std::vector<HostValue> cpu = params, device = params;  // and of what the nodes make, where it is known

  std::vector<HostValue> of(std::span<const ValueId> ids, const std::vector<HostValue>& from) const {
    std::vector<HostValue> values;
    for (const ValueId id : ids) values.push_back(from[id]);
    return values;
  }
};

ResultCheck::ResultCheck(DeviceExecutor& executor) : executor_(executor), mode_(static_cast<Mode>(env::choice(env::kCheck))) {}

bool ResultCheck::is_wanted() { return env::choice(env::kCheck) != kOff; }

std::vector<HostValue> ResultCheck::copy_inputs(const Run& run) {
  std::vector<HostValue> inputs;
  for (size_t i = 0; i < run.program->input_count; ++i) {
    executor_.require(*run.input(i));
    inputs.push_back(fetch(executor_, run.input(i)));
  }
  return inputs;
}

void ResultCheck::check(const Run& run, std::vector<HostValue> inputs) noexcept {
  try {
    const Graph& graph = run.program->graph;
    if (std::ranges::none_of(run.program->steps, &Step::on_device)) return;
    if (std::ranges::any_of(graph.nodes, [](const Node& node) { return is_collective(node.op); })) return;
    Values values{graph, std::vector<HostValue>(graph.types.size())};
    size_t buffers = 0, scalars = 0;
    for (const Param& param : graph.params) {
      values.params[param.value] =
          param.scalar ? value_of(run.scalar(scalars++), graph.types[param.value]) : std::move(inputs[buffers++]);
    }
    values.cpu = values.device = values.params;
    for (size_t i = 0; i < graph.outputs.size(); ++i) values.device[graph.outputs[i]] = fetch(executor_, run.outputs[i]);
    mode_ == kNan ? check_nan(run, values) : check_results(run, values);
  } catch (const std::exception& error) {
    log::warn("LTC_CHECK: a run could not be checked: ", error.what());
  }
}

void ResultCheck::check_results(const Run& run, Values& values) {
  const Graph& graph = values.graph;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const std::vector<ValueId> made = outputs_of(graph.nodes[i]);
    const Part part = part_of(graph, only(graph, i), made);
    std::vector<HostValue> results = run_on_cpu(part.graph, values.of(part.params, values.cpu));
    for (size_t k = 0; k < made.size(); ++k) values.cpu[made[k]] = std::move(results[k]);
  }
  std::optional<ValueId> bad;
  for (const ValueId output : graph.outputs) {
    const double tolerance = kSuspicion * tolerance_of(executor_.demotion(), graph.types[output]);
    if (!bad && compare_values(values.device[output], values.cpu[output], tolerance, magnitude_of(values.cpu[output])))
      bad = output;
  }
  const bool is_first = checked_.insert(run.program->id).second;
  if (!bad && !is_first) return;
  if (!check_each_op(run, values) && bad) check_fused(run, values, *bad);
}

// All values of the run, made once more.
void ResultCheck::fetch_all(const Run& run, Values& values) {
  Graph graph = values.graph;
  graph.outputs.clear();
  for (const Node& node : graph.nodes) std::ranges::copy(outputs_of(node), std::back_inserter(graph.outputs));
  std::vector<ValueId> params;
  for (const Param& param : graph.params) params.push_back(param.value);
  const std::vector<ValueId> all = graph.outputs;
  std::vector<HostValue> made =
      run_on_device(executor_, std::move(graph), values.of(params, values.params), run.step ? run.step->precision : 0);
  for (size_t i = 0; i < all.size(); ++i) values.device[all[i]] = std::move(made[i]);
}

// Whether an op gives other values than the CPU does for the same operands.
bool ResultCheck::check_each_op(const Run& run, Values& values) {
  fetch_all(run, values);
  const Graph& graph = values.graph;
  for (uint32_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    const std::vector<bool> nodes = only(graph, i);
    const std::vector<ValueId> made = outputs_of(node);
    const Part part = part_of(graph, nodes, made);
    const std::vector<HostValue> operands = values.of(part.params, values.device);
    const std::vector<HostValue> expected = run_on_cpu(part.graph, operands);
    double tolerance = 0, scale = 0;
    for (const HostValue& operand : operands) {
      tolerance = std::max(tolerance, tolerance_of(executor_.demotion(), operand.type));
      if (adds_up(graph, node)) scale = std::max(scale, magnitude_of(operand));
    }
    for (size_t k = 0; k < made.size(); ++k) {
      const double enough = std::max(tolerance, tolerance_of(executor_.demotion(), graph.types[made[k]]));
      const auto difference =
          compare_values(values.device[made[k]], expected[k], enough, std::max(scale, magnitude_of(expected[k])));
      if (!difference) continue;
      report(run, values, nodes, i, cat("gives other values than the CPU: ", difference_text(*difference, graph.types[made[k]])));
      return true;
    }
  }
  return false;
}

// Whether these nodes, run together on what the CPU has computed before them, make another value, and do not where each of their
// values is wanted: a small error before a rounding, say, would be there too.
bool ResultCheck::differs(const Run& run, const Values& values, const std::vector<bool>& nodes, ValueId output) {
  std::vector<ValueId> outputs = {output};
  if (!is_wrong(run, values, nodes, outputs)) return false;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (!nodes[i]) continue;
    for (const ValueId made : outputs_of(values.graph.nodes[i])) {
      if (made != output) outputs.push_back(made);
    }
  }
  return !is_wrong(run, values, nodes, outputs);
}

// The first of the outputs.
bool ResultCheck::is_wrong(const Run& run, const Values& values, const std::vector<bool>& nodes,
                           std::span<const ValueId> outputs) {
  const ValueId output = outputs.front();
  const Part part = part_of(values.graph, nodes, outputs);
  const std::vector<HostValue> made =
      run_on_device(executor_, part.graph, values.of(part.params, values.cpu), run.step ? run.step->precision : 0);
  const double tolerance = kSuspicion * tolerance_of(executor_.demotion(), values.graph.types[output]);
  return compare_values(made[0], values.cpu[output], tolerance, magnitude_of(values.cpu[output])).has_value();
}

// The first value that is wrong when all before it is run with it, and the fewest nodes with which it is.
void ResultCheck::check_fused(const Run& run, const Values& values, ValueId output) {
  const Graph& graph = values.graph;
  const std::vector<bool> behind = nodes_behind(graph, output, graph.nodes.size());
  std::vector<uint32_t> candidates;
  for (uint32_t i = 0; i < behind.size(); ++i) {
    if (behind[i]) candidates.push_back(i);
  }
  const auto value_at = [&](uint32_t node) { return outputs_of(graph.nodes[node]).front(); };
  const auto is_right = [&](uint32_t node) {
    return !differs(run, values, nodes_behind(graph, value_at(node), graph.nodes.size()), value_at(node));
  };
  const auto first = std::ranges::partition_point(candidates, is_right);
  if (first == candidates.end()) {
    log::info("LTC_CHECK: the values of a run differ from the CPU's, and no op's do by itself: rounding has added up");
    return;
  }
  const ValueId wrong = value_at(*first);
  for (size_t depth = 2;; depth *= 2) {
    const std::vector<bool> nodes = nodes_behind(graph, wrong, std::min(depth, graph.nodes.size()));
    if (depth < graph.nodes.size() && !differs(run, values, nodes, wrong)) continue;
    return report(
        run, values, nodes, *first,
        cat("gives other values than the CPU in one kernel with ops before it (", std::ranges::count(nodes, true), " in all)"));
  }
}

void ResultCheck::check_nan(const Run& run, Values& values) {
  const Graph& graph = values.graph;
  const auto is_nan = [&](ValueId value) { return value != kNone && values.device[value].data && has_nan(values.device[value]); };
  if (std::ranges::none_of(graph.outputs, is_nan)) return;
  fetch_all(run, values);
  for (uint32_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (std::ranges::any_of(node.inputs, is_nan) || std::ranges::none_of(node.outputs, is_nan)) continue;
    return report(run, values, only(graph, i), i, "makes the first NaN, of operands without one");
  }
}

void ResultCheck::report(const Run& run, const Values& values, const std::vector<bool>& nodes, uint32_t at,
                         const std::string& what) {
  const Node& node = values.graph.nodes[at];
  if (!reported_.insert({node.op, node.location}).second) return;
  metrics::counter(metrics::kWrongResults) += 1;
  const std::string name = cat("[", executor_.device().plugin().name(), "] ", op_name(node.op), at_location(node.location));
  std::string text = cat(name, " ", what);
  const std::vector<HostValue>& from = mode_ == kNan || std::ranges::count(nodes, true) == 1 ? values.device : values.cpu;
  for (const ValueId input : node.inputs) {
    if (input != kNone && from[input].data) text += cat("; operand ", stats_text(from[input]));
  }
  const Part part = part_of(values.graph, nodes, outputs_of(node));
  const std::string file = write_reproducer(cat(name, " ", what), print(part.graph), values.of(part.params, from));
  log::error(text, "; run ", run.id, file.empty() ? "" : "; to repeat it: python ", file);
}

std::string compare_with_cpu(DeviceExecutor& executor, const Graph& graph, const std::vector<HostValue>& inputs) {
  const std::vector<HostValue> expected = run_on_cpu(graph, inputs), got = run_on_device(executor, graph, inputs, 0);
  std::string text;
  for (size_t i = 0; i < expected.size(); ++i) {
    const auto difference =
        compare_values(got[i], expected[i], tolerance_of(executor.demotion(), expected[i].type), magnitude_of(expected[i]));
    text += cat("output ", i, ", ", stats_text(got[i]), ": ",
                difference ? difference_text(*difference, expected[i].type) : "as on the CPU", has_nan(got[i]) ? ", has NaN" : "",
                "\n");
  }
  return text;
}

}  // namespace ltc
