// Names of ops and their constant attributes, interned.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/ir/dtype.h"

namespace ltc {

// An op of a node: ATen's name with its overload, "aten::add.Tensor". Ids live in this process only; the stable id of the C ABI
// is a column of the op table.
using OpId = uint32_t;
inline constexpr OpId kOpParam = 0;   // a buffer that enters the graph
inline constexpr OpId kOpScalar = 1;  // a number that enters the graph by value
inline constexpr OpId kOpResult = 2;  // a further result of a node of several

OpId intern_op(std::string_view name);
const std::string& op_name(OpId op);
// Whether all ranks of a group run it together. If one ran it once more, the others would not answer.
bool is_collective(OpId op);

// The kinds of the C ABI (ltc_attr_kind), in its order.
enum class AttrKind : uint32_t { kNone = 1, kInt, kFloat, kBool, kString, kDType, kInts, kFloats, kStrings };

// A constant argument of a node. INT, BOOL and DTYPE use ints[0], FLOAT floats[0], STRING strings[0].
struct Attr {
  std::string name;
  AttrKind kind = AttrKind::kNone;
  std::vector<int64_t> ints = {};
  std::vector<double> floats = {};
  std::vector<std::string> strings = {};

  bool operator==(const Attr& other) const;  // floats by their bits: nan equals itself, -0.0 is not 0.0

  static Attr of_int(std::string name, int64_t value) { return {std::move(name), AttrKind::kInt, {value}}; }
  static Attr of_ints(std::string name, std::vector<int64_t> values) {
    return {std::move(name), AttrKind::kInts, std::move(values)};
  }
  static Attr of_dtype(std::string name, DType value) {
    return {std::move(name), AttrKind::kDType, {static_cast<int64_t>(value)}};
  }
};

// The attributes of a node, in the order of the op's schema, interned: equal lists have equal ids.
using AttrList = std::vector<Attr>;
using AttrsId = uint32_t;
inline constexpr AttrsId kNoAttrs = 0;

AttrsId intern_attrs(const AttrList& attrs);
const AttrList& attrs_of(AttrsId id);
const Attr* find_attr(const AttrList& attrs, std::string_view name);  // null if there is none

}  // namespace ltc
