#include "kernels/graph/index.h"

#include <algorithm>

namespace ltc::kernels {

int64_t count_of(const Sizes& sizes) {
  int64_t count = 1;
  for (const int64_t size : sizes) count *= size;
  return count;
}

Sizes dense_strides(const Sizes& sizes) {
  Sizes strides(sizes.size(), 1);
  for (size_t dim = sizes.size(); dim-- > 1;) strides[dim - 1] = strides[dim] * sizes[dim];
  return strides;
}

VarId IndexSpace::add(Var var) {
  vars_.push_back(std::move(var));
  return static_cast<VarId>(vars_.size() - 1);
}

int64_t IndexSpace::digit_extent(const Digit& digit) const {
  const int64_t quotients = (vars_[digit.var].extent + digit.div - 1) / digit.div;
  return digit.mod ? std::min(digit.mod, quotients) : quotients;
}

Digit IndexSpace::normal(Digit digit) const {
  if (digit.mod && (vars_[digit.var].extent + digit.div - 1) / digit.div <= digit.mod) digit.mod = 0;
  return digit;
}

std::pair<int64_t, int64_t> IndexSpace::range(const Index& a) const {
  int64_t low = a.constant, high = a.constant;
  for (const Term& term : a.terms) {
    const int64_t most = term.factor * std::max<int64_t>(digit_extent(term.digit) - 1, 0);
    (most < 0 ? low : high) += most;
  }
  return {low, high};
}

// Adds up equal digits, drops what is always 0, and joins neighbouring places: f * (v / a % b) + f * b * (v / (a * b) % c) is
// f * (v / a % (b * c)).
void IndexSpace::simplify(Index& a) const {
  std::ranges::sort(a.terms, {}, &Term::digit);
  std::vector<Term> terms;
  for (const Term& term : a.terms) {
    if (digit_extent(term.digit) <= 1) continue;
    if (!terms.empty() && terms.back().digit == term.digit) {
      terms.back().factor += term.factor;
      if (terms.back().factor == 0) terms.pop_back();
    } else if (term.factor != 0) {
      terms.push_back(term);
    }
  }
  for (bool joined = true; joined;) {
    joined = false;
    for (size_t i = 0; i < terms.size() && !joined; ++i) {
      for (size_t k = 0; k < terms.size() && !joined; ++k) {
        const Digit low = terms[i].digit, high = terms[k].digit;
        if (low.var != high.var || !low.mod || high.div != low.div * low.mod) continue;
        if (terms[k].factor != terms[i].factor * low.mod) continue;
        terms[i].digit = normal({low.var, low.div, high.mod ? low.mod * high.mod : 0});
        terms.erase(terms.begin() + static_cast<std::ptrdiff_t>(k));
        joined = true;
      }
    }
  }
  std::ranges::sort(terms, {}, &Term::digit);
  a.terms = std::move(terms);
}

Index IndexSpace::of_var(VarId id) const {
  Index index{0, {{1, {id, 1, 0}}}};
  simplify(index);
  return index;
}

Index IndexSpace::sum(const Index& a, const Index& b) const {
  Index result = a;
  result.constant += b.constant;
  result.terms.insert(result.terms.end(), b.terms.begin(), b.terms.end());
  simplify(result);
  return result;
}

Index IndexSpace::scaled(const Index& a, int64_t factor) const {
  Index result;
  if (factor == 0) return result;
  result = a;
  result.constant *= factor;
  for (Term& term : result.terms) term.factor *= factor;
  return result;
}

Index IndexSpace::shifted(Index a, int64_t by) const {
  a.constant += by;
  return a;
}

Index IndexSpace::opaque(Var::Kind kind, const Index& of, int64_t by, int64_t extent) {
  const auto key = std::pair{of, std::pair{static_cast<int>(kind), by}};
  const auto known = opaque_.find(key);
  if (known != opaque_.end()) return of_var(known->second);
  const VarId id = add({kind, extent, of, by, 0});
  opaque_.emplace(key, id);
  return of_var(id);
}

namespace {

// a = by * whole + rest, where the factors of `rest` are no multiples of `by`.
struct Parts {
  Index whole, rest;
};

Parts divide(const Index& a, int64_t by) {
  Parts parts;
  for (const Term& term : a.terms) {
    const bool divides = term.factor % by == 0;
    (divides ? parts.whole : parts.rest).terms.push_back({divides ? term.factor / by : term.factor, term.digit});
  }
  parts.rest.constant = (a.constant % by + by) % by;
  parts.whole.constant = (a.constant - parts.rest.constant) / by;
  return parts;
}

// Divisions in kernels round towards zero, so the rest must not be negative: `low`, its least value, is lifted by multiples of
// `by`.
void lift(Parts& parts, int64_t low, int64_t by) {
  const int64_t steps = low < 0 ? (-low + by - 1) / by : 0;
  parts.rest.constant += steps * by;
  parts.whole.constant -= steps;
}

}  // namespace

std::optional<IndexSpace::LargeTerm> IndexSpace::large_term(const Index& a, int64_t by) const {
  for (const Term& term : a.terms) {
    if (term.factor <= 0 || by % term.factor != 0) continue;
    const int64_t step = by / term.factor;
    Index others = a;
    std::erase(others.terms, term);
    const auto [least, most] = range(others);
    if (least >= 0 && most < term.factor && (!term.digit.mod || term.digit.mod % step == 0)) return {{term, step, others}};
  }
  return std::nullopt;
}

Index IndexSpace::quotient(const Index& a, int64_t by) {
  if (by == 1) return a;
  Parts parts = divide(a, by);
  lift(parts, range(parts.rest).first, by);
  const auto& [whole, rest] = parts;
  const auto [low, high] = range(rest);
  if (low >= 0 && high < by) return whole;
  if (const auto large = large_term(rest, by)) {  // its digit moves up
    const auto& [term, step, others] = *large;
    return sum(whole, {0, {{1, normal({term.digit.var, term.digit.div * step, term.digit.mod / step})}}});
  }
  return sum(whole, opaque(Var::Kind::kQuotient, rest, by, high / by + 1));
}

Index IndexSpace::remainder(const Index& a, int64_t by) {
  if (by == 1) return {};
  Parts parts = divide(a, by);
  lift(parts, range(parts.rest).first, by);
  const auto& [whole, rest] = parts;
  const auto [low, high] = range(rest);
  if (low >= 0 && high < by) return rest;
  if (const auto large = large_term(rest, by)) {
    const auto& [term, step, others] = *large;
    return sum(others, {0, {{term.factor, normal({term.digit.var, term.digit.div, step})}}});
  }
  return opaque(Var::Kind::kRemainder, rest, by, by);
}

Index IndexSpace::within(const Index& a, int64_t extent) {
  const auto [low, high] = range(a);
  if (low >= 0 && high < extent) return a;
  return opaque(Var::Kind::kExact, a, extent, extent);
}

Index IndexSpace::linear(const Coords& at, const Sizes& sizes) const {
  const Sizes strides = dense_strides(sizes);
  Index position;
  for (size_t dim = 0; dim < sizes.size(); ++dim) position = sum(position, scaled(at[dim], strides[dim]));
  return position;
}

Coords IndexSpace::split(const Index& position, const Sizes& sizes) {
  Coords at(sizes.size());
  Index rest = position;
  for (size_t dim = sizes.size(); dim-- > 0;) {
    if (sizes[dim] <= 1) continue;
    // The first dim takes what is left: positions lie inside.
    at[dim] =
        count_of({sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(dim)}) == 1 ? rest : remainder(rest, sizes[dim]);
    rest = quotient(rest, sizes[dim]);
  }
  return at;
}

}  // namespace ltc::kernels
