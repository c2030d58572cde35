#include "torchscript/threads/threads.h"

#include <ATen/Parallel.h>
#include <ATen/core/enum_tag.h>

#include <algorithm>
#include <string_view>
#include <thread>
#include <utility>

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

// Many kernels in one: that nobody waits when it begins says nothing of when it ends.
constexpr std::string_view kLayer = "ltc_torchscript::transformer_encoder_layer_fwd";

// What multiplies matrices: each element of one operand or result, with each of another but for its first dims.
struct ProductRow {
  std::string_view name;
  size_t left;
  bool left_is_result;
  size_t right, right_dims;
  int64_t times;
  bool is_step = false;  // one of many that follow each other: work and threads are those of one
};
constexpr ProductRow kProducts[] = {
    {"aten::mm", 0, false, 1, 1, 1},
    {"aten::addmm", 1, false, 2, 1, 1},
    {"aten::bmm", 0, false, 1, 2, 1},
    {"aten::baddbmm", 1, false, 2, 2, 1},
    {"aten::convolution", 0, true, 1, 1, 1},
    {"aten::convolution_backward", 0, false, 2, 1, 2},
    {"ltc_torchscript::winograd_convolution", 0, true, 1, 1, 1},
    {"ltc_torchscript::winograd_convolution_backward", 0, false, 2, 1, 2},
    {"ltc_torchscript::wide_convolution_backward", 0, false, 2, 1, 2},
    {"ltc_torchscript::attention", 1, true, 1, 2, 2},
    {"ltc_torchscript::attention_backward", 5, false, 2, 2, 5},
    {kLayer, 0, false, 3, 1, 12},
    {"ltc::lstm_layer", 1, false, 4, 1, 4, true},
    {"ltc::lstm_layer_backward", 4, false, 7, 1, 4, true},
    {"ltc::gru_layer", 1, false, 3, 1, 3, true},
    {"ltc::gru_layer_backward", 3, false, 5, 1, 3, true},
};

// Beside those that work element by element, and our own.
constexpr std::string_view kAnyThreadsDo[] = {
    "aten::mm",
    "aten::addmm",
    "aten::cat",
    "aten::stack",
    "aten::clone",
    "aten::contiguous",
    "aten::_to_copy",
    "aten::_log_softmax",
    "aten::_log_softmax_backward_data",
    "aten::_softmax_backward_data",
    "aten::max_pool2d_with_indices_backward",
};

int64_t elements(const torch::jit::Value& value) { return c10::multiply_integers(spec_of(value).sizes); }

int64_t moved_elements(const Node& node) {
  int64_t sum = 0;
  for (const auto* value : node.inputs()) sum += elements(*value);
  for (const auto* value : node.outputs()) sum += elements(*value);
  return sum;
}

int64_t multiplications(const Node& node, const ProductRow& row) {
  const auto right = spec_of(*node.input(row.right)).sizes;
  if (right.size() <= row.right_dims) return 0;
  const int64_t left = elements(row.left_is_result ? *node.output(row.left) : *node.input(row.left));
  return left * row.times * c10::multiply_integers(right.begin() + static_cast<std::ptrdiff_t>(row.right_dims), right.end());
}

// About how long one thread needs.
int64_t nanoseconds(const Node& node) {
  const auto row = std::ranges::find(kProducts, std::string_view(node.kind().toQualString()), &ProductRow::name);
  const int64_t multiplying = row == std::end(kProducts) ? 0 : multiplications(node, *row) / kMultiplicationsPerNs;
  const bool is_step = row != std::end(kProducts) && row->is_step;
  return multiplying + (is_step ? 0 : moved_elements(node) / kElementsPerNs);
}

}  // namespace

Threads threads_for(const Node& node, const c10::OperatorHandle& op) {
  if (nanoseconds(node) < kLongWork) return Threads::kOne;
  const std::string_view name = op.operator_name().name;
  const bool any = op.hasTag(at::Tag::pointwise) || (name.starts_with("ltc_torchscript::") && name != kLayer) ||
                   std::ranges::find(kAnyThreadsDo, name) != std::end(kAnyThreadsDo);
  return any ? Threads::kAny : Threads::kAll;
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
