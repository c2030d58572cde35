#include "kernels/fuse/collective.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>

#include "kernels/graph/dtype.h"
#include "ltc/entry.h"

namespace ltc::kernels {
namespace {

constexpr std::pair<std::string_view, CollectiveKind> kKinds[] = {
    {"ltc_c10d::all_reduce", CollectiveKind::kAllReduce}, {"ltc_c10d::broadcast", CollectiveKind::kBroadcast},
    {"ltc_c10d::all_gather", CollectiveKind::kAllGather}, {"ltc_c10d::reduce_scatter", CollectiveKind::kReduceScatter},
    {"ltc_c10d::all_to_all", CollectiveKind::kAllToAll},
};
constexpr std::pair<std::string_view, Reduction> kReductions[] = {
    {"sum", Reduction::kSum}, {"product", Reduction::kProduct}, {"min", Reduction::kMin}, {"max", Reduction::kMax}};

const ltc_attr* find(const ltc_node& node, std::string_view name) { return ltc_find_attr(&node, name.data(), name.size(), ""); }

CollectiveKind kind_of(std::string_view op) {
  return std::ranges::find(kKinds, op, [](const auto& row) { return row.first; })->second;
}

bool reduces(CollectiveKind kind) { return kind == CollectiveKind::kAllReduce || kind == CollectiveKind::kReduceScatter; }

std::optional<Reduction> reduction_of(const ltc_node& node) {
  const ltc_attr* op = find(node, "op");
  if (!op) return std::nullopt;
  const auto found =
      std::ranges::find(kReductions, plugin::view(op->value.strings[0]), [](const auto& row) { return row.first; });
  return found == std::end(kReductions) ? std::nullopt : std::optional(found->second);
}

bool can_reduce(ltc_dtype dtype) {
  constexpr ltc_dtype kTaken[] = {LTC_U8, LTC_I8, LTC_I32, LTC_I64, LTC_F16, LTC_BF16, LTC_F32, LTC_F64};
  return std::ranges::find(kTaken, dtype) != std::end(kTaken);
}

// The elements of so many rows of the value.
std::vector<int64_t> elements(std::vector<int64_t> rows, const Value& value) {
  int64_t row = 1;
  for (size_t dim = 1; dim < value.sizes.size(); ++dim) row *= value.sizes[dim];
  for (int64_t& count : rows) count *= row;
  return rows;
}

}  // namespace

bool is_collective(const plugin::Node& node) {
  const OpRow* row = find_op(node.name());
  return row && row->kind == Kind::kCollective;
}

bool is_library_collective(const plugin::Node& node) {
  const ltc_type& input = *node.graph.abi.types[node.abi.inputs[0]];
  if (!find(node.abi, "group") || bits_of(input.dtype) % 8 != 0) return false;
  return !reduces(kind_of(node.name())) || (can_reduce(input.dtype) && reduction_of(node.abi));
}

int64_t group_of(const plugin::Node& node) { return find(node.abi, "group")->value.ints[0]; }

void import_reduction(const ltc_node& abi, Node& node) {
  const auto reduction = reduction_of(abi);
  if (reduction) node.attrs.push_back({"reduction", LTC_ATTR_INT, {static_cast<int64_t>(*reduction)}, {}});
}

Collective collective(const Graph& graph, const Node& node) {
  const Value& input = graph.values[node.in[0]];
  const CollectiveKind kind = kind_of(node.op->name);
  return {.kind = kind,
          .dtype = input.dtype,
          .group = node.integer("group", 0),
          .count = kind == CollectiveKind::kReduceScatter ? input.count / std::max<int64_t>(input.sizes[0], 1) : input.count,
          .reduction = static_cast<Reduction>(node.integer("reduction", 0)),
          .root = node.integer("root", 0),
          .to = elements(node.integers("to"), input),
          .from = elements(node.integers("from_"), input)};
}

int64_t result_count(const Collective& of, const Node& node) {
  switch (of.kind) {
    case CollectiveKind::kAllGather: return of.count * node.integer("ranks", 1);
    case CollectiveKind::kAllToAll: return std::accumulate(of.from.begin(), of.from.end(), int64_t{0});
    default: return of.count;
  }
}

}  // namespace ltc::kernels
