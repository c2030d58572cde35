#include "core/run/reads/host_values.h"

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

// Whether an op of the table makes it, as its one result, from its operands alone.
bool is_computable(const Trace& trace, ValueId value) {
  const Record& record = trace.records[value];
  if (!is_node(record) || !is_exact(record.type) || is_collective(record.op)) return false;
  const bool has_more = value + 1 < trace.records.size() && trace.records[value + 1].op == kOpResult;
  return !has_more && find_op_row(op_name(record.op)) != nullptr;
}

// The records that the value is made from, its own included, in order; empty if the host may not compute one, or if there are too
// many.
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

std::optional<HostSlice> host_slice(const Trace& trace, std::span<const BufferRef> inputs, std::span<const Scalar> scalars,
                                    ValueId value) {
  const std::vector<ValueId> found = records_of(trace, value);
  if (found.empty() || trace.records[value].op == kOpParam) return {};
  HostSlice slice;
  std::vector<ValueId> operands;
  auto input = inputs.begin();
  auto scalar = scalars.begin();
  auto next = found.begin();
  for (ValueId i = 0; i <= value; ++i) {
    const Record& record = trace.records[i];
    const bool is_needed = *next == i;
    if (is_needed) ++next;
    if (record.op == kOpParam) {
      const BufferRef& buffer = *input++;
      if (!is_needed) continue;
      if (!buffer->sent.data || buffer->sent.type != record.type) return {};
      slice.inputs.push_back(buffer->sent);
      slice.trace.add_param(kOpParam, record.type);
    } else if (record.op == kOpScalar) {
      const Scalar& number = *scalar++;
      if (!is_needed) continue;
      slice.scalars.push_back(only_used(number, record.type));
      slice.trace.add_param(kOpScalar, record.type);
    } else if (is_needed) {
      operands.clear();
      for (const ValueId operand : trace.inputs(record)) {
        const auto place = std::ranges::lower_bound(found, operand) - found.begin();
        operands.push_back(operand == kNone ? kNone : static_cast<ValueId>(place));
      }
      slice.trace.add_node(record.op, record.type, record.attrs, operands);
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
