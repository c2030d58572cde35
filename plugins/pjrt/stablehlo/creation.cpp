// Ops that make values from numbers, random ones among them.
#include <array>

#include "pjrt/stablehlo/ops.h"

namespace ltc::pjrt {
namespace {

Values full(Call& call) {
  Module& m = call.module;
  return {m.broadcast(cast(m, call.number("fill_value"), call.type().dtype), call.type().sizes)};
}

Values arange(Call& call) {
  Module& m = call.module;
  const ltc_dtype wide = is_float(call.type().dtype) ? LTC_F64 : LTC_I64;
  const Value i = m.iota(wide, call.type().sizes, 0);
  const auto everywhere = [&](const char* name) { return m.broadcast(m.convert(call.number(name), wide), i.type.sizes); };
  const Value scaled = call.find("step") ? m.op("multiply", {i, everywhere("step")}) : i;
  return {m.convert(m.op("add", {everywhere("start"), scaled}), call.type().dtype)};
}

// ---- Philox4x32-10, on arrays with an element per block

using Words = std::array<Value, 4>;

Value shifted(Module& m, const char* op, const Value& x, int64_t bits) { return m.op(op, {x, m.like(x, bits)}); }
Value low_half(Module& m, const Value& x) { return m.convert(x, LTC_U32); }
Value high_half(Module& m, const Value& x) { return m.convert(shifted(m, "shift_right_logical", x, 32), LTC_U32); }

Value product(Module& m, const Value& word, int64_t multiplier) {
  const Value wide = m.convert(word, LTC_U64);
  return m.op("multiply", {wide, m.like(wide, multiplier)});
}

Words random_words(Module& m, const Value& seed, const Value& first_counter, int64_t blocks) {
  const Sizes sizes{blocks};
  const Value counter = m.op("add", {m.broadcast(first_counter, sizes), m.iota(LTC_U64, sizes, 0)});
  const Value zero = m.filled({LTC_U32, sizes}, 0);
  Words c{low_half(m, counter), high_half(m, counter), zero, zero};
  Value key[2] = {low_half(m, seed), high_half(m, seed)};
  for (int round = 0; round < 10; ++round) {
    const Value p0 = product(m, c[0], 0xD2511F53), p1 = product(m, c[2], 0xCD9E8D57);
    const auto mixed = [&](const Value& p, const Value& word, const Value& k) {
      return m.op("xor", {m.op("xor", {high_half(m, p), word}), m.broadcast(k, sizes)});
    };
    c = {mixed(p1, c[1], key[0]), low_half(m, p1), mixed(p0, c[3], key[1]), low_half(m, p0)};
    key[0] = m.op("add", {key[0], m.number(LTC_U32, 0x9E3779B9)});
    key[1] = m.op("add", {key[1], m.number(LTC_U32, 0xBB67AE85)});
  }
  return c;
}

// Elements of blocks one behind the other, the first `count` of them.
Value in_order(Module& m, const Values& parts, int64_t count) {
  const int64_t blocks = parts[0].type.count(), width = static_cast<int64_t>(parts.size());
  Values columns;
  for (const Value& part : parts) columns.push_back(m.reshape(part, {blocks, 1}));
  const Value all = m.op("concatenate", columns, {parts[0].type.dtype, {blocks, width}}, "dimension = 1 : i64");
  return m.slice(m.reshape(all, {blocks * width}), {0}, {count}, {1});
}

// The topmost bits of random ones, as many as a float holds, as a number below 1.
Value below_one(Module& m, const Value& bits, int64_t unused, const Type& type, double unit) {
  const Value number = m.convert(shifted(m, "shift_right_logical", bits, unused), type.dtype);
  return m.op("multiply", {number, m.broadcast(m.convert(m.real(unit), type.dtype), number.type.sizes)});
}

Values philox(Call& call) {
  Module& m = call.module;
  const Type& type = call.type();
  const int64_t count = type.count(), per_block = bits_of(type.dtype) == 64 ? 2 : 4;
  const Value seed = m.bitcast(call.number("seed"), LTC_U64), offset = m.bitcast(call.number("offset"), LTC_U64);
  const Words w = random_words(m, seed, offset, (count + per_block - 1) / per_block);
  Values parts(w.begin(), w.end());
  if (per_block == 2) {
    const auto pair = [&](const Value& low, const Value& high) {
      return m.op("or", {m.convert(low, LTC_U64), shifted(m, "shift_left", m.convert(high, LTC_U64), 32)});
    };
    parts = {pair(w[0], w[1]), pair(w[2], w[3])};
  }
  const Value bits = in_order(m, parts, count);
  const Value numbers = type.dtype == LTC_F32   ? below_one(m, bits, 8, type, 0x1p-24)
                        : type.dtype == LTC_F64 ? below_one(m, bits, 11, type, 0x1p-53)
                                                : m.bitcast(bits, type.dtype);
  return {m.reshape(numbers, type.sizes)};
}

constexpr Row kRows[] = {
    {"aten::full", "s:T", "fibh", "size:I? fill_value:s? dtype:dn?", full},
    {"aten::arange.start_step", ":T", "fi", "start:s end:s? step:s? dtype:dn?", arange},
    {"ltc::philox", "ss:T", "fw", "seed:s? offset:s? size:I? dtype:d?", philox},
};

}  // namespace

std::span<const Row> creation_ops() { return kRows; }

}  // namespace ltc::pjrt
