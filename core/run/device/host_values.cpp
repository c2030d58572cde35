#include "core/run/device/host_values.h"

#include <algorithm>
#include <mutex>

#include "core/base/log.h"
#include "core/ops/op_table.h"

namespace ltc {
namespace {

constexpr size_t kMostRecords = 64;
constexpr int64_t kMostElements = 1 << 16;  // of each value
constexpr size_t kMostKnown = 256;

bool is_exact(TypeId id) {
  if (id == kNoType) return false;
  const Type& type = type_of(id);
  return is_whole(type.dtype) && type.element_count <= kMostElements;
}

// Of one result, which an op of the table makes from its operands alone.
bool is_computable(const Trace& trace, ValueId value) {
  const Record& record = trace.records[value];
  if (!is_node(record) || !is_exact(record.type) || is_collective(record.op)) return false;
  const bool has_more = value + 1 < trace.records.size() && trace.records[value + 1].op == kOpResult;
  return !has_more && find_op_row(op_name(record.op)) != nullptr;
}

// What the value is made from, itself included, in the order of the records; empty if there is too much of it.
std::vector<ValueId> records_of(const Trace& trace, ValueId value) {
  std::vector<ValueId> found{value};
  for (size_t i = 0; i < found.size(); ++i) {
    const Record& record = trace.records[found[i]];
    if (record.op == kOpScalar) continue;
    if (record.op == kOpParam ? !is_exact(record.type) : !is_computable(trace, found[i])) return {};
    for (const ValueId input : trace.inputs(record)) {
      if (input == kNone || std::ranges::count(found, input)) continue;
      if (found.size() == kMostRecords) return {};
      found.push_back(input);
    }
  }
  std::ranges::sort(found);
  return found;
}

// The rest of the union is zero, so that equal numbers are equal bytes.
Scalar only_used(const Scalar& number, TypeId type) {
  if (type_of(type).dtype == DType::kC128) return number;
  Scalar used{.c = {0, 0}};
  used.i = number.i;
  return used;
}

bool equal(std::span<const Scalar> a, std::span<const Scalar> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

HostValue run(const HostSlice& slice) {
  try {
    const Root root{static_cast<ValueId>(slice.trace.records.size() - 1)};
    return host_runner()(build_graph(slice.trace, {&root, 1}).graph, slice.inputs, slice.scalars).at(0);
  } catch (const std::exception& error) {
    log::debug("the host could not compute a value that is read, so the device does: ", error.what());
    return {};
  }
}

}  // namespace

std::optional<HostSlice> host_slice(const TraceState& trace_state, ValueId value) {
  const Trace& trace = trace_state.trace;
  const std::vector<ValueId> found = records_of(trace, value);
  if (found.empty() || trace.records[value].op == kOpParam) return {};
  HostSlice slice;
  std::vector<ValueId> inputs;
  size_t params = 0, scalars = 0;
  auto next = found.begin();
  for (ValueId i = 0; i <= value; ++i) {
    const Record& record = trace.records[i];
    const size_t param = record.op == kOpParam ? params++ : 0, scalar = record.op == kOpScalar ? scalars++ : 0;
    if (*next != i) continue;
    ++next;
    if (record.op == kOpParam) {
      const HostValue& sent = trace_state.inputs[param]->sent;
      if (!sent.data || sent.type != record.type) return {};
      slice.inputs.push_back(sent);
      slice.trace.add_param(kOpParam, record.type);
    } else if (record.op == kOpScalar) {
      slice.scalars.push_back(only_used(trace_state.scalars[scalar], record.type));
      slice.trace.add_param(kOpScalar, record.type);
    } else {
      inputs.clear();
      for (const ValueId input : trace.inputs(record)) {
        const auto place = std::ranges::lower_bound(found, input) - found.begin();
        inputs.push_back(input == kNone ? kNone : static_cast<ValueId>(place));
      }
      slice.trace.add_node(record.op, record.type, record.attrs, inputs);
    }
  }
  return slice;
}

HostValue HostValues::compute(const HostSlice& slice) {
  if (!slice.inputs.empty()) return run(slice);
  {
    std::lock_guard lock(mutex_);
    const auto [begin, end] = known_.equal_range(slice.trace.hash);
    for (auto it = begin; it != end; ++it) {
      const Known& known = it->second;
      if (known.trace == slice.trace && equal(known.scalars, slice.scalars)) return known.value;
    }
  }
  HostValue value = run(slice);
  std::lock_guard lock(mutex_);
  if (known_.size() == kMostKnown) known_.clear();
  if (value.data) known_.emplace(slice.trace.hash, Known{slice.trace, slice.scalars, value});
  return value;
}

}  // namespace ltc
