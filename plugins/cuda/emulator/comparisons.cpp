// setp and set. A comparison of floats whose name ends in u holds for NaN too; all others but num and nan do not.
#include <cmath>

#include "cuda/emulator/table.h"
#include "cuda/emulator/values.h"

namespace ltc::emulator {
namespace {

enum class Relation { kEqual, kNotEqual, kLess, kLessOrEqual, kGreater, kGreaterOrEqual, kNumber, kNan };

template <typename T>
bool is_nan(T x) {
  if constexpr (std::is_floating_point_v<T>) return std::isnan(x);
  return false;
}

template <typename T, Relation kRelation, bool kUnordered>
bool compare(T a, T b) {
  const bool nan = is_nan(a) || is_nan(b);
  if (kRelation == Relation::kNumber || kRelation == Relation::kNan) return nan == (kRelation == Relation::kNan);
  if (nan) return kUnordered;
  switch (kRelation) {
    case Relation::kEqual: return a == b;
    case Relation::kNotEqual: return a != b;
    case Relation::kLess: return a < b;
    case Relation::kLessOrEqual: return a <= b;
    case Relation::kGreater: return a > b;
    default: return a >= b;
  }
}

enum class Combine { kNone, kAnd, kOr, kXor };

// d = a ? b, or d and its negation; with a predicate c as well, it is combined with both.
template <typename T, Relation kRelation, bool kUnordered, Combine kCombine>
void set_if(Thread& t, const Instruction& in) {
  using Value = decltype(number<T>(t, in, 1));
  const bool pair = in.pair;
  const int first = pair ? 2 : 1;
  const bool is = compare<Value, kRelation, kUnordered>(number<T>(t, in, first), number<T>(t, in, first + 1));
  const auto combined = [&](bool value) {
    if (kCombine == Combine::kNone) return value;
    const bool c = holds(t, in, first + 2);
    return kCombine == Combine::kAnd ? value && c : kCombine == Combine::kOr ? value || c : value != c;
  };
  const bool yes = combined(is), no = combined(!is);
  set_predicate(t, in, 0, yes);
  if (pair) set_predicate(t, in, 1, no);
}

template <typename T, Relation kRelation, bool kUnordered>
void add_relation(Table& table, const std::string& relation, const std::string& type) {
  table.add("setp." + relation + "." + type, 3, 4, set_if<T, kRelation, kUnordered, Combine::kNone>);
  table.add("setp." + relation + ".and." + type, 4, 5, set_if<T, kRelation, kUnordered, Combine::kAnd>);
  table.add("setp." + relation + ".or." + type, 4, 5, set_if<T, kRelation, kUnordered, Combine::kOr>);
  table.add("setp." + relation + ".xor." + type, 4, 5, set_if<T, kRelation, kUnordered, Combine::kXor>);
}

template <typename T>
void add_ordered(Table& table, const std::string& type) {
  add_relation<T, Relation::kEqual, false>(table, "eq", type);
  add_relation<T, Relation::kNotEqual, false>(table, "ne", type);
  add_relation<T, Relation::kLess, false>(table, "lt", type);
  add_relation<T, Relation::kLessOrEqual, false>(table, "le", type);
  add_relation<T, Relation::kGreater, false>(table, "gt", type);
  add_relation<T, Relation::kGreaterOrEqual, false>(table, "ge", type);
}
template <typename T>
void add_float(Table& table, const std::string& type) {
  add_ordered<T>(table, type);
  add_relation<T, Relation::kEqual, true>(table, "equ", type);
  add_relation<T, Relation::kNotEqual, true>(table, "neu", type);
  add_relation<T, Relation::kLess, true>(table, "ltu", type);
  add_relation<T, Relation::kLessOrEqual, true>(table, "leu", type);
  add_relation<T, Relation::kGreater, true>(table, "gtu", type);
  add_relation<T, Relation::kGreaterOrEqual, true>(table, "geu", type);
  add_relation<T, Relation::kNumber, false>(table, "num", type);
  add_relation<T, Relation::kNan, false>(table, "nan", type);
}

}  // namespace

void add_comparisons(Table& table) {
  each_integer([&]<typename T>(const std::string& type) { add_ordered<T>(table, type); });
  each_integer([&]<typename T>(const std::string& type) {
    if constexpr (std::is_unsigned_v<T>) {
      add_relation<T, Relation::kLess, false>(table, "lo", type);
      add_relation<T, Relation::kLessOrEqual, false>(table, "ls", type);
      add_relation<T, Relation::kGreater, false>(table, "hi", type);
      add_relation<T, Relation::kGreaterOrEqual, false>(table, "hs", type);
    }
  });
  each_bits([&]<typename T>(const std::string& type) {
    add_relation<T, Relation::kEqual, false>(table, "eq", type);
    add_relation<T, Relation::kNotEqual, false>(table, "ne", type);
  });
  add_float<float>(table, "f32");
  add_float<double>(table, "f64");
  add_float<F16>(table, "f16");
  add_float<BF16>(table, "bf16");
}

}  // namespace ltc::emulator
