#include "gemm.h"

#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <ATen/ops/addmm_cpu_dispatch.h>
#include <ATen/ops/mm_cpu_dispatch.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <limits>
#include <mutex>
#include <string_view>
#include <unordered_map>

#include "errors.h"
#include "threads.h"

// Exported by libtorch, in a header that it does not ship: weak, since another version may lack it.
namespace at::native {
__attribute__((weak)) void mkldnn_matmul(const at::Tensor& a, const at::Tensor& b, const at::Tensor& out, float beta,
                                         float alpha);
}

namespace ltc::torchscript {
namespace {

enum class Choice : uint8_t { kTimed, kBlas, kOneDnn };

// MKL keeps its fastest kernels for Intel's processors. To time both costs a first step tens of milliseconds.
Choice usual_choice() {
#if defined(__x86_64__)
  if (__builtin_cpu_is("amd")) return Choice::kOneDnn;
#endif
  return Choice::kBlas;
}

Choice read_choice() {
  const char* const text = std::getenv("LTC_TS_GEMM");
  const std::string_view value = text ? text : "";
  if (value.empty()) return usual_choice();
  if (value == "timed") return Choice::kTimed;
  if (value == "blas") return Choice::kBlas;
  if (value == "onednn") return Choice::kOneDnn;
  throw Failure(LTC_INVALID_ARGUMENT, "LTC_TS_GEMM is \"" + std::string(value) + "\", not timed, blas or onednn");
}

Choice choice() {
  static const Choice read = read_choice();
  return read;
}

// libtorch's entry to oneDNN's products refuses processors that are slow at bf16, for F32 as well.
bool can_multiply() {
  if (!at::native::mkldnn_matmul || !at::hasMKLDNN()) return false;
  at::Tensor out(at::detail::empty_cpu({16, 16}, at::kFloat)), zeros(at::detail::empty_cpu({16, 16}, at::kFloat));
  try {
    multiply(Gemm::kOneDnn, out, zeros.zero_(), zeros);
    return true;
  } catch (const c10::Error&) {
    return false;
  }
}

bool has_onednn() {
  static const bool can = can_multiply();
  return can && at::globalContext().userEnabledMkldnn();
}

// Multiplications. Below the first, what oneDNN does before it begins is longer than the product; above the second, a part of it
// shows as much.
constexpr int64_t kSmall = 1 << 20;
constexpr int64_t kEnough = 1 << 26;
constexpr int64_t kNarrow = 4;  // a side: products with vectors are the BLAS's

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

// 0: by rows, 1: by columns, 2: neither.
uint64_t order_of(const at::Tensor& matrix) { return matrix.stride(1) == 1 ? 0 : matrix.stride(0) == 1 ? 1 : 2; }

uint64_t key_of(const at::Tensor& a, const at::Tensor& b) {
  uint64_t key = order_of(a) << 2 | order_of(b);
  for (const int64_t size : {a.size(0), a.size(1), b.size(1)}) key = key << 6 | std::bit_width(static_cast<uint64_t>(size));
  return key;
}

}  // namespace

void check_gemm_choice() { read_choice(); }

Gemm gemm_for(const at::Tensor& a, const at::Tensor& b) {
  static std::mutex mutex;
  static auto& known = *new std::unordered_map<uint64_t, Gemm>();  // leaked: work may be left at the end of the process
  if (choice() == Choice::kBlas || std::min(a.size(0), b.size(1)) < kNarrow) return Gemm::kBlas;
  if (a.size(0) * a.size(1) * b.size(1) < kSmall) return Gemm::kBlas;
  const bool timed = choice() == Choice::kTimed;
  if ((timed && at::globalContext().deterministicAlgorithms()) || !has_onednn()) return Gemm::kBlas;
  if (!timed) return Gemm::kOneDnn;
  const uint64_t key = key_of(a, b);
  std::lock_guard lock(mutex);  // while it is timed too: others would disturb it
  auto found = known.find(key);
  if (found == known.end()) found = known.emplace(key, faster(a, b)).first;
  return found->second;
}

void multiply(Gemm gemm, at::Tensor& out, const at::Tensor& a, const at::Tensor& b) {
  gemm == Gemm::kBlas ? void(at::cpu::mm_out(out, a, b)) : at::native::mkldnn_matmul(a, b, out, 0, 1);
}

void multiply_and_add(Gemm gemm, at::Tensor& out, const at::Tensor& addend, const at::Tensor& a, const at::Tensor& b,
                      const at::Scalar& beta, const at::Scalar& alpha) {
  if (gemm == Gemm::kBlas || !beta.equal(1) || !alpha.equal(1)) return void(at::cpu::addmm_out(out, addend, a, b, beta, alpha));
  // Not added by oneDNN, which writes beyond its memory where one row is multiplied so (with PyTorch 2.13).
  multiply(gemm, out, a, b);
  out.add_(addend);
}

}  // namespace ltc::torchscript
