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
    case Gemm::kBlas: return void(at::cpu::mm_out(out, a, b));
    case Gemm::kOneDnn: return multiply_by_onednn(out, a, b);
    default: return multiply_skinny(gemm, out, a, b, {});
  }
}

void multiply_and_add(Gemm gemm, at::Tensor& out, const at::Tensor& addend, const at::Tensor& a, const at::Tensor& b,
                      const at::Scalar& beta, const at::Scalar& alpha) {
  if (gemm == Gemm::kBlas || !beta.equal(1) || !alpha.equal(1)) return void(at::cpu::addmm_out(out, addend, a, b, beta, alpha));
  if (const cpu::ConstMatrixView view = addend_view(addend); gemm != Gemm::kOneDnn && view.column_stride <= 1) {
    return multiply_skinny(gemm, out, a, b, view);
  }
  multiply(gemm, out, a, b);
  out.add_(addend);
}

}  // namespace ltc::torchscript
