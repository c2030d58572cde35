#include "kernels/graph/index.h"

#include <gtest/gtest.h>

namespace ltc::kernels {
namespace {

class IndexTest : public ::testing::Test {
 protected:
  Index var(int64_t extent) { return space_.of_var(space_.add({.extent = extent})); }
  // The value of an index for a value of the only loop variable.
  int64_t value(const Index& index, int64_t of_first) const {
    int64_t sum = index.constant;
    for (const Term& term : index.terms) {
      const Var& var = space_.var(term.digit.var);
      int64_t v = of_first;
      if (var.kind == Var::Kind::kQuotient) v = value(var.of, of_first) / var.by;
      if (var.kind == Var::Kind::kRemainder) v = value(var.of, of_first) % var.by;
      if (var.kind == Var::Kind::kExact) v = value(var.of, of_first);
      v /= term.digit.div;
      sum += term.factor * (term.digit.mod ? v % term.digit.mod : v);
    }
    return sum;
  }
  IndexSpace space_;
};

TEST_F(IndexTest, a_split_that_is_joined_again_is_the_variable) {
  const Index i = var(24);
  EXPECT_EQ(space_.linear(space_.split(i, {2, 3, 4}), {2, 3, 4}), i);
}

TEST_F(IndexTest, reshapes_in_a_row_are_one_term) {
  const Index i = var(24);
  const Index there = space_.linear(space_.split(i, {6, 4}), {6, 4});
  const Coords at = space_.split(there, {2, 12});
  EXPECT_EQ(at[1].terms.size(), 1u);
  EXPECT_EQ(space_.linear(at, {2, 12}), i);
}

TEST_F(IndexTest, a_split_of_a_split_keeps_its_digits) {
  const Coords at = space_.split(var(24), {2, 12});
  const Coords inner = space_.split(at[1], {3, 4});
  EXPECT_EQ(inner[0].terms, (std::vector<Term>{{1, {0, 4, 3}}}));
  EXPECT_EQ(inner[1].terms, (std::vector<Term>{{1, {0, 1, 4}}}));
}

TEST_F(IndexTest, dims_of_size_1_vanish) {
  const Coords at = space_.split(var(6), {1, 2, 1, 3});
  EXPECT_EQ(at[0], Index{});
  EXPECT_EQ(at[2], Index{});
}

TEST_F(IndexTest, what_does_not_simplify_is_still_right) {
  const Index i = var(20);
  const Index odd = space_.shifted(space_.scaled(i, 3), 5);
  const Index quotient = space_.quotient(odd, 7), remainder = space_.remainder(odd, 7);
  for (int64_t k = 0; k < 20; ++k) {
    EXPECT_EQ(value(quotient, k), (3 * k + 5) / 7);
    EXPECT_EQ(value(remainder, k), (3 * k + 5) % 7);
  }
}

TEST_F(IndexTest, a_flip_of_joined_dims_is_split_from_the_end) {
  const Index flipped = space_.shifted(space_.scaled(var(12), -1), 11);
  const Coords at = space_.split(flipped, {4, 3});
  for (int64_t k = 0; k < 12; ++k) {
    EXPECT_EQ(value(at[0], k), (11 - k) / 3);
    EXPECT_EQ(value(at[1], k), (11 - k) % 3);
  }
}

// Every way through three reshapes agrees with arithmetic.
TEST_F(IndexTest, chains_of_reshapes_agree_with_arithmetic) {
  const std::vector<Sizes> shapes = {{24}, {2, 12}, {12, 2}, {3, 8}, {4, 6}, {2, 3, 4}, {4, 3, 2}, {1, 24, 1}};
  const Index i = var(24);
  for (const Sizes& a : shapes) {
    for (const Sizes& b : shapes) {
      Coords at = space_.split(i, a);
      std::swap(at.front(), at.back());  // a transposed read
      Sizes swapped = a;
      std::swap(swapped.front(), swapped.back());
      const Index through = space_.linear(space_.split(space_.linear(at, swapped), b), b);
      for (int64_t k = 0; k < 24; ++k) EXPECT_EQ(value(through, k), value(space_.linear(at, swapped), k));
    }
  }
}

TEST_F(IndexTest, a_range_covers_negative_factors) {
  const Index flipped = space_.shifted(space_.scaled(var(5), -1), 4);
  EXPECT_EQ(space_.range(flipped), (std::pair<int64_t, int64_t>{0, 4}));
}

}  // namespace
}  // namespace ltc::kernels
