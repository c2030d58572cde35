#include "core/run/device/number_operands.h"

#include <gmock/gmock.h>

#include <cmath>

namespace ltc {
namespace {

using Floats = std::vector<double>;
using ::testing::ElementsAre;

// A capture whose program takes all these scalars, as doubles.
Captured captured(const Floats& scalars) {
  Captured result;
  for (const double scalar : scalars) {
    result.scalar_of.push_back(static_cast<uint32_t>(result.scalars.size()));
    result.scalars.push_back({.f = scalar});
    result.scalar_dtypes.push_back(DType::kF64);
  }
  return result;
}

std::vector<NumberOperand> numbers(const Floats& values) {
  std::vector<NumberOperand> result;
  for (const double value : values) result.push_back(NumberOperand::of(value));
  return result;
}

// The operands of a capture that was given `given` and recorded `scalars`.
NumberOperands seen(const Floats& given, const Floats& scalars, std::vector<bool> fixed = {}) {
  fixed.resize(given.size());
  return {captured(scalars), numbers(given), fixed};
}

// Empty for a call of another kind.
Floats scalars_of(const NumberOperands& operands, const Floats& given) {
  Floats result;
  for (const Scalar& scalar : operands.scalars(numbers(given)).value_or(std::vector<Scalar>())) result.push_back(scalar.f);
  return result;
}

TEST(NumberOperands, OneCaptureFitsItsOwnNumbersOnly) {
  const NumberOperands once = seen({2, 3}, {2, 5});
  EXPECT_THAT(scalars_of(once, {2, 3}), ElementsAre(2, 5));
  EXPECT_THAT(scalars_of(once, {4, 3}), ElementsAre());
  EXPECT_THAT(scalars_of(once, {2}), ElementsAre());
  EXPECT_FALSE(once.scalars({NumberOperand::of(int64_t{2}), NumberOperand::of(3.0)}));
}

TEST(NumberOperands, ASecondCaptureTellsNumbersFromConstants) {
  const auto both = seen({0.5}, {0.5, 0.5}).merged(seen({1.5}, {1.5, 0.5}));
  ASSERT_TRUE(both);
  EXPECT_THAT(scalars_of(*both, {7}), ElementsAre(7, 0.5));
}

TEST(NumberOperands, ANumberThatDidNotChangeIsStillTheKindOfCall) {
  const auto both = seen({1, 9}, {1, 9}).merged(seen({2, 9}, {2, 9}));
  ASSERT_TRUE(both);
  EXPECT_THAT(scalars_of(*both, {3, 9}), ElementsAre(3, 9));
  EXPECT_THAT(scalars_of(*both, {3, 8}), ElementsAre());
  const auto all = both->merged(seen({1, 8}, {1, 8}));
  ASSERT_TRUE(all);
  EXPECT_THAT(scalars_of(*all, {5, 6}), ElementsAre(5, 6));
}

TEST(NumberOperands, EqualNumbersMayBeEitherUntilTheyDiffer) {
  const auto both = seen({1, 1}, {1}).merged(seen({2, 2}, {2}));
  ASSERT_TRUE(both);
  EXPECT_THAT(scalars_of(*both, {3, 3}), ElementsAre(3));
  EXPECT_THAT(scalars_of(*both, {3, 4}), ElementsAre());
  const auto all = both->merged(seen({3, 4}, {4}));
  ASSERT_TRUE(all);
  EXPECT_THAT(scalars_of(*all, {5, 6}), ElementsAre(6));
}

TEST(NumberOperands, WhatIsComputedFromANumberIsNone) {
  EXPECT_FALSE(seen({0.25}, {0.75}).merged(seen({0.5}, {0.5})));
  EXPECT_FALSE(seen({0.25}, {0.75}).merged(seen({0.125}, {0.875})));
}

TEST(NumberOperands, AFixedNumberStaysTheKindOfCall) {
  EXPECT_FALSE(seen({1}, {1}, {true}).merged(seen({2}, {2}, {true})));
  EXPECT_FALSE(seen({1}, {5}, {false}).merged(seen({2}, {5}, {true})));
  EXPECT_TRUE(seen({1, 4}, {1, 4}, {false, true}).merged(seen({2, 4}, {2, 4}, {false, true})));
}

TEST(NumberOperands, BitsDecide) {
  EXPECT_THAT(scalars_of(seen({0.0}, {0.0}), {-0.0}), ElementsAre());
  EXPECT_THAT(scalars_of(seen({NAN}, {NAN}), {NAN}), ElementsAre(::testing::IsNan()));
}

TEST(NumberOperands, AnIntMayBecomeADouble) {
  const auto capture = [](int64_t number) {
    return NumberOperands(captured({static_cast<double>(number)}), {NumberOperand::of(number)}, {false});
  };
  const auto both = capture(2).merged(capture(3));
  ASSERT_TRUE(both);
  EXPECT_EQ((*both->scalars({NumberOperand::of(int64_t{8})}))[0].f, 8);
}

TEST(NumberOperands, DrawnNumbersAreNotTheArguments) {
  const auto capture = [](int64_t number, int64_t seed) {
    Captured drawn;
    drawn.scalars = {{.i = seed}, {.i = 0}};
    drawn.scalar_of = {0, 1};
    drawn.scalar_dtypes = {DType::kI64, DType::kI64};
    drawn.rng_uses = {{0, 1, kNoType, nullptr}};
    return NumberOperands(drawn, {NumberOperand::of(number)}, {false});
  };
  EXPECT_TRUE(capture(1, 1).merged(capture(2, 77)));
}

}  // namespace
}  // namespace ltc
