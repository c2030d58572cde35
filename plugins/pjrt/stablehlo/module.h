// A program of StableHLO as text, written op by op in MLIR's generic form, which every version reads.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ltc/plugin.h"

namespace ltc::pjrt {

using Sizes = std::vector<int64_t>;

// The type of a dense array.
struct Type {
  ltc_dtype dtype = 0;
  Sizes sizes;

  int64_t rank() const { return static_cast<int64_t>(sizes.size()); }
  int64_t count() const;     // of elements
  std::string text() const;  // "tensor<2x3xf32>"
  bool operator==(const Type&) const = default;
};

// The name of an element type in StableHLO, null for one that it does not have.
const char* element_text(ltc_dtype dtype);

bool is_float(ltc_dtype dtype);  // F16, BF16, F32, F64
bool is_unsigned(ltc_dtype dtype);
int64_t bits_of(ltc_dtype dtype);  // 8 for BOOL

// A value of the program: its name and type.
struct Value {
  std::string name;
  Type type;
};
using Values = std::vector<Value>;

// "array<i64: 1, 2>"
std::string array(const Sizes& numbers);
// "1, 2"
std::string list(const Sizes& numbers);

// The body of the program's one function. Functions that take several values expect equal sizes, unless they say otherwise.
class Module {
 public:
  // Ops that follow belong to this node. Messages of a compiler name it as "node 7".
  void set_node(size_t node) { location_ = " loc(\"node " + std::to_string(node) + "\")"; }

  // Writes one op. name: without "stablehlo.", or whole, "chlo.erf". attrs: "axis = 0 : i64". region: its body, or nothing.
  Values emit(std::string_view name, const Values& operands, const std::vector<Type>& results, std::string_view attrs = {},
              std::string_view region = {});
  // The same with one result; without a type that of the first operand.
  Value op(std::string_view name, const Values& operands, std::string_view attrs = {}) {
    return op(name, operands, operands[0].type, attrs);
  }
  Value op(std::string_view name, const Values& operands, const Type& result, std::string_view attrs = {},
           std::string_view region = {}) {
    return emit(name, operands, {result}, attrs, region)[0];
  }

  // The body of a region that joins two elements by an op; without an op the second one remains.
  std::string joining(std::string_view op, ltc_dtype dtype);
  std::string new_prefix() { return "%r" + std::to_string(next_++); }  // of names that nothing else has

  Value constant(const Type& type, std::string_view element);
  Value number(ltc_dtype dtype, int64_t value);             // rank 0
  Value real(double value);                                 // rank 0, F64
  Value least(ltc_dtype dtype), greatest(ltc_dtype dtype);  // rank 0; infinities of floats
  Value filled(const Type& type, int64_t value);            // everywhere
  Value like(const Value& value, int64_t number) { return filled(value.type, number); }
  Value broadcast(const Value& value, const Sizes& sizes);  // from the last dim on
  Value reshape(const Value& value, const Sizes& sizes);    // the same elements
  Value iota(ltc_dtype dtype, const Sizes& sizes, int64_t dim);
  Value slice(const Value& value, const Sizes& start, const Sizes& limit, const Sizes& step);
  Value pad(const Value& value, const Value& with, const Sizes& low, const Sizes& high);
  Value compare(const Value& a, const Value& b, std::string_view direction);  // "LT"
  Value select(const Value& condition, const Value& yes, const Value& no) { return op("select", {condition, yes, no}, yes.type); }
  Value convert(const Value& value, ltc_dtype dtype);  // as StableHLO does
  Value bitcast(const Value& value, ltc_dtype dtype);  // of as many bits
  Value reduce(const Value& value, const Sizes& dims, std::string_view op, const Value& initial);

  const std::string& text() const { return text_; }

 private:
  std::string text_, location_;
  size_t next_ = 0;
};

}  // namespace ltc::pjrt
