// Ops that make values from numbers, random ones among them.
#include "pjrt/stablehlo/ops.h"

namespace ltc::pjrt {
namespace {

Values full(Call& call) {
  return {call.m.broadcast(cast(call.m, call.number("fill_value"), call.type().dtype), call.type().sizes)};
}

Values arange(Call& call) {
  Module& m = call.m;
  const ltc_dtype wide = is_kind(call.type().dtype, "f") ? LTC_F64 : LTC_I64;
  const Value i = m.iota(wide, call.type().sizes, 0);
  const auto everywhere = [&](const char* name) { return m.broadcast(m.convert(call.number(name), wide), i.type.sizes); };
  const Value start = everywhere("start"), step = call.node.find<double>("step") ? everywhere("step") : m.filled(i.type, 1);
  return {m.convert(m.eval("add(x,multiply(y,z))", {start, i, step}), call.type().dtype)};
}

// The words of Philox4x32-10, each an array with an element per block.
Values random_words(Module& m, const Value& seed, const Value& offset, int64_t blocks) {
  constexpr const char *kLow = "ui32(x)", *kHigh = "ui32(shift_right_logical(x,32))";
  const Sizes sizes{blocks};
  const Value counter = m.eval("add(x,y)", {m.broadcast(offset, sizes), m.iota(LTC_U64, sizes, 0)});
  const Value zero = m.filled({LTC_U32, sizes}, 0), wide = m.broadcast(seed, sizes);
  Values c{m.eval(kLow, {counter}), m.eval(kHigh, {counter}), zero, zero}, key{m.eval(kLow, {wide}), m.eval(kHigh, {wide})};
  for (int round = 0; round < 10; ++round) {
    const Value p0 = m.eval("multiply(ui64(x),3528531795)", {c[0]}), p1 = m.eval("multiply(ui64(x),3449720151)", {c[2]});
    const auto mixed = [&](const Value& product, const Value& word, const Value& k) {
      return m.eval("xor(xor(ui32(shift_right_logical(x,32)),y),z)", {product, word, k});
    };
    c = {mixed(p1, c[1], key[0]), m.eval(kLow, {p1}), mixed(p0, c[3], key[1]), m.eval(kLow, {p0})};
    key = {m.eval("add(x,2654435769)", {key[0]}), m.eval("add(x,3144134277)", {key[1]})};
  }
  return c;
}

Values philox(Call& call) {
  Module& m = call.m;
  const Type& type = call.type();
  const bool is_wide = element(type.dtype).bits == 64;
  const int64_t count = type.count(), per_block = is_wide ? 2 : 4, blocks = (count + per_block - 1) / per_block;
  const Value seed = m.bitcast(call.number("seed"), LTC_U64), offset = m.bitcast(call.number("offset"), LTC_U64);
  Values parts = random_words(m, seed, offset, blocks);
  const auto pair = [&](const Value& low, const Value& high) {
    return m.eval("or(ui64(x),shift_left(ui64(y),32))", {low, high});
  };
  if (is_wide) parts = {pair(parts[0], parts[1]), pair(parts[2], parts[3])};
  const ltc_dtype dtype = parts[0].type.dtype;
  for (Value& part : parts) part = m.reshape(part, {blocks, 1});
  const Value all = m.op("concatenate", parts, {dtype, {blocks, per_block}}, axis("dimension", 1));
  const Value bits = m.reshape(m.slice(m.reshape(all, {blocks * per_block}), {0}, {count}, {1}), type.sizes);
  if (!is_kind(type.dtype, "f")) return {m.bitcast(bits, type.dtype)};
  const Value unit = m.broadcast(m.constant({type.dtype, {}}, is_wide ? "0x3CA0000000000000" : "0x33800000"), type.sizes);
  return {
      m.eval(is_wide ? "multiply(f64(shift_right_logical(x,11)),y)" : "multiply(f32(shift_right_logical(x,8)),y)", {bits, unit})};
}

constexpr Row kRows[] = {
    {"aten::full", "s:T", "fibh", {}, full},
    {"aten::arange.start_step", ":T", "fi", {}, arange},
    {"ltc::philox", "ss:T", "fw", {}, philox},
};

}  // namespace

std::span<const Row> creation_ops() { return kRows; }

}  // namespace ltc::pjrt
