#include "kernels/plan/emit.h"

#include <algorithm>

#include "kernels/graph/dtype.h"
#include "kernels/graph/reads.h"

namespace ltc::kernels {
namespace {

constexpr std::string_view kSelect = "$0 ? $1 : $2";

}  // namespace

Ref Emitter::apply(std::string_view formula, ltc_dtype of, ltc_dtype result, std::vector<Ref> args) {
  return builder_.add({.code = Code::kFormula, .dtype = result, .args = std::move(args), .of = of, .formula = formula});
}

Ref Emitter::cast(Ref value, ltc_dtype to) {
  const ltc_dtype from = kernel_.insts[value].dtype;
  return from == to ? value : builder_.add({.code = Code::kCast, .dtype = to, .args = {value}, .of = from});
}

ltc_dtype Emitter::sum_dtype(ltc_dtype dtype) const { return is_float(dtype) ? widest_float() : dtype; }

Ref Emitter::inside(const Index& index, int64_t extent, Ref also) {
  const auto [low, high] = kernel_.space.range(index);
  if (low >= 0 && high < extent) return also;
  const Ref holds = builder_.add({.code = Code::kInside, .dtype = LTC_BOOL, .index = index, .integer = extent});
  return also == kNoRef ? holds : apply("(T)($0 & $1)", LTC_BOOL, LTC_BOOL, {also, holds});
}

Ref Emitter::names_place(Ref element, int64_t size) {
  const Ref end = builder_.add({.code = Code::kIndex, .dtype = LTC_I64, .index = {size, {}}});
  return apply("(U)$0 < (U)$1", LTC_I64, LTC_BOOL, {element, end});
}

void Emitter::check_index(const Node& node, Ref holds, int64_t size, Ref guard) {
  if (faults_.word == kNone) return;
  Ref bad = apply("(T)!$0", LTC_BOOL, LTC_BOOL, {holds});
  if (guard != kNoRef) bad = apply("(T)($0 & $1)", LTC_BOOL, LTC_BOOL, {guard, bad});
  kernel_.report = {builder_.buffer(faults_.word, LTC_I64, true), builder_.scalar(faults_.code, LTC_I64)};
  builder_.add({.code = Code::kCheck, .dtype = LTC_BOOL, .args = {bad}, .slot = static_cast<uint32_t>(kernel_.checks.size())});
  kernel_.checks.push_back({node.source, size});
}

Ref Emitter::load(ValueId value, ltc_dtype dtype, const Index& position, Ref guard) {
  const uint32_t slot = builder_.buffer(value, graph_.values[value].dtype, false);
  Inst inst{.code = Code::kLoad, .dtype = dtype, .index = position, .slot = slot, .of = graph_.values[value].dtype};
  if (guard != kNoRef) inst.args = {guard};
  return builder_.add(std::move(inst));
}

void Emitter::store(ValueId value, const Index& position, Ref element, Ref guard) {
  const uint32_t slot = builder_.buffer(value, graph_.values[value].dtype, true);
  Inst inst{.code = Code::kStore, .dtype = graph_.values[value].dtype, .args = {element}, .index = position, .slot = slot};
  if (guard != kNoRef) inst.args.push_back(guard);
  builder_.add(std::move(inst));
}

Ref Emitter::at(ValueId value, const Coords& coords, Ref guard) {
  const auto key = std::tuple{value, coords, guard};
  const auto found = known_.find(key);
  if (found != known_.end()) return found->second;
  const Value& type = graph_.values[value];
  Ref ref;
  if (graph_.is_scalar_param(value)) {
    const ltc_dtype dtype = type.dtype == LTC_F64 ? widest_float() : type.dtype;
    ref = builder_.add({.code = Code::kScalar, .dtype = dtype, .slot = builder_.scalar(value, dtype)});
  } else if (std::ranges::count(type.sizes, 0) > 0) {  // what reads it, as a pad does, does so under a guard that never holds
    ref = cast(builder_.add({.code = Code::kNumber, .dtype = LTC_I64, .integer = 0}), type.dtype);
  } else if (is_stored_(value)) {
    ref = load(value, type.dtype, kernel_.space.linear(coords, type.sizes), guard);
  } else {
    ref = compute(value, coords, guard);
  }
  known_.emplace(key, ref);
  return ref;
}

Ref Emitter::compute(ValueId value, const Coords& coords, Ref guard) {
  const Node& node = graph_.nodes[graph_.values[value].producer];
  const ltc_dtype dtype = graph_.values[value].dtype;
  switch (node.kind) {
    case Kind::kMap: {
      std::vector<Ref> args;
      for (const Read& read : reads_of(graph_, node, coords, kernel_.space)) args.push_back(at(read.operand, read.at, guard));
      const ltc_dtype of = graph_.values[node.in.back()].dtype;
      const std::string_view formula = is_half(of) || is_f8(of) ? node.op->floats : kernels::formula(*node.op, of);
      return apply(formula, of, dtype, std::move(args));
    }
    case Kind::kCast: return cast(at(node.in[0], coords, guard), dtype);
    case Kind::kBits: return bits(node, coords, guard);
    case Kind::kCat: return joined(node, coords, guard);
    case Kind::kGather: {
      const ValueId from = node.in[0];
      const Sizes& sizes = graph_.values[from].sizes;
      const int64_t extent = sizes.empty() ? 1 : sizes[dim_of(node, "dim", 0, sizes.size())];
      const Ref element = at(node.in[1], coords, guard);
      if (faults_.word != kNone) check_index(node, names_place(element, extent), extent, guard);
      const Index picked = builder_.data_index(element, extent);
      const Read read = gathered(graph_, node, coords, picked);
      return at(read.operand, read.at, guard);
    }
    case Kind::kFull:
    case Kind::kArange:
    case Kind::kPhilox: return made(node, coords);
    case Kind::kArgmax: return position_of_largest(node, coords);
    case Kind::kReduce:
    case Kind::kProduct: return folded(node, coords);
    default: return moved(node, coords, guard);
  }
}

Ref Emitter::moved(const Node& node, const Coords& coords, Ref guard) {
  const Read read = reads_of(graph_, node, coords, kernel_.space).at(0);
  Ref holds = guard;
  for (const Condition& condition : read.when) {
    holds = inside(condition.index, condition.extent, holds);
    if (condition.divisor == 1) continue;
    const Ref divides =
        builder_.add({.code = Code::kDivides, .dtype = LTC_BOOL, .index = condition.index, .integer = condition.divisor});
    holds = holds == kNoRef ? divides : apply("(T)($0 & $1)", LTC_BOOL, LTC_BOOL, {holds, divides});
  }
  const Ref element = at(read.operand, read.at, holds);
  if (holds == guard) return element;
  const ltc_dtype dtype = graph_.values[node.out[0]].dtype;
  size_t operand = 1;
  return apply(kSelect, dtype, dtype, {holds, element, cast(number(node, "value", operand), dtype)});
}

Ref Emitter::joined(const Node& node, const Coords& coords, Ref guard) {
  const auto reads = reads_of(graph_, node, coords, kernel_.space);
  const ltc_dtype dtype = graph_.values[node.out[0]].dtype;
  Ref result = kNoRef;
  for (size_t i = reads.size(); i-- > 0;) {
    const Ref holds = inside(reads[i].when[0].index, reads[i].when[0].extent);
    const Ref both = guard == kNoRef || holds == kNoRef ? (holds == kNoRef ? guard : holds)
                                                        : apply("(T)($0 & $1)", LTC_BOOL, LTC_BOOL, {guard, holds});
    const Ref element = at(reads[i].operand, reads[i].at, both);
    result = result == kNoRef || holds == kNoRef ? element : apply(kSelect, dtype, dtype, {holds, element, result});
  }
  return result;
}

Ref Emitter::bits(const Node& node, const Coords& coords, Ref guard) {
  const ltc_dtype from = graph_.values[node.in[0]].dtype;
  const Value& to = graph_.values[node.out[0]];
  if (reads_other_size(graph_, node)) return load(node.in[0], to.dtype, kernel_.space.linear(coords, to.sizes), guard);
  const Ref value = at(node.in[0], coords, guard);
  if (facts(from).name == facts(to.dtype).name) return value;
  return builder_.add({.code = Code::kBits, .dtype = to.dtype, .args = {value}, .of = from});
}

// An attribute, or where it varies the next operand.
Ref Emitter::number(const Node& node, std::string_view attr, size_t& operand) {
  const Attr* given = node.find(attr);
  if (!given && operand < node.in.size()) return at(node.in[operand++], {});
  Inst inst{.code = Code::kNumber, .dtype = LTC_I64};
  if (given && !given->floats.empty()) {
    inst.dtype = widest_float();
    inst.real = given->floats[0];
  } else if (given) {
    inst.integer = given->ints[0];
  }
  return builder_.add(std::move(inst));
}

Ref Emitter::made(const Node& node, const Coords& coords) {
  const Value& result = graph_.values[node.out[0]];
  size_t operand = 0;
  if (node.kind == Kind::kFull) return cast(number(node, "fill_value", operand), result.dtype);
  const Index position = kernel_.space.linear(coords, result.sizes);
  if (node.kind == Kind::kPhilox) {
    const Ref seed = number(node, "seed", operand), offset = number(node, "offset", operand);
    return builder_.add({.code = Code::kPhilox, .dtype = result.dtype, .args = {seed, offset}, .index = position});
  }
  const ltc_dtype in = is_float(result.dtype) ? widest_float() : ltc_dtype{LTC_I64};
  const Ref start = cast(number(node, "start", operand), in);
  const Ref step = node.find("step") ? cast(number(node, "step", operand), in)
                                     : cast(builder_.add({.code = Code::kNumber, .dtype = LTC_I64, .integer = 1}), in);
  const Ref index = cast(builder_.add({.code = Code::kIndex, .dtype = LTC_I64, .index = position}), in);
  const std::string_view formula = is_float(in) ? "$0 + $1 * $2" : "(T)((U)$0 + (U)$1 * (U)$2)";
  return cast(apply(formula, in, in, {start, index, step}), result.dtype);
}

BlockId Emitter::block_of(const Coords& coords) {
  BlockId block = 0;
  for (const Index& index : coords) block = builder_.inner(block, builder_.block_of(index));
  return block;
}

Ref Emitter::folded(const Node& node, const Coords& coords) {
  const ltc_dtype dtype = graph_.values[node.out[0]].dtype;
  const bool is_product = node.kind == Kind::kProduct, adds = is_product || node.op->name == "aten::sum.dim_IntList";
  const ltc_dtype in = adds ? sum_dtype(dtype) : dtype;
  const std::string_view both = formula(*node.op, dtype), initial = both.substr(0, both.find(';'));
  const int64_t length = is_product ? graph_.values[node.in[0]].sizes[2] : row_length(graph_, node);
  const BlockId home = block_of(coords);
  const Ref sum = builder_.add_in(home, {.code = Code::kAccumulator, .dtype = in, .of = in, .formula = initial});
  if (length == 0) return cast(sum, dtype);
  const BlockId loop = builder_.open_loop(home, length);
  const Index r = builder_.loop_index(loop);
  Ref element;
  if (is_product) {
    const Ref x = cast(at(node.in[0], {coords[0], coords[1], r}), in), y = cast(at(node.in[1], {coords[0], r, coords[2]}), in);
    element = apply(formula(*find_op("aten::mul.Tensor"), in), in, in, {x, y});
  } else {
    element = cast(at(node.in[0], row_element(graph_, node, coords, r, kernel_.space).at), in);
  }
  const Ref next = builder_.add_in(
      loop, {.code = Code::kFormula, .dtype = in, .args = {element, sum}, .of = in, .formula = both.substr(initial.size() + 1)});
  builder_.add_in(loop, {.code = Code::kAssign, .dtype = in, .args = {sum, next}});
  builder_.close_loop(loop);
  kernel_.folds.push_back({loop, sum, kNoRef, both.substr(initial.size() + 1)});
  return cast(sum, dtype);
}

Ref Emitter::position_of_largest(const Node& node, const Coords& coords) {
  const ltc_dtype dtype = graph_.values[node.in[0]].dtype;
  const BlockId home = block_of(coords);
  const Ref best = builder_.add_in(home, {.code = Code::kAccumulator, .dtype = dtype, .of = dtype, .formula = "LOWEST"});
  const Ref place = builder_.add_in(home, {.code = Code::kAccumulator, .dtype = LTC_I64, .of = LTC_I64, .formula = "0"});
  const BlockId loop = builder_.open_loop(home, row_length(graph_, node));
  const Index r = builder_.loop_index(loop);
  const Ref element = at(node.in[0], row_element(graph_, node, coords, r, kernel_.space).at);
  const Ref here = builder_.add_in(loop, {.code = Code::kIndex, .dtype = LTC_I64, .index = r});
  const auto in_loop = [&](std::string_view formula, ltc_dtype of, ltc_dtype result, std::vector<Ref> args) {
    return builder_.add_in(loop,
                           {.code = Code::kFormula, .dtype = result, .args = std::move(args), .of = of, .formula = formula});
  };
  const Ref better = in_loop(formula(*node.op, dtype), dtype, LTC_BOOL, {element, best});
  const Ref next_best = in_loop(kSelect, dtype, dtype, {better, element, best});
  const Ref next_place = in_loop(kSelect, LTC_I64, LTC_I64, {better, here, place});
  builder_.add_in(loop, {.code = Code::kAssign, .dtype = dtype, .args = {best, next_best}});
  builder_.add_in(loop, {.code = Code::kAssign, .dtype = LTC_I64, .args = {place, next_place}});
  builder_.close_loop(loop);
  kernel_.folds.push_back({loop, best, place, formula(*node.op, dtype)});
  return place;
}

}  // namespace ltc::kernels
