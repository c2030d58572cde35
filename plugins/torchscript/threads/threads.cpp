#include "torchscript/threads/threads.h"

#include <ATen/Parallel.h>
#include <ATen/core/enum_tag.h>

#include <algorithm>
#include <string_view>
#include <thread>
#include <utility>

#include "torchscript/graph/op_traits.h"
#include "torchscript/graph/program.h"

#ifdef _OPENMP
#include <omp.h>
#endif

// MKL's number for the calling thread; 0: as for all threads. Returns the one before. Not in every libtorch.
extern "C" __attribute__((weak)) int MKL_Set_Num_Threads_Local(int threads);

namespace ltc::torchscript {
namespace {

using torch::jit::Node;

constexpr int64_t kLongWork = 100'000;         // ns of one thread that are worth waking others
constexpr int64_t kMultiplicationsPerNs = 50;  // of an AVX-512 machine's matrix products
constexpr int64_t kElementsPerNs = 4;          // read or written

thread_local ThreadLimit* t_thread_limit = nullptr;

void openmp_threads([[maybe_unused]] int threads) {
#ifdef _OPENMP
  omp_set_num_threads(threads);
#endif
}

int blas_threads(int threads) { return MKL_Set_Num_Threads_Local ? MKL_Set_Num_Threads_Local(threads) : 0; }

int64_t moved_elements(SizesList operands, SizesList results) {
  int64_t sum = 0;
  for (const SizesList list : {operands, results}) {
    for (const c10::IntArrayRef sizes : list) sum += c10::multiply_integers(sizes);
  }
  return sum;
}

int64_t multiplications(const ProductCost& row, SizesList operands, SizesList results) {
  const c10::IntArrayRef right = operands[row.right];
  if (right.size() <= row.right_dims) return 0;
  const int64_t left = c10::multiply_integers(row.left_is_result ? results[row.left] : operands[row.left]);
  return left * row.times * c10::multiply_integers(right.slice(row.right_dims));
}

// About how long one thread needs.
int64_t nanoseconds(std::string_view op, SizesList operands, SizesList results) {
  const std::optional<ProductCost>& product = traits_of(op).product;
  const int64_t multiplying = product ? multiplications(*product, operands, results) / kMultiplicationsPerNs : 0;
  return multiplying + (product && product->is_step ? 0 : moved_elements(operands, results) / kElementsPerNs);
}

int64_t nanoseconds(const Node& node) {
  c10::SmallVector<TensorSpec, 8> specs;
  for (const auto* value : node.inputs()) specs.push_back(spec_of(*value));
  for (const auto* value : node.outputs()) specs.push_back(spec_of(*value));
  c10::SmallVector<c10::IntArrayRef, 8> sizes;
  for (const TensorSpec& spec : specs) sizes.emplace_back(spec.sizes);
  const SizesList all(sizes);
  return nanoseconds(node.kind().toQualString(), all.slice(0, node.inputs().size()), all.slice(node.inputs().size()));
}

}  // namespace

bool is_long(std::string_view op, SizesList operands, SizesList results) {
  return nanoseconds(op, operands, results) >= kLongWork;
}

Threads threads_for(const Node& node, const c10::OperatorHandle& op) {
  if (nanoseconds(node) < kLongWork) return Threads::kOne;
  const std::string_view name = op.operator_name().name;
  const bool usual = op.hasTag(at::Tag::pointwise) || name.starts_with("ltc_torchscript::");
  return traits_of(name).any_threads.value_or(usual) ? Threads::kAny : Threads::kAll;
}

Threads threads_for(c10::ArrayRef<const Node*> cluster) {
  int64_t sum = 0;
  for (const Node* node : cluster) sum += nanoseconds(*node);
  return sum < kLongWork ? Threads::kOne : Threads::kAny;
}

ThreadLimit::ThreadLimit(const ltc_host_api* host, ThreadPool& thread_pool)
    : host_(host),
      thread_pool_(thread_pool),
      outer_(std::exchange(t_thread_limit, this)),
      all_(at::get_num_threads()),
      most_(all_),
      few_(all_),
      now_(all_) {
  static const int processors = static_cast<int>(std::thread::hardware_concurrency());
  if (processors > 0) few_ = std::clamp(processors - 1, 1, all_);
  // OpenMP's threads are kept only while their number stays, or is 1.
  if (few_ > 1) most_ = few_;
}

ThreadLimit::~ThreadLimit() {
  if (now_ != all_) use(all_);
  t_thread_limit = outer_;
}

ThreadLimit* ThreadLimit::current() { return t_thread_limit; }

void ThreadLimit::use(int threads) {
  openmp_threads(threads);
  blas_threads(threads == all_ ? 0 : threads);
  now_ = threads;
}

void ThreadLimit::divide(int64_t chunks, ThreadPool::Work work) {
  OneThread alone;
  const int most = threads_ == Threads::kOne ? 0 : most_ - 1;
  thread_pool_.run(chunks, threads_ == Threads::kAny ? few_ - 1 : most, most, work);
}

OneThread::OneThread()
    : thread_limit_(std::exchange(t_thread_limit, nullptr)), outer_(at::get_num_threads()), outer_blas_(blas_threads(1)) {
  openmp_threads(1);
}

OneThread::~OneThread() {
  openmp_threads(outer_);
  blas_threads(outer_blas_);
  t_thread_limit = thread_limit_;
}

}  // namespace ltc::torchscript
