// Against sums in double, in memory of exactly the sizes: a sanitizer's build sees what reads or writes beyond.
#include "torchscript/ops/skinny_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>

namespace ltc::torchscript {
namespace {

constexpr double kWorst = 1e-5;  // of an element, per square root of the terms that it sums; they are about 1

enum class Addend { kNone, kRow, kNumber };

struct Matrix {
  Matrix(int64_t rows, int64_t columns, std::mt19937& generator)
      : columns(columns), data(new float[static_cast<size_t>(rows * columns)]) {
    std::normal_distribution<float> noise;
    for (int64_t i = 0; i < rows * columns; ++i) data[i] = noise(generator);
  }
  float at(int64_t row, int64_t column) const { return data[row * columns + column]; }

  int64_t columns;
  std::unique_ptr<float[]> data;
};

class SkinnyKernelsTest : public ::testing::Test {
 protected:
  enum class Layout { kByRows, kByColumns };  // of the right operand

  void check(int64_t rows, int64_t inner, int64_t columns, Addend added, Layout layout) {
    const bool by_rows = layout == Layout::kByRows;
    const Matrix a(rows, inner, generator_), row(1, columns, generator_);
    const Matrix b = by_rows ? Matrix(inner, columns, generator_) : Matrix(columns, inner, generator_);
    Matrix out(rows, columns, generator_);
    const ConstMatrixView addend =
        added == Addend::kNone ? ConstMatrixView{} : ConstMatrixView{row.data.get(), 0, added == Addend::kRow ? 1 : 0};
    const ConstMatrixView right = {b.data.get(), by_rows ? columns : 1, by_rows ? 1 : inner};
    (by_rows ? skinny_kernels().add_rows : skinny_kernels().dot)(
        {rows, inner, columns, {a.data.get(), inner, 1}, right, addend, {out.data.get(), columns, 1}});
    double worst = 0;
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        double sum = added == Addend::kNone ? 0 : row.at(0, added == Addend::kRow ? j : 0);
        for (int64_t k = 0; k < inner; ++k) sum += double{a.at(i, k)} * double{by_rows ? b.at(k, j) : b.at(j, k)};
        worst = std::max(worst, std::abs(out.at(i, j) - sum));
      }
    }
    EXPECT_LT(worst, kWorst * std::sqrt(inner))
        << rows << " x " << inner << " x " << columns << ", addend " << static_cast<int>(added);
  }

 private:
  std::mt19937 generator_;
};

constexpr Addend kAddends[] = {Addend::kNone, Addend::kRow, Addend::kNumber};
constexpr int64_t kInner[] = {1, 2, 5, 8, 9, 15, 16, 17, 33, 100}, kColumns[] = {1, 2, 7, 8, 9, 15, 16, 17, 33, 50};

TEST_F(SkinnyKernelsTest, AFewRows) {
  for (int64_t rows = 1; rows <= 8; ++rows) {
    for (const int64_t inner : kInner) {
      for (const int64_t columns : kColumns) {
        for (const Addend added : kAddends) {
          check(rows, inner, columns, added, Layout::kByColumns);
          check(rows, inner, columns, added, Layout::kByRows);
        }
      }
    }
  }
}

TEST_F(SkinnyKernelsTest, SumsOfAFewTerms) {
  for (const int64_t rows : {9, 13, 40}) {
    for (int64_t inner = 1; inner <= 8; ++inner) {
      for (const int64_t columns : kColumns) {
        for (const Addend added : kAddends) check(rows, inner, columns, added, Layout::kByRows);
      }
    }
  }
}

TEST_F(SkinnyKernelsTest, LongSums) {
  for (const int64_t inner : {kMostTerms, kMostTerms + 8, 3 * kMostTerms - 1}) {
    for (const Addend added : kAddends) check(3, inner, 10, added, Layout::kByColumns);
  }
  check(3, kMostTerms, 20, Addend::kRow, Layout::kByRows);
}

}  // namespace
}  // namespace ltc::torchscript
