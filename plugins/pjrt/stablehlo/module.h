// A program of StableHLO as text, written op by op in MLIR's generic form, which every version reads.
#pragma once
#include <pjrt_c_api.h>

#include <string>
#include <string_view>
#include <vector>

#include "ltc/plugin.h"

namespace ltc::pjrt {

using Sizes = std::vector<int64_t>;

// An element type. kinds: b BOOL, i integers but the wide unsigned ones, u unsigned ones, w I32 and I64, f F32 and F64, h F16 and
// BF16, q 8-bit floats, c C64, z C128.
struct Element {
  const char* text = nullptr;  // in StableHLO; null where it has none
  int bits = 0;
  std::string_view kinds = {};
  PJRT_Buffer_Type buffer = PJRT_Buffer_Type_INVALID;
};
const Element& element(ltc_dtype dtype);
// Whether it is of one of the kinds.
inline bool is_kind(ltc_dtype dtype, std::string_view kinds) { return element(dtype).kinds.find_first_of(kinds) != kinds.npos; }

// The type of a dense array.
struct Type {
  ltc_dtype dtype = 0;
  Sizes sizes;

  int64_t rank() const { return static_cast<int64_t>(sizes.size()); }
  int64_t count() const;     // of elements; INT64_MAX for more
  std::string text() const;  // "tensor<2x3xf32>"
  bool operator==(const Type&) const = default;
};

// A value of the program.
struct Value {
  std::string name;
  Type type;
};
using Values = std::vector<Value>;

std::string names(const Values& values);          // "%1, %2"
std::string types(const Values& values);          // "tensor<2xf32>, tensor<i64>"
std::string array(const Sizes& numbers);          // "array<i64: 1, 2>"
std::string axis(const char* name, int64_t dim);  // "name = 1 : i64"

// The body of the program's one function.
class Module {
 public:
  // Ops that follow belong to this node. Messages of a compiler name it as "node 7".
  void set_node(size_t node) { location_ = " loc(\"node " + std::to_string(node) + "\")"; }

  // Writes one op. name: without "stablehlo.", or whole, "chlo.erf". region: its body, or nothing.
  Values emit(std::string_view name, const Values& operands, const std::vector<Type>& results, std::string_view attrs = {},
              std::string_view region = {});
  // The same with one result.
  Value op(std::string_view name, const Values& operands, const Type& result, std::string_view attrs = {},
           std::string_view region = {}) {
    return emit(name, operands, {result}, attrs, region)[0];
  }

  // Writes the ops of a formula over operands x, y, z, w of equal sizes: "select(LT(x,0),ceil(x),floor(x))". Two capital letters
  // compare, i64(..) converts to a type, T(..) to that of x, top(..) is the number of the highest bit. A number has the type of
  // the last operand beside it. The value of a formula before a semicolon is one operand more for the next.
  Value eval(std::string_view formula, Values operands);
  // A region whose arguments are of these dtypes, and which returns a formula of them.
  std::string region(const std::vector<ltc_dtype>& dtypes, std::string_view formula);

  Value constant(const Type& type, std::string_view text);
  Value number(ltc_dtype dtype, int64_t value);  // rank 0
  Value extreme(ltc_dtype dtype, bool least);    // rank 0: the least or largest value, an infinity of floats
  Value filled(const Type& type, int64_t value) { return broadcast(number(type.dtype, value), type.sizes); }
  Value broadcast(const Value& value, const Sizes& sizes);  // from the last dim on
  Value reshape(const Value& value, const Sizes& sizes) {   // the same elements
    return value.type.sizes == sizes ? value : op("reshape", {value}, {value.type.dtype, sizes});
  }
  Value iota(ltc_dtype dtype, const Sizes& sizes, int64_t dim) {
    return op("iota", {}, {dtype, sizes}, axis("iota_dimension", dim));
  }
  Value slice(const Value& value, const Sizes& start, const Sizes& limit, const Sizes& step);
  Value pad(const Value& value, const Value& with, const Sizes& low, const Sizes& high);
  Value convert(const Value& value, ltc_dtype dtype, std::string_view how = "convert") {  // as StableHLO does
    return value.type.dtype == dtype ? value : op(how, {value}, {dtype, value.type.sizes});
  }
  Value bitcast(const Value& value, ltc_dtype dtype) { return convert(value, dtype, "bitcast_convert"); }  // of as many bits
  Value reduce(const Value& value, const Sizes& dims, std::string_view formula, const Value& initial);

  const std::string& text() const { return text_; }

 private:
  struct Term;
  Term term(std::string_view& text, const Values& operands);
  std::string new_name() { return "%" + std::to_string(next_++); }

  std::string text_, location_;
  size_t next_ = 0;
};

}  // namespace ltc::pjrt
