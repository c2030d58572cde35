// Against sums in double, in memory of exactly the sizes: a sanitizer's build sees what reads or writes beyond.
#include "cpu_kernels/skinny.h"

#include <algorithm>
#include <cmath>

#include "cpu_kernels/testing/each_set.h"

namespace ltc::cpu {
namespace {

constexpr double kWorst = 1e-5;  // of an element, per square root of the terms that it sums; they are about 1

enum class Addend { kNone, kRow, kNumber };

struct Matrix {
  float at(int64_t row, int64_t column) const { return data[row * columns + column]; }

  int64_t columns;
  Noise data;
};

class SkinnyTest : public EachSet {
 protected:
  enum class Layout { kByRows, kByColumns };  // of the right operand

  void check(int64_t rows, int64_t inner, int64_t columns, Addend added, Layout layout) {
    const bool by_rows = layout == Layout::kByRows;
    const Matrix a = matrix(rows, inner), row = matrix(1, columns);
    const Matrix b = by_rows ? matrix(inner, columns) : matrix(columns, inner);
    const Matrix out = matrix(rows, columns);
    const ConstMatrixView addend =
        added == Addend::kNone ? ConstMatrixView{} : ConstMatrixView{row.data.get(), 0, added == Addend::kRow ? 1 : 0};
    const ConstMatrixView right = {b.data.get(), by_rows ? columns : 1, by_rows ? 1 : inner};
    (by_rows ? skinny_add_rows
             : skinny_dot)({rows, inner, columns, {a.data.get(), inner, 1}, right, addend, {out.data.get(), columns, 1}});
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
  Matrix matrix(int64_t rows, int64_t columns) { return {columns, noise(rows * columns)}; }
};
LTC_FOR_EACH_SET(SkinnyTest);

constexpr Addend kAddends[] = {Addend::kNone, Addend::kRow, Addend::kNumber};
constexpr int64_t kInner[] = {1, 2, 5, 8, 9, 15, 16, 17, 33, 100}, kColumns[] = {1, 2, 7, 8, 9, 15, 16, 17, 33, 50};

TEST_P(SkinnyTest, AFewRows) {
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

TEST_P(SkinnyTest, SumsOfAFewTerms) {
  for (const int64_t rows : {9, 13, 40}) {
    for (int64_t inner = 1; inner <= 8; ++inner) {
      for (const int64_t columns : kColumns) {
        for (const Addend added : kAddends) check(rows, inner, columns, added, Layout::kByRows);
      }
    }
  }
}

TEST_P(SkinnyTest, LongSums) {
  for (const int64_t inner : {kMostTerms, kMostTerms + 8, 3 * kMostTerms - 1}) {
    for (const Addend added : kAddends) check(3, inner, 10, added, Layout::kByColumns);
  }
  check(3, kMostTerms, 20, Addend::kRow, Layout::kByRows);
}

}  // namespace
}  // namespace ltc::cpu
