// Reductions, and what picks, puts and sorts by index.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "conformance/ops/reference_call.h"

namespace ltc::conformance {
namespace {

// Calls body(element of the output, element of the input) for each element of the input

template <typename Body>
void reduce(const ReferenceCall& call, Body body) {
  const Array& x = call.input(0);
  const Sizes dims = call.dims("dim", x.sizes.size());
  Sizes kept = x.sizes;  // the output's, keepdim or not
  for (const int64_t dim : dims) kept[static_cast<size_t>(dim)] = 1;
  const Broadcast to(kept, x.sizes);
  for (int64_t i = 0; i < x.count(); ++i) body(to.at(i), i);
}

template <Real (*kReal)(Real, Real), int64_t (*kInt)(int64_t, int64_t)>
void fold(const ReferenceCall& call, std::optional<int64_t> start) {
  const Array& x = call.input(0);
  Array& out = call.output(0);
  const auto count = static_cast<size_t>(out.count());
  std::vector<Real> reals(count, static_cast<Real>(start.value_or(0)));
  std::vector<int64_t> ints(count, start.value_or(0));
  std::vector<bool> begun(count, start.has_value());
  reduce(call, [&](int64_t to, int64_t from) {
    const auto t = static_cast<size_t>(to);
    if (is_floating(x.dtype)) reals[t] = begun[t] ? kReal(reals[t], x.real(from)) : Real(x.real(from));
    if (!is_floating(x.dtype)) ints[t] = begun[t] ? kInt(ints[t], x.integer(from)) : x.integer(from);
    begun[t] = true;
  });
  for (size_t i = 0; i < count; ++i) {
    if (is_floating(x.dtype)) out.set_real(static_cast<int64_t>(i), static_cast<double>(reals[i]));
    if (!is_floating(x.dtype)) out.set_integer(static_cast<int64_t>(i), ints[i]);
  }
}

Real plus(Real a, Real b) { return a + b; }
Real times(Real a, Real b) { return a * b; }
void sum(const ReferenceCall& call) { fold<plus, add>(call, 0); }
void prod(const ReferenceCall& call) { fold<times, mul>(call, 1); }
void amax(const ReferenceCall& call) { fold<maximum, maximum>(call, std::nullopt); }

// NaN before all numbers, then the larger one.
bool greater_element(const Array& x, int64_t a, int64_t b) {
  if (!is_floating(x.dtype)) return x.integer(a) > x.integer(b);
  const double left = x.real(a), right = x.real(b);
  return std::isnan(left) ? !std::isnan(right) : left > right;
}

void argmax(const ReferenceCall& call) {
  const Array& x = call.input(0);
  const auto dim = static_cast<size_t>(call.integer("dim", 0));
  std::vector<int64_t> best(static_cast<size_t>(call.output(0).count()), -1);
  reduce(call, [&](int64_t to, int64_t from) {
    int64_t& current = best[static_cast<size_t>(to)];
    if (current < 0 || greater_element(x, from, current)) current = from;
  });
  for (size_t i = 0; i < best.size(); ++i) call.output(0).set_integer(static_cast<int64_t>(i), position(best[i], x.sizes)[dim]);
}

void cumsum(const ReferenceCall& call) {
  const Array& x = call.input(0);
  Array& out = call.output(0);
  const auto dim = static_cast<size_t>(call.integer("dim", 0));
  const int64_t stride = strides_of(x.sizes)[dim];
  std::vector<Real> sums(static_cast<size_t>(x.count()));
  for (int64_t i = 0; i < x.count(); ++i) {
    const bool first = position(i, x.sizes)[dim] == 0;
    if (is_floating(x.dtype)) {
      const Real before = first ? Real(0) : sums[static_cast<size_t>(i - stride)];
      sums[static_cast<size_t>(i)] = before + x.real(i);
      out.set_real(i, static_cast<double>(sums[static_cast<size_t>(i)]));
    } else {
      out.set_integer(i, add(first ? 0 : out.integer(i - stride), x.integer(i)));
    }
  }
}

// ---- by index

void gather(const ReferenceCall& call) {
  const Array &x = call.input(0), &index = call.input(1);
  const auto dim = static_cast<size_t>(call.integer("dim", 0));
  for (int64_t i = 0; i < index.count(); ++i) {
    Sizes at = position(i, index.sizes);
    at[dim] = index.integer(i);
    copy_element(x, dot(at, strides_of(x.sizes)), call.output(0), i);
  }
}

template <bool kAdds>
void scatter(const ReferenceCall& call) {
  call.copy_bytes();
  const Array &index = call.input(1), &src = call.input(2);
  Array& out = call.output(0);
  const auto dim = static_cast<size_t>(call.integer("dim", 0));
  for (int64_t i = 0; i < index.count(); ++i) {
    Sizes at = position(i, index.sizes);
    const int64_t from = dot(at, strides_of(src.sizes));
    at[dim] = index.integer(i);
    const int64_t to = dot(at, strides_of(out.sizes));
    if (!kAdds) copy_element(src, from, out, to);
    if (kAdds && is_floating(out.dtype)) out.set_real(to, out.real(to) + src.real(from));
    if (kAdds && !is_floating(out.dtype)) out.set_integer(to, add(out.integer(to), src.integer(from)));
  }
}

void sort(const ReferenceCall& call) {
  const Array& x = call.input(0);
  const auto dim = static_cast<size_t>(call.integer("dim", 0));
  const bool descending = call.integer("descending", 0) != 0;
  const int64_t stride = strides_of(x.sizes)[dim], size = x.sizes[dim];
  for (int64_t i = 0; i < x.count(); ++i) {
    if (position(i, x.sizes)[dim] != 0) continue;
    std::vector<int64_t> order(static_cast<size_t>(size));
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, [&](int64_t a, int64_t b) {
      const int64_t left = i + a * stride, right = i + b * stride;
      return descending ? greater_element(x, left, right) : greater_element(x, right, left);
    });
    for (int64_t k = 0; k < size; ++k) {
      const int64_t from = order[static_cast<size_t>(k)];
      if (call.wants(0)) copy_element(x, i + from * stride, call.output(0), i + k * stride);
      if (call.wants(1)) call.output(1).set_integer(i + k * stride, from);
    }
  }
}

constexpr Reference kReferences[] = {
    {"aten::sum.dim_IntList", sum},
    {"aten::prod.dim_int", prod},
    {"aten::amax", amax},
    {"aten::argmax", argmax},
    {"aten::cumsum", cumsum},
    {"aten::gather", gather},
    {"aten::scatter.src", scatter<false>},
    {"aten::scatter_add", scatter<true>},
    {"aten::sort.stable", sort},
};

}  // namespace

std::span<const Reference> reduction_references() { return kReferences; }

}  // namespace ltc::conformance
