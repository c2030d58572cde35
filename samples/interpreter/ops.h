// The arguments of a kernel, and the rows of the tables of ops.
#pragma once
#include <array>
#include <string>
#include <vector>

#include "ltc/graph.hpp"

namespace interpreter {

using ltc::plugin::element_bytes;
using ltc::plugin::Failure;
using ltc::plugin::Node;
using Sizes = std::vector<int64_t>;

struct Type {
  ltc_dtype dtype = 0;
  Sizes sizes = {};
  uint64_t bytes = 0;

  int64_t count() const { return static_cast<int64_t>(bytes / element_bytes(dtype)); }
};

// A dense row-major array. An operand or result that is absent has no type.
struct Array {
  const Type* type = nullptr;
  char* data = nullptr;

  template <typename T>
  T* as() const {
    return reinterpret_cast<T*>(data);
  }
  const Sizes& sizes() const { return type->sizes; }
  int64_t count() const { return type->count(); }
  ltc_dtype dtype() const { return type->dtype; }
};

// A copy of a node's attribute; floats by their bits.
struct Attribute {
  std::string name = {};
  ltc_attr_kind kind = 0;
  std::vector<int64_t> values = {};
};

// One node at run time.
struct Call {
  const std::vector<Attribute>& attributes;
  std::vector<Array> in, out;

  // An attribute that is absent, and one that is None, has no values.
  const Attribute& attribute(std::string_view name) const {
    static const Attribute kNone;
    for (const Attribute& attribute : attributes) {
      if (attribute.name == name) return attribute;
    }
    return kNone;
  }
  const std::vector<int64_t>& integers(std::string_view name) const { return attribute(name).values; }
  int64_t integer(std::string_view name, int64_t otherwise) const {
    const std::vector<int64_t>& values = integers(name);
    return values.empty() ? otherwise : values[0];
  }
};
using Kernel = void (*)(const Call& call);

// A kernel for each dtype that an op computes.
struct Kernels {
  struct Entry {
    ltc_dtype dtype;
    Kernel kernel;
  };
  std::array<Kernel, LTC_U4_X2 + 1> by_dtype = {};

  Kernels(std::initializer_list<Entry> entries) {
    for (const Entry& entry : entries) by_dtype[entry.dtype] = entry.kernel;
  }
  Kernel at(ltc_dtype dtype) const { return dtype < by_dtype.size() ? by_dtype[dtype] : nullptr; }
};

struct Op {
  const char* types;  // as ltc::plugin::matches_types reads them
  Kernels kernels;
  bool reads_indices = false;  // so a run may fail
};
using Table = ltc::plugin::OpTable<Op>;

// table.cpp: the tables that the plugin has. Each file of kernels defines one.
extern const std::vector<const Table*> tables;
extern const Table first_ops, elementwise_ops, conversion_ops, movement_ops, creation_ops, reduction_ops, index_ops, product_ops;

// ---- kernels for many types

template <typename T>
inline constexpr ltc_dtype dtype_of = 0;
template <>
inline constexpr ltc_dtype dtype_of<bool> = LTC_BOOL;
template <>
inline constexpr ltc_dtype dtype_of<uint8_t> = LTC_U8;
template <>
inline constexpr ltc_dtype dtype_of<int8_t> = LTC_I8;
template <>
inline constexpr ltc_dtype dtype_of<int16_t> = LTC_I16;
template <>
inline constexpr ltc_dtype dtype_of<int32_t> = LTC_I32;
template <>
inline constexpr ltc_dtype dtype_of<int64_t> = LTC_I64;
template <>
inline constexpr ltc_dtype dtype_of<float> = LTC_F32;
template <>
inline constexpr ltc_dtype dtype_of<double> = LTC_F64;

template <typename... T>
struct Types {};
template <typename... T, typename... U>
constexpr Types<T..., U...> operator+(Types<T...>, Types<U...>) {
  return {};
}
inline constexpr Types<float, double> floats;
inline constexpr Types<uint8_t, int8_t, int16_t, int32_t, int64_t> integers;
inline constexpr Types<bool> booleans;
inline constexpr auto numbers = floats + integers;
inline constexpr auto all_computed = numbers + booleans;

// The type to compute in: integers wrap modulo 2^64 first, and modulo their own size when they are stored.
template <typename T>
using Wide = std::conditional_t<std::is_floating_point_v<T>, T, uint64_t>;

// For kernels that only move elements of any type.
inline Kernels moves(Kernel kernel) {
  return {{LTC_BOOL, kernel}, {LTC_U8, kernel},  {LTC_I8, kernel},   {LTC_I16, kernel}, {LTC_I32, kernel},
          {LTC_I64, kernel},  {LTC_F16, kernel}, {LTC_BF16, kernel}, {LTC_F32, kernel}, {LTC_F64, kernel}};
}

}  // namespace interpreter
