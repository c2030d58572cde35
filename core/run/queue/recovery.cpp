#include "core/run/queue/recovery.h"

#include <algorithm>

#include "core/base/log.h"
#include "core/compile/lowering/compiler.h"
#include "core/report/fallback_policy.h"
#include "core/report/timeline.h"
#include "core/run/queue/executor.h"

namespace ltc {
namespace {

std::string text_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& known) {
    return known.what();
  } catch (...) {
    return "an exception that is no std::exception";
  }
}

bool is_loss(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& known) {
    return known.code() == Code::kDeviceLost;
  } catch (...) {
    return false;
  }
}

bool is_result_of(const Trace& trace, size_t value, ValueId node) {
  return value < trace.records.size() && trace.records[value].op == kOpResult && trace.records[value].in[0] == node;
}

template <typename Visit>
void for_each_result(const Trace& trace, ValueId node, const Visit& visit) {
  for (ValueId result = node; result == node || is_result_of(trace, result, node); ++result) visit(result);
}

// Whether eager PyTorch throws RuntimeError for an index out of range in the op; in others it throws IndexError.
bool throws_runtime_error(const Record& record) {
  const std::string_view name = op_name(record.op);
  if (name == "aten::index_add") return type_of(record.type).sizes.size() > 1;
  return name.starts_with("aten::gather") || name.starts_with("aten::scatter");
}

// The current exception, as eager PyTorch throws it for the op.
std::exception_ptr as_eager_throws(const Record& record) {
  if (!throws_runtime_error(record)) return std::current_exception();
  try {
    throw;
  } catch (const Error& error) {
    if (error.code() != Code::kOutOfRange) return std::current_exception();
    return std::make_exception_ptr(Error(Code::kInvalidArgument, error.what()));
  } catch (...) {
    return std::current_exception();
  }
}

}  // namespace

// A node of the trace as a graph of its own.
struct Recovery::Op {
  Graph graph;
  std::vector<BufferRef> inputs;
  std::vector<Scalar> scalars;
  std::vector<ValueId> results;      // those that somebody reads, in the order of the graph's outputs
  std::shared_ptr<Failure> failure;  // of an input that has no value
  ValueId failed_at = kNone;
};

Recovery::Recovery(DeviceExecutor& executor, Run& run, std::exception_ptr error)
    : executor_(executor), run_(run), step_(*run.step), error_(std::move(error)) {}

void Recovery::run() noexcept {
  timeline::Span span("recover", run_.id);
  span.detail(text_of(error_));
  if (run_.program) span.of(*run_.program);
  try {
    repeat();
  } catch (...) {
    const auto failure = std::make_shared<Failure>(std::current_exception());
    for (const BufferRef& output : run_.outputs) {
      if (!output->handle && !output->error) output->error = failure->error, output->failure = failure;
    }
  }
}

void Recovery::repeat() {
  if (std::ranges::any_of(step_.trace.records, [](const Record& record) { return is_collective(record.op); })) {
    std::rethrow_exception(error_);
  }
  metrics::counter(metrics::kRecoveries) += 1;
  log::info("a run failed and is repeated op by op: ", text_of(error_));
  count_uses();
  const auto& records = step_.trace.records;
  values_.resize(records.size());
  lost_at_.resize(records.size(), kNone);
  scalar_of_.resize(records.size(), kNone);
  for (size_t i = 0; i < run_.outputs.size(); ++i) {
    if (is_made(i)) values_[value_of(i)] = run_.outputs[i];
  }
  uint32_t buffers = 0, scalars = 0;
  size_t nodes = 0;
  for (ValueId i = 0; i < records.size(); ++i) {
    if (records[i].op == kOpParam) {
      const size_t index = buffers++;
      if (uses_[i] > 0) read_input(i, index);
    } else if (records[i].op == kOpScalar) {
      scalar_of_[i] = scalars++;
    } else if (records[i].op != kOpResult) {
      const size_t index = nodes++;
      run_op(i, index < step_.locations.size() ? step_.locations[index] : kNoLocation);
    }
  }
  deliver();
  if (failed_ops_ == 0 && !is_loss(error_)) log::warn("a run failed, and none of its ops did by itself: ", text_of(error_));
}

// The value of an output of the program, or of one of the copies behind them.
ValueId Recovery::value_of(size_t output) const {
  const size_t count = step_.roots.size();
  return step_.roots[output < count ? output : run_.undo.copied_from[output - count]].value;
}

bool Recovery::is_made(size_t output) const { return run_.outputs[output]->handle != nullptr; }

// From the outputs that are missing, and what may have to stand in for them, back to the params.
void Recovery::count_uses() {
  const Trace& trace = step_.trace;
  uses_.resize(trace.records.size(), 0);
  std::vector<bool> is_known(trace.records.size(), false), is_needed(trace.records.size(), false);
  for (size_t i = 0; i < run_.outputs.size(); ++i) {
    if (is_made(i)) is_known[value_of(i)] = true;
  }
  for (size_t i = 0; i < run_.outputs.size(); ++i) {
    if (is_made(i)) continue;
    ++uses_[value_of(i)];
    if (run_.undo.before.empty()) continue;
    for (uint32_t at = run_.undo.before[i]; at != kNone; at = run_.undo.history[at].before) {
      if (const ValueId value = run_.undo.history[at].value; value != kNone) ++uses_[value];
    }
  }
  for (size_t i = trace.records.size(); i-- > 0;) {
    const Record& record = trace.records[i];
    if (record.op == kOpResult) {
      if (uses_[i] > 0 && !is_known[i]) is_needed[record.in[0]] = true;
    } else if (is_needed[i] || (uses_[i] > 0 && !is_known[i])) {
      for (const ValueId input : trace.inputs(record)) {
        if (input != kNone) ++uses_[input];
      }
    }
  }
}

void Recovery::lose(ValueId value, std::shared_ptr<Failure> failure, ValueId at) {
  auto buffer = std::make_shared<Buffer>(executor_.memory(), step_.trace.records[value].type);
  buffer->error = failure->error;
  buffer->failure = std::move(failure);
  values_[value] = std::move(buffer);
  lost_at_[value] = at;
}

void Recovery::read_input(ValueId param, size_t index) {
  const BufferRef& buffer = run_.inputs[index];
  if (buffer->error) {
    lose(param, buffer->failure ? buffer->failure : std::make_shared<Failure>(buffer->error), param);
  } else if (buffer->handle || buffer->host.data) {
    values_[param] = buffer;
  } else {
    lose(param, std::make_shared<Failure>(error_), param);  // the run has consumed it
  }
}

Recovery::Op Recovery::describe(ValueId node, LocationId location) const {
  const Trace& trace = step_.trace;
  const Record& record = trace.records[node];
  Op op;
  Node made{record.op, record.attrs, {}, {}, location};
  std::vector<ValueId> read;
  for (const ValueId input : trace.inputs(record)) {
    if (input == kNone) {
      made.inputs.push_back(kNone);
      continue;
    }
    const auto known = std::ranges::find(read, input);
    made.inputs.push_back(static_cast<ValueId>(known - read.begin()));
    if (known != read.end()) continue;
    read.push_back(input);
    const bool is_scalar = scalar_of_[input] != kNone;
    op.graph.add_param(trace.records[input].type, is_scalar);
    if (is_scalar) {
      op.scalars.push_back(run_.scalars[scalar_of_[input]]);
      continue;
    }
    op.inputs.push_back(values_[input]);
    if (lost_at_[input] < op.failed_at) op.failure = values_[input]->failure, op.failed_at = lost_at_[input];
  }
  for_each_result(trace, node, [&](ValueId result) {
    made.outputs.push_back(is_wanted(result) ? op.graph.add_value(trace.records[result].type) : kNone);
    if (made.outputs.back() == kNone) return;
    op.results.push_back(result);
    op.graph.outputs.push_back(made.outputs.back());
  });
  op.graph.nodes.push_back(std::move(made));
  return op;
}

const std::shared_ptr<const Program>& Recovery::program_of(ValueId node, Op& op) {
  OpPrograms& known = executor_.op_programs();
  if (known.step != run_.step) known = {run_.step, std::vector<std::shared_ptr<const Program>>(step_.trace.records.size())};
  std::shared_ptr<const Program>& program = known.by_record[node];
  if (program && program->outputs.size() == op.results.size()) return program;  // else other results were missing then
  auto compiled = compile(std::move(op.graph), {executor_.device(), executor_.demotion(), step_.precision});
  check_fallbacks(*compiled);
  return program = std::move(compiled);
}

std::vector<BufferRef> Recovery::execute(ValueId node, LocationId location, Op& op) {
  std::vector<BufferRef> outputs;
  for (const ValueId result : op.results) {
    outputs.push_back(std::make_shared<Buffer>(executor_.memory(), step_.trace.records[result].type));
    outputs.back()->where = location;
  }
  executor_.run_steps({program_of(node, op), std::move(op.inputs), std::move(op.scalars), outputs, run_.id});
  for (const BufferRef& output : outputs) {
    output->wait_made();
  }
  return outputs;
}

void Recovery::run_op(ValueId node, LocationId location) {
  bool is_needed = false;
  for_each_result(step_.trace, node, [&](ValueId result) { is_needed |= is_wanted(result); });
  if (!is_needed) return;
  Op op = describe(node, location);
  std::vector<BufferRef> outputs;
  if (!op.failure) {
    try {
      outputs = execute(node, location, op);
    } catch (...) {
      ++failed_ops_;
      op.failure = std::make_shared<Failure>(as_eager_throws(step_.trace.records[node]));
      op.failure->is_told = run_.refusal != nullptr;  // by the barrier
      op.failed_at = node;
    }
  }
  for (size_t i = 0; i < op.results.size(); ++i) {
    const ValueId result = op.results[i];
    if (op.failure) {
      lose(result, op.failure, op.failed_at);
    } else {
      values_[result] = std::move(outputs[i]);
    }
  }
  release_inputs(node);
}

void Recovery::release_inputs(ValueId node) {
  for (const ValueId input : step_.trace.inputs(step_.trace.records[node])) {
    if (input != kNone && --uses_[input] == 0) values_[input].reset();
  }
}

// The output's value, or what its storage held when the op was recorded that failed; null if that is lost too.
BufferRef* Recovery::survivor_of(size_t output) {
  const ValueId root = value_of(output);
  const ValueId lost_at = lost_at_[root];
  if (lost_at == kNone) return &values_[root];
  if (run_.undo.before.empty()) return nullptr;
  for (uint32_t at = run_.undo.before[output]; at != kNone; at = run_.undo.history[at].before) {
    auto& [value, buffer, before] = run_.undo.history[at];
    if (value == kNone) return buffer->error ? nullptr : &buffer;
    const bool is_earlier = value < lost_at || step_.trace.records[value].op == kOpParam;
    if (is_earlier && lost_at_[value] == kNone) return &values_[value];
  }
  return nullptr;
}

void Recovery::deliver() {
  run_.inputs.clear();  // values_ has those that are wanted
  std::vector<BufferRef*> survivors(run_.outputs.size(), nullptr);
  for (size_t i = 0; i < survivors.size(); ++i) {
    if (!is_made(i)) survivors[i] = survivor_of(i);
  }
  for (size_t i = 0; i < survivors.size(); ++i) {
    Buffer& output = *run_.outputs[i];
    if (is_made(i)) continue;
    const BufferRef& value = values_[value_of(i)];
    if (value && value->failure) output.failure = value->failure;
    if (!survivors[i]) {
      output.error = value->error;
      continue;
    }
    const bool is_last =
        std::find(survivors.begin() + static_cast<ptrdiff_t>(i) + 1, survivors.end(), survivors[i]) == survivors.end();
    try {
      take(output, *survivors[i], is_last);
    } catch (...) {
      output.error = std::current_exception();
    }
  }
}

// The output gets the memory of `value`, or a copy of it where somebody else has it too.
void Recovery::take(Buffer& output, BufferRef& value, bool is_last) {
  if (!is_last || value.use_count() > 1) return executor_.copy(*value, output);
  output.completion = value->completion;
  output.host = std::exchange(value->host, {});
  output.own(value->disown());
}

}  // namespace ltc
