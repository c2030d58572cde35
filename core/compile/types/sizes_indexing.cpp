// Elements by index. The indices themselves are values: a plugin checks them when it runs.
#include <algorithm>

#include "core/compile/types/rules.h"
#include "core/ops/batch_sizes.h"

namespace ltc::types {
namespace {

using Shapes = std::vector<Dims>;

// A value of rank 0 as a vector of one element.
Dims as_vector(const Dims& sizes) { return sizes.empty() ? Dims{1} : sizes; }

bool is_empty(const Dims& sizes) { return std::ranges::count(sizes, 0) > 0; }

// Whether `index` reaches beyond `sizes` in no dim but `free`.
bool lies_in(const Dims& index, const Dims& sizes, std::optional<size_t> free) {
  if (index.size() != sizes.size()) return false;
  for (size_t i = 0; i < index.size(); ++i) {
    if (i != free && index[i] > sizes[i]) return false;
  }
  return true;
}

bool gather(const Arguments& call, Shapes& shapes) {
  const Dims self = as_vector(call.sizes("self")), index = as_vector(call.sizes("index"));
  const auto dim = dim_of(call.integer("dim"), self.size());
  if (!dim || (!is_empty(index) && !lies_in(index, self, dim))) return false;
  return shapes.push_back(call.sizes("index")), true;
}

bool scatter(const Arguments& call, Shapes& /*shapes*/) {
  const Dims self = as_vector(call.sizes("self")), index = as_vector(call.sizes("index"));
  const auto dim = dim_of(call.integer("dim"), self.size());
  if (!dim || is_empty(index)) return dim.has_value();
  const Type* src = call.tensor("src");
  return lies_in(index, self, dim) && (!src || lies_in(index, as_vector(src->sizes), std::nullopt));
}

// `self`, the dim as long as the index.
std::optional<Dims> selected(const Arguments& call) {
  Dims sizes = call.sizes("self");
  const auto dim = dim_of(call.integer("dim"), sizes.size());
  const Dims& index = call.sizes("index");
  if (!dim || index.size() > 1) return std::nullopt;
  if (!sizes.empty()) sizes[*dim] = as_vector(index)[0];
  return sizes.empty() && !is_empty(index) && as_vector(index)[0] != 1 ? std::nullopt : std::optional(sizes);
}

bool index_select(const Arguments& call, Shapes& shapes) {
  const auto sizes = selected(call);
  return sizes && (shapes.push_back(*sizes), true);
}

bool index_write(const Arguments& call, Shapes& /*shapes*/) {
  const auto sizes = selected(call);
  const Type* source = call.tensor("source");
  return sizes && (!source || as_vector(source->sizes) == as_vector(*sizes));
}

// Indices side by side leave their dims where they were, others move to the front.
bool index(const Arguments& call, Shapes& shapes) {
  const Dims& self = call.sizes("self");
  const auto indices = call.tensors("indices");
  if (indices.size() > self.size()) return false;
  Dims places, sizes;
  size_t first = indices.size(), last = 0, count = 0;
  for (size_t i = 0; i < self.size(); ++i) {
    if (i >= indices.size() || indices[i] == kNone) {
      sizes.push_back(self[i]);
      continue;
    }
    if (!broadcast_onto(places, call.graph().type(indices[i]).sizes)) return false;
    first = std::min(first, i), last = i, ++count;
  }
  const size_t at = count > 0 && last - first + 1 == count ? first : 0;
  sizes.insert(sizes.begin() + static_cast<int64_t>(at), places.begin(), places.end());
  return shapes.push_back(sizes), true;
}

// Each mask stands for the dims that it has; how many elements it selects is a value.
bool masks(const Arguments& call, Shapes& /*shapes*/) {
  const Dims& self = call.sizes("self");
  size_t dim = 0;
  for (const ValueId index : call.tensors("indices")) {
    const Dims mask = index == kNone ? Dims() : call.graph().type(index).sizes;
    const size_t rank = index == kNone ? 1 : mask.size();
    if (rank > self.size() - dim || !std::equal(mask.begin(), mask.end(), self.begin() + static_cast<int64_t>(dim))) return false;
    dim += rank;
  }
  return true;
}

// oneDNN chooses how large the reserve is, and reads as much: only the forward's own is that large.
bool lstm_reserve(const Arguments& call, Shapes& /*shapes*/) {
  const ValueId reserve = call.tensors("reserve")[0];
  const auto types = [&](const Node& node, size_t begin) {
    std::vector<TypeId> all;
    for (size_t i = begin; i < std::min<size_t>(node.inputs.size(), begin + 7); ++i)
      all.push_back(node.inputs[i] == kNone ? kNoType : call.graph().types[node.inputs[i]]);
    return all;
  };
  return std::ranges::any_of(call.graph().nodes, [&](const Node& node) {
    return op_name(node.op) == "ltc::lstm_layer" && node.outputs.size() == 4 && node.outputs[3] == reserve &&
           types(node, 0) == types(call.node(), 3);
  });
}

bool packed(const Arguments& call, Shapes& /*shapes*/) {
  const std::vector<int64_t> states = as_vector(call.sizes("hx")), input = as_vector(call.sizes("input"));
  return !states.empty() && !input.empty() && are_batch_sizes(as_vector(call.ints("batch_sizes")), states[0], input[0]);
}

// The hidden state has the cell's size unless it is projected.
bool packed_lstm(const Arguments& call, Shapes& shapes) {
  return packed(call, shapes) && (call.tensor("weight_hr") || call.sizes("hx") == call.sizes("cx"));
}

bool packed_rnn(const Arguments& call, Shapes& shapes) {
  const Attr* const function = call.constant("nonlinearity");
  return packed(call, shapes) && function && !function->strings.empty() &&
         (function->strings[0] == "tanh" || function->strings[0] == "relu");
}

bool same_count(const Arguments& call, Shapes& /*shapes*/) {
  return call.tensor("index")->element_count == call.tensor("source")->element_count;
}

bool topk(const Arguments& call, Shapes& shapes) {
  Dims sizes = call.sizes("self");
  const auto dim = dim_of(call.integer("dim"), sizes.size());
  const int64_t k = call.integer("k");
  if (!dim || k < 0 || k > as_vector(sizes)[*dim]) return false;
  if (!sizes.empty()) sizes[*dim] = k;
  return shapes.push_back(sizes), true;
}

// A row of borders for all, or one for each row of values.
bool search(const Arguments& call, Shapes& /*shapes*/) {
  const Dims& borders = call.sizes("sorted_sequence");
  const Type &values = *call.tensor("self"), *sorter = call.tensor("sorter");
  if (borders.empty() || (sorter && sorter->sizes != borders)) return false;
  return borders.size() == 1 ||
         (borders.size() == values.sizes.size() && std::equal(borders.begin(), borders.end() - 1, values.sizes.begin()));
}

}  // namespace

std::vector<NamedFunction> index_functions() {
  return {{"gather", gather},
          {"scatter", scatter},
          {"index_select", index_select},
          {"index_write", index_write},
          {"index", index},
          {"search", search},
          {"masks", masks},
          {"lstm_reserve", lstm_reserve},
          {"same_count", same_count},
          {"topk", topk},
          {"packed", packed},
          {"packed_lstm", packed_lstm},
          {"packed_rnn", packed_rnn}};
}

}  // namespace ltc::types
