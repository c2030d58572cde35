#include "core/compile/lowering/symbolic_graph.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/host/sized.h"
#include "core/ir/binary.h"

namespace ltc {
namespace {

constexpr double kExact = 9007199254740992.0;  // integers below it in magnitude are doubles

bool is_whole(double x) { return std::abs(x) < kExact && x == std::trunc(x) && !(x == 0 && std::signbit(x)); }

// Moves the numbers of an attribute out of it, and leaves zeros.
class AttrNumbers {
 public:
  explicit AttrNumbers(GraphSkeleton& skeleton) : skeleton_(skeleton) {}

  AttrsId strip(uint32_t node, AttrsId attrs) {
    AttrList stripped = attrs_of(attrs);
    const size_t before = skeleton_.numbers.size();
    for (uint32_t i = 0; i < stripped.size(); ++i) strip(node, i, stripped[i]);
    return skeleton_.numbers.size() == before ? attrs : intern_attrs(stripped);
  }

 private:
  void strip(uint32_t node, uint32_t index, Attr& attr) {
    if (attr.kind == AttrKind::kInt || attr.kind == AttrKind::kInts) {
      for (uint32_t i = 0; i < attr.ints.size(); ++i) add(node, index, i, std::exchange(attr.ints[i], 0));
    }
    for (uint32_t i = 0; i < attr.floats.size(); ++i) {
      if (is_whole(attr.floats[i])) add(node, index, i, static_cast<int64_t>(std::exchange(attr.floats[i], 0)));
    }
  }

  void add(uint32_t node, uint32_t attr, uint32_t element, int64_t number) {
    skeleton_.numbers.push_back(number);
    skeleton_.places.push_back({node, attr, element, 0, 0, 0});
  }

  GraphSkeleton& skeleton_;
};

void add_sizes(GraphSkeleton& skeleton, const Graph& graph, ValueId value) {
  const std::vector<int64_t>& sizes = graph.type(value).sizes;
  for (uint32_t dim = 0; dim < sizes.size(); ++dim) {
    skeleton.numbers.push_back(sizes[dim]);
    skeleton.places.push_back({value, LTC_NONE, dim, 0, 0, 0});
  }
}

// scale * symbol + offset, unless that is too large.
std::optional<int64_t> value_of(int64_t symbol, int64_t scale, int64_t offset) {
  int64_t result;
  if (__builtin_mul_overflow(symbol, scale, &result) || __builtin_add_overflow(result, offset, &result)) return std::nullopt;
  return result;
}

// 0 where it is too large.
int64_t distance(int64_t value, int64_t symbol) {
  int64_t result;
  return __builtin_sub_overflow(value, symbol, &result) ? 0 : result;
}

}  // namespace

Graph without_numbers(Graph graph) {
  GraphSkeleton unused;
  AttrNumbers attr_numbers(unused);
  for (uint32_t i = 0; i < graph.nodes.size(); ++i) graph.nodes[i].attrs = attr_numbers.strip(i, graph.nodes[i].attrs);
  for (TypeId& id : graph.types) {
    const Type& type = type_of(id);
    id = intern_contiguous(type.dtype, std::vector<int64_t>(type.sizes.size(), 0));
  }
  return graph;
}

GraphSkeleton::GraphSkeleton(const Graph& graph) {
  for (const size_t count : {graph.params.size(), graph.types.size(), graph.nodes.size()})
    structure.push_back(static_cast<uint32_t>(count));
  const auto add_list = [&](const std::vector<ValueId>& list) {
    structure.push_back(static_cast<uint32_t>(list.size()));
    structure.insert(structure.end(), list.begin(), list.end());
  };
  std::vector<bool> is_param(graph.types.size(), false);
  for (const Param& param : graph.params) {
    structure.insert(structure.end(), {param.value, param.scalar, param.alias_output});
    is_param[param.value] = true;
    add_sizes(*this, graph, param.value);
  }
  param_sizes = numbers.size();
  for (ValueId value = 0; value < graph.types.size(); ++value) {
    const Type& type = graph.type(value);
    structure.insert(structure.end(), {static_cast<uint32_t>(type.dtype), static_cast<uint32_t>(type.sizes.size())});
    if (!is_param[value]) add_sizes(*this, graph, value);
  }
  sizes = numbers.size();
  AttrNumbers attr_numbers(*this);
  for (uint32_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    structure.insert(structure.end(), {node.op, attr_numbers.strip(i, node.attrs)});
    add_list(node.inputs);
    add_list(node.outputs);
  }
  add_list(graph.outputs);
}

uint64_t SymbolicGraph::size_bytes() const {
  return (structure_.size() + definitions_.size() + changed_.size()) * sizeof(uint32_t) + example_.size() * sizeof(int64_t) +
         symbolic_.size() * sizeof(ltc_symbolic_number);
}

std::optional<SymbolicGraph> SymbolicGraph::unify(const SymbolicGraph& then, const GraphSkeleton& now) {
  if (then.structure_ != now.structure) return std::nullopt;
  SymbolicGraph result(now);
  for (uint32_t i = 0; i < now.numbers.size(); ++i) {
    if (then.example_[i] == now.numbers[i]) continue;
    if (i < now.sizes && std::min(then.example_[i], now.numbers[i]) < 2) return std::nullopt;
    result.changed_.push_back(i);
  }
  // Numbers that the program is given go first, since the rest follows from them. Smaller ones go first, since larger ones may be
  // their multiples.
  std::ranges::stable_sort(result.changed_, {}, [&](uint32_t i) { return std::pair(i >= now.param_sizes, now.numbers[i]); });
  for (const uint32_t i : result.changed_) {
    ltc_symbolic_number number = result.formula(now, then, i);
    if (number.symbol == result.symbol_count()) result.definitions_.push_back(i);
    result.symbolic_.push_back(number);
  }
  return result;
}

// A number that no symbol explains is one itself. A size of a param is explained only by one that is equal in both examples, all
// others by a multiple too, or by a constant distance: laws with more freedom fit by chance.
ltc_symbolic_number SymbolicGraph::formula(const GraphSkeleton& now, const SymbolicGraph& then, uint32_t number) const {
  enum Law : uint8_t { kEqual, kMultiple, kDistance };
  const int64_t value = now.numbers[number], value_then = then.example_[number];
  ltc_symbolic_number result = now.places[number];
  for (const Law law : {kEqual, kMultiple, kDistance}) {
    if (law != kEqual && number < now.param_sizes) break;
    for (result.symbol = 0; result.symbol < symbol_count(); ++result.symbol) {
      const int64_t symbol = now.numbers[definitions_[result.symbol]], symbol_then = then.example_[definitions_[result.symbol]];
      result.scale = law == kMultiple && symbol > 0 ? value / symbol : 1;
      result.offset = law == kDistance ? distance(value, symbol) : 0;
      if (value_of(symbol, result.scale, result.offset) == value &&
          value_of(symbol_then, result.scale, result.offset) == value_then)
        return result;
    }
  }
  result.symbol = static_cast<uint32_t>(symbol_count());
  result.scale = 1;
  result.offset = 0;
  return result;
}

std::optional<std::vector<int64_t>> SymbolicGraph::match(const GraphSkeleton& graph) const {
  if (!has_structure_of(graph)) return std::nullopt;
  std::vector<int64_t> symbols, expected = example_;
  for (const uint32_t definition : definitions_) symbols.push_back(graph.numbers[definition]);
  for (size_t i = 0; i < changed_.size(); ++i) {
    const ltc_symbolic_number& number = symbolic_[i];
    const auto value = value_of(symbols[number.symbol], number.scale, number.offset);
    if (!value) return std::nullopt;
    expected[changed_[i]] = *value;
  }
  if (expected != graph.numbers) return std::nullopt;
  return symbols;
}

void SymbolicGraph::write(ByteWriter& out, const Graph& example) const {
  write_graph(out, example);
  out.numbers(definitions_);
  out.numbers(changed_);
  out.numbers(symbolic_);
}

SymbolicGraph SymbolicGraph::read(ByteReader& in) {
  SymbolicGraph result{GraphSkeleton(read_graph(in))};
  result.definitions_ = in.numbers<uint32_t>();
  result.changed_ = in.numbers<uint32_t>();
  result.symbolic_ = in.numbers<ltc_symbolic_number>();
  const auto is_number = [&](uint32_t number) { return number < result.example_.size(); };
  const auto is_formula = [&](const ltc_symbolic_number& number) { return number.symbol < result.definitions_.size(); };
  if (!std::ranges::all_of(result.definitions_, is_number) || !std::ranges::all_of(result.changed_, is_number) ||
      !std::ranges::all_of(result.symbolic_, is_formula) || result.changed_.size() != result.symbolic_.size() ||
      result.definitions_.empty()) {
    fail(Code::kDataCorrupt, "saved bytes are damaged: formulas");
  }
  return result;
}

ltc_symbolic_sizes SymbolicGraph::table() const {
  auto table = host::sized_extension<ltc_symbolic_sizes>(LTC_EXTENSION_SYMBOLIC, 1);
  table.symbol_count = symbol_count();
  table.number_count = symbolic_.size();
  table.numbers = symbolic_.data();
  return table;
}

}  // namespace ltc
