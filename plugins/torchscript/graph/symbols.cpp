#include "torchscript/graph/symbols.h"

#include <c10/util/StringUtil.h>

#include <algorithm>
#include <cmath>

#include "torchscript/graph/errors.h"

namespace ltc::torchscript {
namespace {

// Large, so that choices by size are those for large ones, and odd, so that no rows look like whole vectors. A value of four
// symbolic dims still has fewer elements than an int64_t counts.
constexpr int64_t kBeforeFirstStandIn = 4097;

// The whole number that it may be; 0, which is no stand-in, for all others.
int64_t whole(double number) {
  constexpr double kMost = 1e15;
  return std::abs(number) < kMost ? static_cast<int64_t>(number) : 0;
}

const torch::jit::Symbol& mark() {
  static const auto symbol = torch::jit::Symbol::attr("symbolic");
  return symbol;
}

}  // namespace

void archive(plugin::Archive& io, Symbols& symbols) {
  std::vector<int64_t> numbers;
  for (const auto& [stand_in, formula] : symbols.formulas_)
    numbers.insert(numbers.end(), {stand_in, formula.symbol, formula.scale, formula.offset});
  io(symbols.count_, numbers);
  if (!io.reads()) return;
  if (numbers.size() % 4 != 0) plugin::Archive::refuse();
  for (size_t i = 0; i < numbers.size(); i += 4) {
    if (numbers[i + 1] < 0 || static_cast<uint64_t>(numbers[i + 1]) >= symbols.count_) plugin::Archive::refuse();
    symbols.formulas_[numbers[i]] = {static_cast<uint32_t>(numbers[i + 1]), numbers[i + 2], numbers[i + 3]};
  }
}

bool Symbols::contains_any(c10::ArrayRef<int64_t> numbers) const {
  return !empty() && std::ranges::any_of(numbers, [this](int64_t number) { return contains(number); });
}

bool Symbols::is_part_of(const c10::IValue& constant) const {
  if (empty()) return false;
  const auto is_stand_in = [this](double number) { return contains(whole(number)); };
  if (constant.isInt()) return contains(constant.toInt());
  if (constant.isDouble()) return is_stand_in(constant.toDouble());
  if (constant.isIntList()) return contains_any(constant.toIntVector());
  if (constant.isDoubleList()) return std::ranges::any_of(constant.toDoubleVector(), is_stand_in);
  if (!constant.isComplexDouble()) return false;
  return is_stand_in(constant.toComplexDouble().real()) || is_stand_in(constant.toComplexDouble().imag());
}

int64_t Symbols::value(int64_t number, c10::ArrayRef<int64_t> values) const {
  const auto found = formulas_.find(number);
  if (found == formulas_.end()) return number;
  const Formula& formula = found->second;
  return formula.scale * values[formula.symbol] + formula.offset;
}

std::vector<int64_t> Symbols::values_of(c10::ArrayRef<int64_t> numbers, c10::ArrayRef<int64_t> values) const {
  std::vector<int64_t> result;
  result.reserve(numbers.size());
  for (const int64_t number : numbers) result.push_back(value(number, values));
  return result;
}

c10::IValue Symbols::constant_value(const c10::IValue& constant, c10::ArrayRef<int64_t> values) const {
  const auto real = [&](double number) {
    return contains(whole(number)) ? static_cast<double>(value(whole(number), values)) : number;
  };
  if (constant.isInt()) return value(constant.toInt(), values);
  if (constant.isDouble()) return real(constant.toDouble());
  if (constant.isIntList()) return values_of(constant.toIntVector(), values);
  if (constant.isDoubleList()) {
    std::vector<double> list = constant.toDoubleVector();
    std::ranges::transform(list, list.begin(), real);
    return list;
  }
  const c10::complex<double> number = constant.toComplexDouble();
  return c10::complex<double>(real(number.real()), real(number.imag()));
}

std::string Symbols::text() const {
  std::vector<std::string> lines;
  for (const auto& [number, formula] : formulas_) {
    lines.push_back(c10::str("# ", number, " is ", formula.scale == 1 ? "" : c10::str(formula.scale, " * "), "symbol ",
                             formula.symbol, formula.offset == 0 ? "" : c10::str(" + ", formula.offset), "\n"));
  }
  std::ranges::sort(lines);
  return c10::Join("", lines);
}

GeneralGraph::GeneralGraph(const ltc_graph& graph, const ltc_symbolic_sizes& sizes) : graph_(graph), last_(kBeforeFirstStandIn) {
  symbols_.count_ = sizes.symbol_count;
  copy(graph);
  for (size_t i = 0; i < sizes.number_count; ++i) put(sizes.numbers[i]);
}

void GeneralGraph::copy(const ltc_graph& graph) {
  types_.resize(graph.value_count);
  for (size_t i = 0; i < graph.value_count; ++i) {
    Type& own = types_[i];
    own = {*graph.types[i], {graph.types[i]->sizes, graph.types[i]->sizes + graph.types[i]->rank}};
    own.type.sizes = own.sizes.data();
    taken_.insert(own.sizes.begin(), own.sizes.end());
    type_pointers_.push_back(&own.type);
  }
  nodes_.resize(graph.node_count);
  for (size_t i = 0; i < graph.node_count; ++i) {
    Node& own = nodes_[i];
    own.node = *graph.nodes[i];
    own.attrs.resize(own.node.attr_count);
    for (size_t k = 0; k < own.node.attr_count; ++k) {
      Attr& attr = own.attrs[k];
      attr.attr = *own.node.attrs[k];
      const ltc_attr_kind kind = attr.attr.kind;
      if (kind == LTC_ATTR_INT || kind == LTC_ATTR_INTS) {
        attr.ints.assign(attr.attr.value.ints, attr.attr.value.ints + attr.attr.count);
        attr.attr.value.ints = attr.ints.data();
        taken_.insert(attr.ints.begin(), attr.ints.end());
      } else if (kind == LTC_ATTR_FLOAT || kind == LTC_ATTR_FLOATS) {
        attr.floats.assign(attr.attr.value.floats, attr.attr.value.floats + attr.attr.count);
        attr.attr.value.floats = attr.floats.data();
        for (const double number : attr.floats) taken_.insert(whole(number));
      }
      own.pointers.push_back(&attr.attr);
    }
    own.node.attrs = own.pointers.data();
    node_pointers_.push_back(&own.node);
  }
  graph_.types = type_pointers_.data();
  graph_.nodes = node_pointers_.data();
}

int64_t GeneralGraph::stand_in(const ltc_symbolic_number& number) {
  for (const auto& [known, formula] : symbols_.formulas_) {
    if (formula.symbol == number.symbol && formula.scale == number.scale && formula.offset == number.offset) return known;
  }
  do last_ += 2;
  while (!taken_.insert(last_).second);
  symbols_.formulas_[last_] = {number.symbol, number.scale, number.offset};
  return last_;
}

void GeneralGraph::put(const ltc_symbolic_number& number) {
  const auto check = [&](bool condition) {
    if (!condition)
      throw Failure(LTC_INVALID_ARGUMENT, c10::str("[lower] a symbolic number of ", number.owner, " that is not in the graph"));
  };
  check(number.symbol < symbols_.count_);
  if (number.attr == LTC_NONE) {
    check(number.owner < types_.size() && number.element < types_[number.owner].sizes.size());
    types_[number.owner].sizes[number.element] = stand_in(number);
    return;
  }
  check(number.owner < nodes_.size() && number.attr < nodes_[number.owner].attrs.size());
  Attr& attr = nodes_[number.owner].attrs[number.attr];
  check(number.element < attr.ints.size() + attr.floats.size());
  if (attr.ints.empty()) {
    attr.floats[number.element] = static_cast<double>(stand_in(number));
  } else {
    attr.ints[number.element] = stand_in(number);
  }
}

bool is_symbolic(const torch::jit::Node& node) { return node.hasAttribute(mark()); }

void mark_symbolic(torch::jit::Node& node) { node.i_(mark(), 1); }

}  // namespace ltc::torchscript
