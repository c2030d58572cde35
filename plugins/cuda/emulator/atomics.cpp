// atom, red and fences.
#include <algorithm>

#include "cuda/emulator/places.h"
#include "cuda/emulator/table.h"

namespace ltc::emulator {
namespace {

enum class Update { kAdd, kLeast, kMost, kAnd, kOr, kXor, kExchange, kCompare, kUpTo, kDownTo };

template <typename T, Update kUpdate>
T updated(T old, T b, T c) {
  if constexpr (kUpdate == Update::kExchange) return b;
  if constexpr (kUpdate == Update::kLeast) return std::min(old, b);
  if constexpr (kUpdate == Update::kMost) return std::max(old, b);
  if constexpr (kUpdate == Update::kCompare) return old == b ? c : old;
  if constexpr (kUpdate == Update::kAdd) {
    if constexpr (std::is_floating_point_v<T>)
      return old + b;
    else
      return static_cast<T>(static_cast<std::make_unsigned_t<T>>(old) + static_cast<std::make_unsigned_t<T>>(b));
  } else if constexpr (std::is_unsigned_v<T>) {
    if constexpr (kUpdate == Update::kAnd) return old & b;
    if constexpr (kUpdate == Update::kOr) return old | b;
    if constexpr (kUpdate == Update::kXor) return old ^ b;
    if constexpr (kUpdate == Update::kUpTo) return old >= b ? 0 : old + 1;
    if constexpr (kUpdate == Update::kDownTo) return old == 0 || old > b ? b : old - 1;
  }
  return old;
}

template <Space kSpace, typename T, Update kUpdate, bool kResult>
void update(Thread& t, const Instruction& in) {
  constexpr int kFirst = kResult ? 1 : 0;
  std::byte* at = place<kSpace>(t, address_in<kSpace>(t, in, kFirst), sizeof(T), Access::kAtomic);
  T old;
  std::memcpy(&old, at, sizeof old);
  const T made =
      updated<T, kUpdate>(old, get<T>(t, in, kFirst + 1), kUpdate == Update::kCompare ? get<T>(t, in, kFirst + 2) : T{});
  std::memcpy(at, &made, sizeof made);
  if constexpr (kResult) set<T>(t, in, 0, old);
}

template <Space kSpace, typename T, Update kUpdate>
void add_update(Table& table, const std::string& space, const std::string& name) {
  constexpr int kOperands = kUpdate == Update::kCompare ? 4 : 3;
  for (const char* order : {"", ".relaxed.gpu", ".relaxed.cta", ".acquire.gpu", ".release.gpu", ".acq_rel.gpu"}) {
    table.add("atom" + std::string(order) + space + name, kOperands, update<kSpace, T, kUpdate, true>);
    if (kUpdate == Update::kExchange || kUpdate == Update::kCompare) continue;
    table.add("red" + std::string(order) + space + name, kOperands - 1, update<kSpace, T, kUpdate, false>);
  }
}

template <Space kSpace, typename Unsigned, typename Signed>
void add_width(Table& table, const std::string& space, const std::string& bits) {
  add_update<kSpace, Unsigned, Update::kAdd>(table, space, ".add.u" + bits);
  add_update<kSpace, Signed, Update::kAdd>(table, space, ".add.s" + bits);
  add_update<kSpace, Unsigned, Update::kLeast>(table, space, ".min.u" + bits);
  add_update<kSpace, Signed, Update::kLeast>(table, space, ".min.s" + bits);
  add_update<kSpace, Unsigned, Update::kMost>(table, space, ".max.u" + bits);
  add_update<kSpace, Signed, Update::kMost>(table, space, ".max.s" + bits);
  add_update<kSpace, Unsigned, Update::kAnd>(table, space, ".and.b" + bits);
  add_update<kSpace, Unsigned, Update::kOr>(table, space, ".or.b" + bits);
  add_update<kSpace, Unsigned, Update::kXor>(table, space, ".xor.b" + bits);
  add_update<kSpace, Unsigned, Update::kExchange>(table, space, ".exch.b" + bits);
  add_update<kSpace, Unsigned, Update::kCompare>(table, space, ".cas.b" + bits);
}

template <Space kSpace>
void add_space(Table& table, const std::string& space) {
  add_width<kSpace, uint32_t, int32_t>(table, space, "32");
  add_width<kSpace, uint64_t, int64_t>(table, space, "64");
  add_update<kSpace, uint32_t, Update::kUpTo>(table, space, ".inc.u32");
  add_update<kSpace, uint32_t, Update::kDownTo>(table, space, ".dec.u32");
  add_update<kSpace, float, Update::kAdd>(table, space, ".add.f32");
  add_update<kSpace, double, Update::kAdd>(table, space, ".add.f64");
}

// Threads see memory in the order in which they run.
void fence(Thread&, const Instruction&) {}

}  // namespace

void add_atomics(Table& table) {
  add_space<Space::kGeneric>(table, "");
  add_space<Space::kGlobal>(table, ".global");
  add_space<Space::kShared>(table, ".shared");
  for (const char* scope : {"cta", "gl", "sys"}) table.add(std::string("membar.") + scope, 0, fence);
  for (const char* order : {"sc", "acq_rel"}) {
    for (const char* scope : {"cta", "gpu", "sys"}) table.add(std::string("fence.") + order + "." + scope, 0, fence);
  }
}

}  // namespace ltc::emulator
