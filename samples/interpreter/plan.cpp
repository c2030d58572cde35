#include "plan.h"

#include <algorithm>

#include "ltc/archive.hpp"

namespace interpreter {

using ltc::plugin::Archive;
using ltc::plugin::Graph;

namespace {

// The dtype that picks the kernel: of the first operand that is no condition, else of the result.
ltc_dtype picking_dtype(const Node& node, std::string_view types) {
  const size_t at = types.find_first_of("TNA+");
  return at < types.find(':') && node.has_input(at) ? node.input(at).dtype : node.output(0).dtype;
}

// The row that computes the node; null where none does.
const Op* find(const Node& node) {
  for (const Table* table : tables) {
    const auto* const row = table->find(node);
    if (!row) continue;
    const Op& op = row->handler;
    return matches_types(node, op.types, [&op](ltc_dtype dtype) { return op.kernels.at(dtype) != nullptr; }) ? &op : nullptr;
  }
  return nullptr;
}

const Op* find(std::string_view name) {
  for (const Table* table : tables) {
    if (const auto* const row = table->named(name)) return &row->handler;
  }
  return nullptr;
}

std::vector<Attribute> attributes_of(const Node& node) {
  std::vector<Attribute> attributes;
  for (const ltc_attr* attr : std::span(node.abi.attrs, node.abi.attr_count)) {
    if (attr->kind == LTC_ATTR_STRING || attr->kind == LTC_ATTR_STRINGS) continue;  // of no op here
    const auto* const values = attr->value.ints;                                    // or floats, of the same size
    attributes.push_back({std::string(ltc::plugin::view(attr->name)), attr->kind, {values, values + attr->count}});
  }
  return attributes;
}

constexpr auto is_value = [](uint32_t value) { return value != LTC_NONE; };

}  // namespace

void claim(const ltc_graph& abi, uint32_t* cluster) {
  const Graph graph(abi);
  for (size_t i = 0; i < graph.size(); ++i) cluster[i] = find(graph.node(i)) ? 1 : 0;
}

Plan::Plan(const ltc_graph& abi) {
  const Graph graph(abi);
  for (uint32_t value = 0; value < abi.value_count; ++value) {
    const ltc_type& type = graph.type(value);
    types_.push_back({type.dtype, {type.sizes, type.sizes + type.rank}, ltc::plugin::bytes_of(type)});
  }
  for (const ltc_param* param : graph.params()) (graph.is_scalar(param->value) ? scalars_ : inputs_).push_back(param->value);
  outputs_.assign(graph.outputs().begin(), graph.outputs().end());
  for (size_t i = 0; i < graph.size(); ++i) {
    const Node node = graph.node(i);
    const Op* const op = find(node);
    if (!op) throw node.failure("is not in the tables of ops in this form");
    const auto in = node.inputs(), out = node.outputs();
    steps_.push_back({std::string(node.name()),
                      picking_dtype(node, op->types),
                      {in.begin(), in.end()},
                      {out.begin(), out.end()},
                      attributes_of(node)});
  }
  derive();
}

void Plan::derive() {
  std::vector<bool> is_named(types_.size());
  for (size_t i = steps_.size(); i-- > 0;) {
    Step& step = steps_[i];
    const Op* const op = find(step.op);
    step.kernel = op ? op->kernels.at(step.dtype) : nullptr;
    if (!step.kernel) Archive::refuse();
    may_fail_ |= op->reads_indices;
    for (const auto* const values : {&step.in, &step.out}) {
      for (const uint32_t value : *values) {
        if (!is_value(value)) continue;
        if (value >= types_.size()) Archive::refuse();
        if (!is_named[value]) step.ends.push_back(value);
        is_named[value] = true;
      }
    }
  }
}

// ---- runs

Call Plan::call(const Step& step, const std::vector<char*>& memory, std::vector<Memory>& made) const {
  const auto array = [&](uint32_t value) {
    if (!is_value(value)) return Array{};
    if (!memory[value] && !made[value]) made[value] = make_memory(types_[value].bytes);
    return Array{&types_[value], memory[value] ? memory[value] : made[value].get()};
  };
  Call call{step.attributes, {}, {}};
  std::ranges::transform(step.in, std::back_inserter(call.in), array);
  std::ranges::transform(step.out, std::back_inserter(call.out), array);
  return call;
}

void Plan::run(const std::vector<char*>& memory) const {
  std::vector<Memory> made(types_.size());
  std::vector<uint8_t> is_good(types_.size(), 1);
  std::optional<ltc::plugin::Error> error;
  for (uint32_t i = 0; i < steps_.size(); ++i) {
    const Step& step = steps_[i];
    bool good = std::ranges::all_of(step.in, [&](uint32_t value) { return !is_value(value) || is_good[value]; });
    try {
      if (good) step.kernel(call(step, memory, made));
    } catch (...) {
      good = false;
      if (!error) error = ltc::plugin::current_error();
      if (error->node == LTC_NONE) error->node = i;
    }
    for (const uint32_t value : step.out) {
      if (is_value(value)) is_good[value] = good;
    }
    for (const uint32_t value : step.ends) made[value].reset();
  }
  if (!error) return;
  for (const uint32_t value : outputs_) error->good_outputs.push_back(is_good[value]);
  throw Failure(*error);
}

// ---- saved plans

constexpr std::string_view kFormat = "interpreter 2";  // change it with the fields

static void archive(Archive& io, Type& type) { io(type.dtype, type.sizes, type.bytes); }
static void archive(Archive& io, Attribute& attribute) { io(attribute.name, attribute.kind, attribute.values); }
static void archive(Archive& io, Step& step) { io(step.op, step.dtype, step.in, step.out, step.attributes); }

std::string Plan::save() const { return ltc::plugin::save(kFormat, types_, steps_, inputs_, scalars_, outputs_); }

Plan::Plan(std::string_view saved) {
  ltc::plugin::load(kFormat, saved, types_, steps_, inputs_, scalars_, outputs_);
  for (const auto* const values : {&inputs_, &scalars_, &outputs_}) {
    if (std::ranges::any_of(*values, [this](uint32_t value) { return value >= types_.size(); })) Archive::refuse();
  }
  derive();
}

}  // namespace interpreter
