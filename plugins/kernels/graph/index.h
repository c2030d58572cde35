// Where an element lies, as arithmetic over loop variables: what makes views free.
//
// An index is a constant plus factors times digits. A digit is (variable / div) % mod, a place of the variable in some mixed
// radix. Reshaping splits a variable into digits and joins them again, so a chain of views over one loop ends as few terms,
// mostly one. An index that does not simplify becomes a variable of its own, so every index stays of this form.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace ltc::kernels {

using Sizes = std::vector<int64_t>;
using VarId = uint32_t;

struct Digit {
  VarId var = 0;
  int64_t div = 1;
  int64_t mod = 0;  // 0: none, the quotient is small enough
  auto operator<=>(const Digit&) const = default;
};

struct Term {
  int64_t factor = 1;
  Digit digit;
  auto operator<=>(const Term&) const = default;
};

struct Index {
  int64_t constant = 0;
  std::vector<Term> terms;  // ordered by digit, no two alike, no factor 0
  auto operator<=>(const Index&) const = default;
};

// One per dim.
using Coords = std::vector<Index>;

// An integer from 0 to extent - 1. An index whose guard does not hold may have other values; it is then not used.
struct Var {
  enum class Kind : uint8_t { kLoop, kData, kExact, kQuotient, kRemainder };
  Kind kind = Kind::kLoop;
  int64_t extent = 1;
  Index of;          // kExact: the index itself; kQuotient and kRemainder: of / by, of % by
  int64_t by = 1;    //
  uint32_t ref = 0;  // kData: the instruction that gives the value
};

// Owns the variables of one kernel.
class IndexSpace {
 public:
  VarId add(Var var);
  const Var& var(VarId id) const { return vars_[id]; }
  size_t size() const { return vars_.size(); }

  Index of_var(VarId id) const;
  Index sum(const Index& a, const Index& b) const;
  Index scaled(const Index& a, int64_t factor) const;
  Index shifted(Index a, int64_t by) const;
  Index quotient(const Index& a, int64_t by);
  Index remainder(const Index& a, int64_t by);
  // The same value, known to lie in [0, extent) where it is used.
  Index within(const Index& a, int64_t extent);

  // Row-major position of a point, and back.
  Index linear(const Coords& at, const Sizes& sizes) const;
  Coords split(const Index& position, const Sizes& sizes);

  // The least and the largest value.
  std::pair<int64_t, int64_t> range(const Index& a) const;

 private:
  // A term that divides `by` into steps, over others that cannot carry into it.
  struct LargeTerm {
    Term term;
    int64_t step;
    Index others;
  };
  std::optional<LargeTerm> large_term(const Index& a, int64_t by) const;

  int64_t digit_extent(const Digit& digit) const;
  Digit normal(Digit digit) const;
  void simplify(Index& a) const;
  Index opaque(Var::Kind kind, const Index& of, int64_t by, int64_t extent);

  std::vector<Var> vars_;
  std::map<std::pair<Index, std::pair<int, int64_t>>, VarId> opaque_;
};

int64_t count_of(const Sizes& sizes);
Sizes dense_strides(const Sizes& sizes);

}  // namespace ltc::kernels
