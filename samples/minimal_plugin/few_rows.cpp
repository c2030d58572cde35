// One op by a kernel of plugins/cpu_kernels, a library in C++ for any plugin of a CPU: products of few rows, for which the second
// matrix need not be transposed.
#include <cstdint>

#include "cpu_kernels/skinny.h"

// False where a product is none of few rows; nothing is written then.
extern "C" bool multiply_few_rows(const float* a, const float* b, float* out, int64_t batches, int64_t rows, int64_t inner,
                                  int64_t columns) {
  constexpr int64_t kFew = 8;
  if (rows < 1 || rows > kFew || inner < 1 || inner > ltc::cpu::kMostTerms || columns < 1) return false;
  for (int64_t i = 0; i < batches; ++i) {
    ltc::cpu::skinny_add_rows({.rows = rows,
                               .inner = inner,
                               .columns = columns,
                               .a = {a + i * rows * inner, inner, 1},
                               .b = {b + i * inner * columns, columns, 1},
                               .addend = {},
                               .out = {out + i * rows * columns, columns, 1}});
  }
  return true;
}
