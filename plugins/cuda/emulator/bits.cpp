// Logic, shifts, fields and selections.
#include <bit>

#include "cuda/emulator/table.h"
#include "cuda/emulator/values.h"

namespace ltc::emulator {
namespace {

enum class Logic { kAnd, kOr, kXor };

template <Logic kLogic>
void logic(Thread& t, const Instruction& in) {
  const uint64_t a = get<uint64_t>(t, in, 1), b = get<uint64_t>(t, in, 2);
  set<uint64_t>(t, in, 0, kLogic == Logic::kAnd ? a & b : kLogic == Logic::kOr ? a | b : a ^ b);
}
template <typename T>
void invert(Thread& t, const Instruction& in) {
  set<T>(t, in, 0, static_cast<T>(~get<T>(t, in, 1)));
}
void invert_predicate(Thread& t, const Instruction& in) { set_predicate(t, in, 0, !holds(t, in, 1)); }
template <typename T>
void test_zero(Thread& t, const Instruction& in) {
  set<T>(t, in, 0, get<T>(t, in, 1) == 0);
}

// Distances beyond the width are as the width.
template <typename T>
void shift_left(Thread& t, const Instruction& in) {
  const auto by = get<uint32_t>(t, in, 2);
  set<T>(t, in, 0, by >= 8 * sizeof(T) ? T{0} : static_cast<T>(static_cast<Wide<T>>(get<T>(t, in, 1)) << by));
}
template <typename T>
void shift_right(Thread& t, const Instruction& in) {
  const auto by = get<uint32_t>(t, in, 2);
  const T a = get<T>(t, in, 1);
  const T beyond = std::is_signed_v<T> && a < 0 ? static_cast<T>(-1) : T{0};
  set<T>(t, in, 0, by >= 8 * sizeof(T) ? beyond : static_cast<T>(a >> by));
}
template <bool kLeft, bool kWrap>
void shift_pair(Thread& t, const Instruction& in) {
  const uint64_t pair = uint64_t{get<uint32_t>(t, in, 2)} << 32 | get<uint32_t>(t, in, 1);
  const auto by = get<uint32_t>(t, in, 3);
  const uint32_t n = kWrap ? by & 31 : std::min(by, 32U);
  set<uint32_t>(t, in, 0, static_cast<uint32_t>(kLeft ? (n == 32 ? pair : pair << n >> 32) : pair >> n));
}

template <typename T>
T field_mask(uint32_t length) {
  return length >= 8 * sizeof(T) ? ~T{0} : static_cast<T>((T{1} << length) - 1);
}
template <typename T>
void insert_field(Thread& t, const Instruction& in) {
  const uint32_t at = get<uint32_t>(t, in, 3) & 0xff, length = get<uint32_t>(t, in, 4) & 0xff;
  const T a = get<T>(t, in, 1), b = get<T>(t, in, 2);
  const T mask = at >= 8 * sizeof(T) ? T{0} : static_cast<T>(field_mask<T>(length) << at);
  set<T>(t, in, 0, at >= 8 * sizeof(T) ? b : static_cast<T>((b & ~mask) | (a << at & mask)));
}
template <typename T>
void extract_field(Thread& t, const Instruction& in) {
  constexpr uint32_t kBits = 8 * sizeof(T);
  using U = std::make_unsigned_t<T>;
  const uint32_t at = get<uint32_t>(t, in, 2) & 0xff, length = get<uint32_t>(t, in, 3) & 0xff;
  const U a = get<U>(t, in, 1);
  const bool negative = std::is_signed_v<T> && length && a >> std::min(at + length - 1, kBits - 1) & 1;
  const U field = at >= kBits ? U{0} : static_cast<U>(a >> at);
  const uint32_t there = at >= kBits ? 0 : std::min(length, kBits - at);
  const U result = static_cast<U>((field & field_mask<U>(there)) | (negative ? static_cast<U>(~field_mask<U>(there)) : U{0}));
  set<T>(t, in, 0, static_cast<T>(result));
}

enum class Count { kOnes, kLeadingZeros };
template <typename T, Count kCount>
void count(Thread& t, const Instruction& in) {
  const T a = get<T>(t, in, 1);
  set<uint32_t>(t, in, 0, static_cast<uint32_t>(kCount == Count::kOnes ? std::popcount(a) : std::countl_zero(a)));
}
template <typename T>
void reverse(Thread& t, const Instruction& in) {
  const T a = get<T>(t, in, 1);
  T result = 0;
  for (size_t i = 0; i < 8 * sizeof(T); ++i) result = static_cast<T>(result << 1 | (a >> i & 1));
  set<T>(t, in, 0, result);
}
// The place of the highest bit that is no sign, or all ones.
template <typename T>
void find_bit(Thread& t, const Instruction& in) {
  using U = std::make_unsigned_t<T>;
  const T a = get<T>(t, in, 1);
  const U bits = static_cast<U>(std::is_signed_v<T> && a < 0 ? ~a : a);
  set<uint32_t>(t, in, 0, static_cast<uint32_t>(std::bit_width(bits)) - 1);
}

// d = bytes of a and b, chosen by the nibbles of c; the nibble's highest bit spreads the byte's sign.
void permute(Thread& t, const Instruction& in) {
  const uint64_t bytes = uint64_t{get<uint32_t>(t, in, 2)} << 32 | get<uint32_t>(t, in, 1);
  const auto choice = get<uint32_t>(t, in, 3);
  uint32_t result = 0;
  for (uint32_t i = 0; i < 4; ++i) {
    const uint32_t nibble = choice >> 4 * i & 15, byte = static_cast<uint32_t>(bytes >> 8 * (nibble & 7) & 0xff);
    result |= (nibble & 8 ? (byte >> 7 ? 0xffU : 0U) : byte) << 8 * i;
  }
  set<uint32_t>(t, in, 0, result);
}
void look_up(Thread& t, const Instruction& in) {
  const uint32_t a = get<uint32_t>(t, in, 1), b = get<uint32_t>(t, in, 2), c = get<uint32_t>(t, in, 3);
  const auto table = get<uint32_t>(t, in, 4);
  uint32_t result = 0;
  for (uint32_t i = 0; i < 32; ++i) {
    result |= (table >> ((a >> i & 1) << 2 | (b >> i & 1) << 1 | (c >> i & 1)) & 1) << i;
  }
  set<uint32_t>(t, in, 0, result);
}

void select(Thread& t, const Instruction& in) { t.registers[in.slots[0]] = t.registers[in.slots[holds(t, in, 3) ? 1 : 2]]; }
// A constant predicate may be -1.
template <Logic kLogic>
void predicate_logic(Thread& t, const Instruction& in) {
  const bool a = holds(t, in, 1), b = holds(t, in, 2);
  set_predicate(t, in, 0, kLogic == Logic::kAnd ? a && b : kLogic == Logic::kOr ? a || b : a != b);
}
void move_predicate(Thread& t, const Instruction& in) { set_predicate(t, in, 0, holds(t, in, 1)); }
void move(Thread& t, const Instruction& in) { t.registers[in.slots[0]] = t.registers[in.slots[1]]; }

// A register from two of half its width, or the other way round.
template <typename Half>
void pack(Thread& t, const Instruction& in) {
  t.registers[in.slots[0]] = uint64_t{get<Half>(t, in, 2)} << 8 * sizeof(Half) | get<Half>(t, in, 1);
}
template <typename Half>
void unpack(Thread& t, const Instruction& in) {
  const uint64_t both = t.registers[in.slots[2]];
  set<Half>(t, in, 0, static_cast<Half>(both));
  set<Half>(t, in, 1, static_cast<Half>(both >> 8 * sizeof(Half)));
}

}  // namespace

void add_bits(Table& table) {
  each_bits([&]<typename T>(const std::string& type) {
    table.add("and." + type, 3, logic<Logic::kAnd>);
    table.add("or." + type, 3, logic<Logic::kOr>);
    table.add("xor." + type, 3, logic<Logic::kXor>);
    table.add("not." + type, 2, invert<T>);
    table.add("cnot." + type, 2, test_zero<T>);
    table.add("shl." + type, 3, shift_left<T>);
    table.add("shr." + type, 3, shift_right<T>);
    if constexpr (sizeof(T) > 2) {
      table.add("bfi." + type, 5, insert_field<T>);
      table.add("popc." + type, 2, count<T, Count::kOnes>);
      table.add("clz." + type, 2, count<T, Count::kLeadingZeros>);
      table.add("brev." + type, 2, reverse<T>);
    }
  });
  each_integer([&]<typename T>(const std::string& type) {
    table.add("shr." + type, 3, shift_right<T>);
    if constexpr (sizeof(T) > 2) {
      table.add("bfe." + type, 4, extract_field<T>);
      table.add("bfind." + type, 2, find_bit<T>);
    }
  });
  table.add("and.pred", 3, predicate_logic<Logic::kAnd>);
  table.add("or.pred", 3, predicate_logic<Logic::kOr>);
  table.add("xor.pred", 3, predicate_logic<Logic::kXor>);
  table.add("not.pred", 2, invert_predicate);
  table.add("mov.pred", 2, move_predicate);
  for (const char* type : {"b16", "u16", "s16", "b32", "u32", "s32", "f32", "b64", "u64", "s64", "f64"}) {
    table.add(std::string("mov.") + type, 2, move);
    table.add(std::string("selp.") + type, 4, select);
  }
  table.add("pack.b32", 3, pack<uint16_t>);
  table.add("pack.b64", 3, pack<uint32_t>);
  table.add("unpack.b32", 3, unpack<uint16_t>);
  table.add("unpack.b64", 3, unpack<uint32_t>);
  table.add("shf.l.wrap.b32", 4, shift_pair<true, true>);
  table.add("shf.l.clamp.b32", 4, shift_pair<true, false>);
  table.add("shf.r.wrap.b32", 4, shift_pair<false, true>);
  table.add("shf.r.clamp.b32", 4, shift_pair<false, false>);
  table.add("prmt.b32", 4, permute);
  table.add("lop3.b32", 5, look_up);
}

}  // namespace ltc::emulator
