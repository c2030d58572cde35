// Which ops kernels are made of: one row per op, with the operands it takes and what it computes.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "ltc/plugin.h"

namespace ltc::kernels {

enum class Kind : uint8_t {
  kMap,      // element by element, by the row's formula
  kCast,     // conversion to the result's dtype
  kBits,     // the same bytes as another dtype
  kReshape,  // ---- movement: reads its operand elsewhere
  kPermute,
  kExpand,
  kSlice,
  kPad,
  kCat,
  kFlip,
  kStrided,
  kGather,
  kPack,     // a matrix in tiles of columns; the generator's own, no op of the graph
  kWindows,  // the columns of a convolution; the generator's own
  kFull,     // ---- made from nothing
  kArange,
  kPhilox,
  kReduce,  // ---- rows to elements, by the row's formula
  kArgmax,
  kScan,  // ---- kernels of their own
  kScatter,
  kScatterAdd,
  kStridedScatter,
  kSort,
  kAttention,    // and its gradients
  kProduct,      // batched matrix product
  kConvolution,  // becomes kWindows and kProduct, or of a library the last
  kConvolutionBackward,
  kLibraryConvolution,
  kScaledProduct,  // of floats of 8 bits, a library's
  kCollective,     // between processes, likewise
};

// Types: operands, a colon, results, as in struct OpRow.
//   T  all the same: one of `dtypes`   A  any of `dtypes`   b  BOOL   i  I64   N  a T or a number by value
//   s  a number by value, absent where it is an attribute   -  absent   +  as many Ts as there are
// Formulas, for floats, integers and BOOL; empty: not for these. $0 $1 $2: operands, T: their type, U: T unsigned,
// @name( : a function of the dialect for T (see dialect.h). A reduction has its initial value, then ";", then a formula
// with $a: the value so far.
struct OpRow {
  std::string_view name;
  Kind kind;
  std::string_view types;
  std::string_view dtypes;  // of T: f floats, i integers, b BOOL, h halves, q those of 8 bits, c C64
  std::string_view floats = {}, integers = {}, bools = {};
  const char* operands = nullptr;  // of an op without id, see ltc_node_matches
};

std::span<const OpRow> op_table();
// The row of an op, or null.
const OpRow* find_op(std::string_view name);

// The formula of the row for a dtype.
std::string_view formula(const OpRow& row, ltc_dtype dtype);

// Whether such a node only says where elements of another value lie.
inline bool is_view(Kind kind) {
  return kind >= Kind::kReshape && kind <= Kind::kStrided && kind != Kind::kPad && kind != Kind::kCat;
}

}  // namespace ltc::kernels
