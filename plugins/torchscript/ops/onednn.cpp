#include "torchscript/ops/onednn.h"

#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <torch/version.h>

#include <algorithm>

// Weak, since another version may lack it.
namespace at::native {
__attribute__((weak)) void mkldnn_matmul(const at::Tensor& a, const at::Tensor& b, const at::Tensor& out, float beta,
                                         float alpha);
}

namespace ltc::torchscript {
namespace {

// The versions whose entry is known to do what we want.
constexpr bool kIsKnownVersion = TORCH_VERSION_MAJOR == 2 && (TORCH_VERSION_MINOR == 13 || TORCH_VERSION_MINOR == 14);

// In whole numbers, so that the result is exact in any order of the sum.
struct Trial {
  int64_t rows, inner, columns;
  bool turn_a, turn_b;

  static float element(int64_t row, int64_t column) { return static_cast<float>((3 * row + 5 * column) % 7 - 3); }

  static at::Tensor matrix(int64_t rows, int64_t columns, bool turn) {
    at::Tensor made(at::detail::empty_cpu({turn ? columns : rows, turn ? rows : columns}, at::kFloat));
    if (turn) made = made.t();
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j)
        made.mutable_data_ptr<float>()[i * made.stride(0) + j * made.stride(1)] = element(i, j);
    }
    return made;
  }

  float expected(int64_t row, int64_t column) const {
    float sum = 0;
    for (int64_t k = 0; k < inner; ++k) sum += element(row, k) * element(k, column);
    return sum;
  }

  // The result lies in the middle of memory that holds a mark.
  bool passes() const {
    constexpr float kMark = 0.5f;
    constexpr int64_t kAround = 32, kBetween = 16;  // rows and columns of the mark
    at::Tensor all(at::detail::empty_cpu({rows + 2 * kAround, columns + kBetween}, at::kFloat));
    std::fill_n(all.mutable_data_ptr<float>(), all.numel(), kMark);
    at::Tensor out = all.narrow(0, kAround, rows).narrow(1, 0, columns);
    multiply_by_onednn(out, matrix(rows, inner, turn_a), matrix(inner, columns, turn_b));
    const float* made = all.const_data_ptr<float>();
    for (int64_t row = -kAround; row < rows + kAround; ++row) {
      for (int64_t column = 0; column < columns + kBetween; ++column) {
        const bool inside = row >= 0 && row < rows && column < columns;
        if (*made++ != (inside ? expected(row, column) : kMark)) return false;
      }
    }
    return true;
  }
};

// Small sides and odd ones, each order of the operands.
constexpr Trial kTrials[] = {
    {4, 33, 21, false, false}, {37, 18, 4, false, true}, {16, 64, 48, true, false}, {19, 35, 67, true, true}};

bool passes_trials() {
  if (!kIsKnownVersion || !at::native::mkldnn_matmul || !at::hasMKLDNN()) return false;
  try {
    if (std::ranges::all_of(kTrials, &Trial::passes)) return true;
  } catch (const c10::Error&) {
    return false;  // it refuses processors that are slow at bf16, for F32 as well
  }
  TORCH_WARN("oneDNN's products failed a trial; torchscript leaves them to the BLAS");
  return false;
}

}  // namespace

bool has_onednn() {
  static const bool passes = passes_trials();
  return passes && at::globalContext().userEnabledMkldnn();
}

// With beta 0: with 1 it writes beyond its memory where one row is multiplied (PyTorch 2.13).
void multiply_by_onednn(at::Tensor& out, const at::Tensor& a, const at::Tensor& b) { at::native::mkldnn_matmul(a, b, out, 0, 1); }

}  // namespace ltc::torchscript
