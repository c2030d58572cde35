// Helpers of the reference functions: the operands and attributes of a node, and arithmetic on positions.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <span>
#include <string_view>
#include <vector>

#include "conformance/kit/array.h"
#include "core/ir/graph.h"

namespace ltc::conformance {

inline Sizes strides_of(const Sizes& sizes) { return contiguous_strides(sizes); }

// The place of row-major element i along each dim.
inline Sizes position(int64_t i, const Sizes& sizes) {
  Sizes at(sizes.size());
  for (size_t d = sizes.size(); d-- > 0;) {
    at[d] = i % sizes[d];
    i /= sizes[d];
  }
  return at;
}

inline int64_t dot(const Sizes& a, const Sizes& b) { return std::inner_product(a.begin(), a.end(), b.begin(), int64_t{0}); }

inline void copy_element(const Array& from, int64_t i, Array& to, int64_t j) {
  const size_t size = dtype_size_bytes(from.dtype);
  std::memcpy(to.bytes.data() + static_cast<size_t>(j) * size, from.bytes.data() + static_cast<size_t>(i) * size, size);
}

// Which element of an operand is broadcast to element i of the output.
class Broadcast {
 public:
  Broadcast(const Sizes& operand, const Sizes& output) : output_(output), strides_(output.size(), 0) {
    const Sizes own = contiguous_strides(operand);
    const size_t missing = output.size() - operand.size();
    for (size_t d = 0; d < operand.size(); ++d) strides_[missing + d] = operand[d] == 1 ? 0 : own[d];
  }
  int64_t at(int64_t i) const { return dot(position(i, output_), strides_); }

 private:
  const Sizes& output_;
  Sizes strides_;
};

class ReferenceCall;

struct Reference {
  std::string_view op;
  void (*run)(const ReferenceCall&);
};

// By family, a file each.
std::span<const Reference> elementwise_references();
std::span<const Reference> movement_references();
std::span<const Reference> reduction_references();
std::span<const Reference> product_references();

// The types that several families compute in: reals wide, integers modulo 2^64; NaN is the largest.
using Real = long double;
inline uint64_t bits(int64_t x) { return static_cast<uint64_t>(x); }
// Rounded once, as IEEE 754 has it: what is exact is compared bit by bit.
inline Real add(Real a, Real b) { return static_cast<double>(a) + static_cast<double>(b); }
inline Real mul(Real a, Real b) { return static_cast<double>(a) * static_cast<double>(b); }
inline int64_t add(int64_t a, int64_t b) { return static_cast<int64_t>(bits(a) + bits(b)); }
inline int64_t mul(int64_t a, int64_t b) { return static_cast<int64_t>(bits(a) * bits(b)); }
inline Real maximum(Real a, Real b) { return std::isnan(a) || a > b ? a : b; }
inline int64_t maximum(int64_t a, int64_t b) { return std::max(a, b); }

class ReferenceCall {
 public:
  ReferenceCall(const Node& node, std::vector<Array>& values) : node_(node), values_(values), attrs_(attrs_of(node.attrs)) {}

  bool given(size_t i) const { return i < node_.inputs.size() && node_.inputs[i] != kNone; }
  const Array& input(size_t i) const { return values_[node_.inputs[i]]; }
  bool wants(size_t i) const { return i < node_.outputs.size() && node_.outputs[i] != kNone; }
  Array& output(size_t i) const { return values_[node_.outputs[i]]; }

  int64_t integer(std::string_view name, int64_t absent) const {
    const Attr* attr = find_attr(attrs_, name);
    return attr && !attr->ints.empty() ? attr->ints[0] : absent;
  }
  double real(std::string_view name, double absent) const {
    const Attr* attr = find_attr(attrs_, name);
    if (attr && !attr->floats.empty()) return attr->floats[0];
    return attr && !attr->ints.empty() ? static_cast<double>(attr->ints[0]) : absent;
  }
  Sizes ints(std::string_view name) const {
    const Attr* attr = find_attr(attrs_, name);
    return attr ? attr->ints : Sizes{};
  }
  // All of `rank` where the list is empty.
  Sizes dims(std::string_view name, size_t rank) const {
    Sizes dims = ints(name);
    if (!dims.empty()) return dims;
    dims.resize(rank);
    std::iota(dims.begin(), dims.end(), 0);
    return dims;
  }

  // A number: an attribute, or else operand i.
  Scalar number(std::string_view name, size_t i) const {
    Scalar result{};
    const Attr* attr = find_attr(attrs_, name);
    if (attr && !attr->ints.empty()) {
      result.i = attr->ints[0];
    } else if (attr && !attr->floats.empty()) {
      result.f = attr->floats[0];
    } else {
      std::memcpy(&result, input(i).bytes.data(), std::min(input(i).bytes.size(), sizeof result));
    }
    return result;
  }
  void store_number(Array& to, int64_t element, std::string_view name, size_t i) const {
    const Attr* attr = find_attr(attrs_, name);
    const bool is_real = attr ? attr->kind == AttrKind::kFloat : is_floating(input(i).dtype);
    const Scalar value = number(name, i);
    if (is_real) {
      to.set_real(element, value.f);
    } else {
      to.set_integer(element, value.i);
    }
  }

  // Fills output 0: each element from the element of input `i` that `offset` of its position says.
  void gather_from(size_t i, const std::function<int64_t(const Sizes&)>& offset) const {
    Array& out = output(0);
    for (int64_t e = 0; e < out.count(); ++e) copy_element(input(i), offset(position(e, out.sizes)), out, e);
  }

  // Output 0 begins as operand 0.
  void copy_bytes() const { output(0).bytes = input(0).bytes; }

 private:
  const Node& node_;
  std::vector<Array>& values_;
  const AttrList& attrs_;
};

}  // namespace ltc::conformance
