#include "core/deploy/sizes.h"

#include <algorithm>
#include <map>

#include "core/base/error.h"

namespace ltc::deploy {
namespace {

[[noreturn]] void fail_without(const GraphNumber& place) {
  fail(Code::kDataCorrupt, "its graph has no number [", place.owner, ", ", static_cast<int32_t>(place.attr), ", ", place.element,
       "]");
}

void set(AttrList& attrs, const GraphNumber& place, int64_t value) {
  if (place.attr >= attrs.size()) fail_without(place);
  Attr& attr = attrs[place.attr];
  if (attr.kind == AttrKind::kInt || attr.kind == AttrKind::kInts) {
    if (place.element >= attr.ints.size()) fail_without(place);
    attr.ints[place.element] = value;
  } else if (place.element < attr.floats.size()) {
    attr.floats[place.element] = static_cast<double>(value);
  } else {
    fail_without(place);
  }
}

}  // namespace

TypeId resized(const Type& type, const std::vector<int64_t>& sizes) {
  if (!is_valid({type.dtype, sizes, std::vector<int64_t>(sizes.size(), 0)})) {
    std::string text;
    for (const int64_t size : sizes) text += cat(text.empty() ? "" : ",", size);
    fail(Code::kInvalidArgument, "a value would have sizes [", text, "]");
  }
  if (!type.dense || type.contiguous) return intern_contiguous(type.dtype, sizes);
  const std::vector<int64_t> order = memory_order(type);
  std::vector<int64_t> in_order;
  for (const int64_t dim : order) in_order.push_back(sizes[static_cast<size_t>(dim)]);
  const std::vector<int64_t> steps = contiguous_strides(in_order);
  std::vector<int64_t> strides(sizes.size());
  for (size_t i = 0; i < order.size(); ++i) strides[static_cast<size_t>(order[i])] = steps[i];
  return intern_type(type.dtype, sizes, strides);
}

Sizes examples_of(std::span<const Dimension> dimensions) {
  Sizes sizes;
  for (const Dimension& dimension : dimensions) sizes.push_back(dimension.example);
  return sizes;
}

int64_t Formula::value(std::span<const int64_t> sizes) const {
  int64_t value = dimensions.empty() ? 0 : scale;
  bool overflows = false;
  for (const uint32_t dimension : dimensions) overflows |= __builtin_mul_overflow(value, sizes[dimension], &value);
  overflows |= __builtin_add_overflow(value, offset, &value);
  if (overflows) fail(Code::kInvalidArgument, "a number of its graph would be too large");
  const int64_t quotient = value / divisor;
  return value % divisor < 0 ? quotient - 1 : quotient;
}

std::string Formula::text(std::span<const Dimension> names) const {
  std::string text;
  for (const uint32_t dimension : dimensions) text += cat(text.empty() ? "" : "*", names[dimension].name);
  if (text.empty()) return cat(value({}));
  if (scale != 1) text = cat(scale, "*", text);
  if (offset != 0) text = cat("(", text, offset > 0 ? "+" : "", offset, ")");
  return divisor == 1 ? text : cat("floor(", text, "/", divisor, ")");
}

uint32_t Formula::plain_dimension() const {
  return dimensions.size() == 1 && scale == 1 && offset == 0 && divisor == 1 ? dimensions[0] : kNone;
}

Graph with_sizes(const Graph& example, std::span<const SizeRule> rules, std::span<const int64_t> sizes) {
  Graph graph = example;
  std::map<uint32_t, std::vector<int64_t>> types;
  std::map<uint32_t, AttrList> attrs;
  for (const SizeRule& rule : rules) {
    const int64_t value = rule.formula.value(sizes);
    for (const GraphNumber& place : rule.places) {
      if (place.attr == kNone) {
        if (place.owner >= graph.types.size()) fail_without(place);
        const auto type = types.try_emplace(place.owner, graph.type(place.owner).sizes).first;
        if (place.element >= type->second.size()) fail_without(place);
        type->second[place.element] = value;
      } else {
        if (place.owner >= graph.nodes.size()) fail_without(place);
        set(attrs.try_emplace(place.owner, attrs_of(graph.nodes[place.owner].attrs)).first->second, place, value);
      }
    }
  }
  for (const auto& [value, of_value] : types) graph.types[value] = resized(graph.type(value), of_value);
  for (const auto& [node, list] : attrs) graph.nodes[node].attrs = intern_attrs(list);
  return graph;
}

}  // namespace ltc::deploy
