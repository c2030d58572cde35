// Which scalars of a captured function are numbers among its arguments, so that a call with other numbers captures nothing.
//
// A capture sees values only: a scalar that equals an argument is that argument or a constant that happens to be equal. Captures
// with other values tell them apart. The caller must ensure that each scalar is a constant or one of the numbers as it was given,
// and that nothing else depends on a number that the caller does not call fixed.
#pragma once

#include <optional>
#include <vector>

#include "core/run/device/capture.h"

namespace ltc {

struct NumberOperand {
  bool is_int;
  Scalar value;  // its `i` or its `f`

  static NumberOperand of(int64_t value) { return {true, {.i = value}}; }
  static NumberOperand of(double value) { return {false, {.f = value}}; }
  bool operator==(const NumberOperand& other) const {
    return is_int == other.is_int && value.i == other.value.i;
  }  // bits: 0.0 is not -0.0
};

class LTC_API NumberOperands {
 public:
  // The operands after one capture: they fit calls with the same numbers. `fixed`: those that the function may have looked at.
  NumberOperands(const Captured& captured, std::vector<NumberOperand> numbers, std::vector<bool> fixed);

  // The operands that both captures allow, if they differ in numbers only. Empty if numbers are used for more than computing.
  std::optional<NumberOperands> merged(const NumberOperands& other) const;

  // The scalars of a call with these numbers; empty if that is a call of another kind, or if captures so far do not tell.
  std::optional<std::vector<Scalar>> scalars(const std::vector<NumberOperand>& numbers) const;

 private:
  // A scalar and what it may be.
  struct Use {
    uint32_t scalar;
    DType dtype;
    bool may_be_constant;
    std::vector<uint32_t> numbers;
  };
  bool is_kind(const std::vector<NumberOperand>& numbers) const;
  void note_asked();

  std::vector<Scalar> constants_;
  std::vector<NumberOperand> numbers_;
  std::vector<bool> fixed_;      // the function may look at it
  std::vector<bool> changed_;    // captures with other values gave the same program
  std::vector<uint32_t> asked_;  // which of the uses a call's numbers say something of
  std::vector<Use> uses_;        // of all scalars that the program takes and that are not drawn
};

}  // namespace ltc
