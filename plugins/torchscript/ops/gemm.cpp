#include "torchscript/ops/gemm.h"

#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <ATen/ops/addmm_cpu_dispatch.h>
#include <ATen/ops/mm_cpu_dispatch.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <limits>
#include <mutex>
#include <string_view>
#include <unordered_map>

#include "cpu_kernels/skinny.h"
#include "torchscript/graph/errors.h"
#include "torchscript/ops/onednn.h"
#include "torchscript/threads/threads.h"

// The BLAS's routine, of matrices that lie by columns. Not in every libtorch.
extern "C" __attribute__((weak)) void sgemm_(const char* turn_a, const char* turn_b, const int* rows, const int* columns,
                                             const int* inner, const float* alpha, const float* a, const int* a_stride,
                                             const float* b, const int* b_stride, const float* beta, float* out,
                                             const int* out_stride);

namespace ltc::torchscript {
namespace {

enum class Choice : uint8_t { kAutotune, kBlas, kOneDnn, kBlasForAll };

// MKL keeps its fastest kernels for Intel's processors. To time both costs a first step tens of milliseconds.
Choice default_choice() {
#if defined(__x86_64__)
  if (__builtin_cpu_is("amd")) return Choice::kOneDnn;
#endif
  return Choice::kBlas;
}

std::atomic<Choice> g_choice{default_choice()};  // of the process

Choice choice() { return g_choice.load(std::memory_order_relaxed); }

// Multiplications. Below the first, what oneDNN does before it begins is longer than the product; above the second, a part of it
// shows as much.
constexpr int64_t kSmall = 1 << 20;
constexpr int64_t kEnough = 1 << 26;
constexpr int64_t kNarrow = 4;  // a side: products with vectors are the BLAS's
constexpr int64_t kFew = 8;     // rows, columns or terms of a skinny product

constexpr int kRounds = 3;
constexpr double kClearly = 0.85;

double seconds_of(Gemm gemm, at::Tensor& out, const at::Tensor& a, const at::Tensor& b) {
  const auto begin = std::chrono::steady_clock::now();
  multiply(gemm, out, a, b);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

Gemm faster(at::Tensor a, at::Tensor b) {
  const auto excess = [&] { return std::max<int64_t>(1, a.size(0) * a.size(1) * b.size(1) / kEnough); };
  a = a.narrow(0, 0, std::max(a.size(0) / excess(), std::min<int64_t>(a.size(0), 64)));
  b = b.narrow(1, 0, std::max(b.size(1) / excess(), std::min<int64_t>(b.size(1), 64)));
  at::Tensor out(at::detail::empty_cpu({a.size(0), b.size(1)}, at::kFloat));
  const OneThread alone;
  double best[2] = {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};
  for (int round = 0; round < kRounds; ++round) {
    for (const Gemm gemm : {Gemm::kBlas, Gemm::kOneDnn}) {
      double& least = best[static_cast<int>(gemm)];
      least = std::min(least, seconds_of(gemm, out, a, b));
    }
  }
  return best[1] < kClearly * best[0] ? Gemm::kOneDnn : Gemm::kBlas;
}

bool is_by_rows(const at::Tensor& x) { return x.stride(1) == 1 || x.size(1) == 1; }
bool is_by_columns(const at::Tensor& x) { return x.stride(0) == 1 || x.size(0) == 1; }

uint64_t order_of(const at::Tensor& matrix) { return is_by_rows(matrix) ? 0 : is_by_columns(matrix) ? 1 : 2; }

uint64_t key_of(const at::Tensor& a, const at::Tensor& b) {
  uint64_t key = order_of(a) << 2 | order_of(b);
  for (const int64_t size : {a.size(0), a.size(1), b.size(1)}) key = key << 6 | std::bit_width(static_cast<uint64_t>(size));
  return key;
}

// A matrix as the BLAS takes it: by rows it is the transposed one by columns.
struct BlasMatrix {
  char turn;
  const float* data;
  int stride;

  static std::optional<BlasMatrix> of(const at::Tensor& x) {
    constexpr int64_t kMost = std::numeric_limits<int>::max();
    const auto lies = [&](int64_t along, int64_t across) {
      return x.stride(along) == 1 && x.stride(across) >= std::max<int64_t>(x.size(along), 1) && x.stride(across) <= kMost;
    };
    if (x.size(0) > kMost || x.size(1) > kMost) return std::nullopt;
    if (lies(1, 0)) return BlasMatrix{'N', x.const_data_ptr<float>(), static_cast<int>(x.stride(0))};
    if (lies(0, 1)) return BlasMatrix{'T', x.const_data_ptr<float>(), static_cast<int>(x.stride(1))};
    return std::nullopt;
  }
};

// out = a b, or out += a b: as ATen computes it, whose way there takes longer than a small product. False: not for these.
bool multiply_by_blas(at::Tensor& out, const at::Tensor& a, const at::Tensor& b, float beta) {
  if (!sgemm_) return false;
  const auto left = BlasMatrix::of(b), right = BlasMatrix::of(a), to = BlasMatrix::of(out);  // of the transposed product
  if (!left || !right || !to || to->turn != 'N' || out.size(1) == 1) return false;           // a column goes another way in ATen
  const int rows = static_cast<int>(b.size(1)), columns = static_cast<int>(a.size(0)), inner = static_cast<int>(a.size(1));
  constexpr float kOne = 1;
  sgemm_(&left->turn, &right->turn, &rows, &columns, &inner, &kOne, left->data, &left->stride, right->data, &right->stride, &beta,
         out.mutable_data_ptr<float>(), &to->stride);
  return true;
}

// ---- skinny products

cpu::ConstMatrixView view_of(const at::Tensor& x) { return {x.const_data_ptr<float>(), x.stride(0), x.stride(1)}; }

template <typename View>
View transposed(const View& view) {
  return {view.data, view.column_stride, view.row_stride};
}

// As it broadcasts to a matrix.
cpu::ConstMatrixView addend_view(const at::Tensor& x) {
  const auto stride = [&](int64_t dim) { return dim >= 0 && x.size(dim) > 1 ? x.stride(dim) : 0; };
  return {x.const_data_ptr<float>(), stride(x.dim() - 2), stride(x.dim() - 1)};
}

void multiply_skinny(Gemm gemm, at::Tensor& out, const at::Tensor& a, const at::Tensor& b, const cpu::ConstMatrixView& addend) {
  const cpu::SkinnyProduct product{a.size(0),
                                   a.size(1),
                                   b.size(1),
                                   view_of(a),
                                   view_of(b),
                                   addend,
                                   {out.mutable_data_ptr<float>(), out.stride(0), out.stride(1)}};
  if (gemm == Gemm::kAddRows) return cpu::skinny_add_rows(product);
  if (gemm == Gemm::kDot) return cpu::skinny_dot(product);
  cpu::skinny_dot({product.columns, product.inner, product.rows, transposed(product.b), transposed(product.a),
                   transposed(product.addend), transposed(product.out)});
}

// Each row becomes the addend, if that is a row by itself.
bool fill_rows(at::Tensor& out, const at::Tensor& addend) {
  const cpu::ConstMatrixView row = addend_view(addend);
  if (row.row_stride != 0 || row.column_stride != 1 || out.stride(1) != 1 || addend.size(-1) != out.size(1)) return false;
  for (int64_t i = 0; i < out.size(0); ++i) {
    std::copy_n(row.data, out.size(1), out.mutable_data_ptr<float>() + i * out.stride(0));
  }
  return true;
}

}  // namespace

void choose_gemm(std::string_view name) {
  g_choice = name == "autotune" ? Choice::kAutotune
             : name == "blas"   ? Choice::kBlasForAll
             : name == "onednn" ? Choice::kOneDnn
                                : default_choice();
}

std::optional<Gemm> skinny_gemm_for(const at::Tensor& a, const at::Tensor& b) {
  if (choice() == Choice::kBlasForAll) return std::nullopt;
  const int64_t rows = a.size(0), inner = a.size(1), columns = b.size(1);
  if (inner > 1 && std::min(rows, columns) <= kFew && is_by_rows(a) && is_by_columns(b)) {
    return rows <= kFew ? Gemm::kDot : Gemm::kTransposedDot;
  }
  const bool adds_rows = std::min(rows, inner) <= kFew && inner <= cpu::kMostTerms && columns >= kFew && is_by_rows(b);
  return adds_rows ? std::optional(Gemm::kAddRows) : std::nullopt;
}

Gemm gemm_for(const at::Tensor& a, const at::Tensor& b) {
  static std::mutex mutex;
  static auto& known = *new std::unordered_map<uint64_t, Gemm>();  // leaked: work may be left at the end of the process
  if (choice() == Choice::kBlas || choice() == Choice::kBlasForAll) return Gemm::kBlas;
  if (std::min(a.size(0), b.size(1)) < kNarrow) return Gemm::kBlas;
  if (a.size(0) * a.size(1) * b.size(1) < kSmall) return Gemm::kBlas;
  const bool autotune = choice() == Choice::kAutotune;
  if ((autotune && at::globalContext().deterministicAlgorithms()) || !has_onednn()) return Gemm::kBlas;
  if (!autotune) return Gemm::kOneDnn;
  const uint64_t key = key_of(a, b);
  std::lock_guard lock(mutex);  // while it is timed too: others would disturb it
  auto found = known.find(key);
  if (found == known.end()) found = known.emplace(key, faster(a, b)).first;
  return found->second;
}

void multiply(Gemm gemm, at::Tensor& out, const at::Tensor& a, const at::Tensor& b) {
  switch (gemm) {
    case Gemm::kBlas: return multiply_by_blas(out, a, b, 0) ? void() : void(at::cpu::mm_out(out, a, b));
    case Gemm::kOneDnn: return multiply_by_onednn(out, a, b);
    default: return multiply_skinny(gemm, out, a, b, {});
  }
}

void multiply_and_add(Gemm gemm, at::Tensor& out, const at::Tensor& addend, const at::Tensor& a, const at::Tensor& b,
                      const at::Scalar& beta, const at::Scalar& alpha) {
  const bool plain = beta.equal(1) && alpha.equal(1);
  if (plain && gemm == Gemm::kBlas && fill_rows(out, addend) && multiply_by_blas(out, a, b, 1)) return;
  if (!plain || gemm == Gemm::kBlas) return void(at::cpu::addmm_out(out, addend, a, b, beta, alpha));
  if (const cpu::ConstMatrixView view = addend_view(addend); gemm != Gemm::kOneDnn && view.column_stride <= 1) {
    return multiply_skinny(gemm, out, a, b, view);
  }
  multiply(gemm, out, a, b);
  out.add_(addend);
}

}  // namespace ltc::torchscript
