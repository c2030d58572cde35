// Numbers of any dtype.
#pragma once
#include "ops.h"

namespace interpreter {

// An element while it is converted: integers and BOOL as `i`, floats as `f`.
struct Number {
  bool is_float = false;
  int64_t i = 0;
  double f = 0;

  double as_float() const { return is_float ? f : static_cast<double>(i); }
  // Towards zero; any value where it does not fit.
  int64_t as_integer() const { return !is_float ? i : f >= -0x1p63 && f < 0x1p63 ? static_cast<int64_t>(f) : 0; }
};

Number load(ltc_dtype dtype, const char* from);
void store(const Number& number, ltc_dtype dtype, char* to);

// The argument `name` of a call: its attribute or, where it varies from run to run, the operand `input`, which is then stepped.
Number number_of(const Call& call, std::string_view name, size_t& input);
// For OpRow::takes: no number is complex.
bool numbers_are_real(const Node& node);

}  // namespace interpreter
