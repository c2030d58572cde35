// How many threads the kernels of a run use: at most as many as PyTorch is told to.
//
// A short kernel has one: to wake others takes 30 us and more, as those of the queue's thread sleep between its kernels (OpenMP's
// threads do not spin where there are more of them than processors, and the program has some of its own).
// A program that records the next step while this one runs needs a processor as well: if there are no more processors than
// threads, one thread shares its own with the program, and all others wait for it. So one thread fewer is used; with two, the
// second joins in once somebody waits for the device.
#pragma once
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/jit/ir/ir.h>

#include <algorithm>
#include <cstdint>

#include "ltc/plugin.h"
#include "torchscript/threads/thread_pool.h"

namespace ltc::torchscript {

enum class Threads : uint8_t {
  kOne,
  kAny,  // the results are the same for any number: each element is one thread's work
  kAll,  // always the same number, so that results do not depend on who waits
};

// The threads of a node, or of several that run as one loop, by shapes alone.
Threads threads_for(const torch::jit::Node& node, const c10::OperatorHandle& op);
Threads threads_for(c10::ArrayRef<const torch::jit::Node*> cluster);

// Whether an operator with operands and results of these sizes is worth waking threads. Operands are those of the schema; one
// that is no tensor has no sizes.
using SizesList = c10::ArrayRef<c10::IntArrayRef>;
bool is_long(std::string_view op, SizesList operands, SizesList results);

class ThreadLimit {
 public:
  // Sees to the calling thread's kernels until it is destroyed. There is one per thread.
  ThreadLimit(const ltc_host_api* host, ThreadPool& thread_pool);
  ~ThreadLimit();
  ThreadLimit(const ThreadLimit&) = delete;
  ThreadLimit& operator=(const ThreadLimit&) = delete;

  // Before each kernel.
  void set(Threads threads) {
    threads_ = threads;
    if (most_ == 1) return;
    const bool leaves_one = few_ < most_ && threads == Threads::kAny && !host_->is_awaited(host_->host);
    const int wanted = threads == Threads::kOne ? 1 : leaves_one ? few_ : most_;
    if (wanted != now_) use(wanted);
  }

  // The limit of the calling thread; null outside of runs and inside of work that divide() calls.
  static ThreadLimit* current();

  // The most threads that a kernel of the run has, whoever waits.
  int most() const { return most_; }

  // ThreadPool::run, with the threads that the kernel may have.
  void divide(int64_t chunks, ThreadPool::Work work);

 private:
  void use(int threads);

  const ltc_host_api* const host_;
  ThreadPool& thread_pool_;
  ThreadLimit* const outer_;
  const int all_;
  int most_, few_, now_;
  Threads threads_ = Threads::kOne;
};

// While one lives, kernels do not divide their work, libtorch's and ours.
class OneThread {
 public:
  OneThread();
  ~OneThread();
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  ThreadLimit* const thread_limit_;
  const int outer_, outer_blas_;
};

// The most threads that a kernel of the calling thread's run has: where the shape of its chunks shows in the results, they must
// depend on nothing else but the operands.
inline int most_threads() { return ThreadLimit::current() ? ThreadLimit::current()->most() : 1; }

// Chunks for each of them, where they are few and large: whoever is late takes fewer.
inline constexpr int kChunksPerThread = 2;

// Calls work(i) for all i below `chunks`, in the threads of the calling thread's kernel.
template <typename Work>
void for_each_chunk(int64_t chunks, Work work) {
  if (ThreadLimit* const thread_limit = ThreadLimit::current(); thread_limit && thread_limit->most() > 1)
    return thread_limit->divide(chunks, work);
  for (int64_t i = 0; i < chunks; ++i) work(i);
}

// Calls work(begin, end) for ranges that are 0 .. count together, of `grain` at least. They say nothing about the results.
template <typename Work>
void divide(int64_t count, int64_t grain, Work work) {
  constexpr int kRangesEach = 4;
  const int64_t most = most_threads() == 1 ? 1 : int64_t{kRangesEach} * most_threads();
  const int64_t chunks = std::clamp<int64_t>(count / std::max<int64_t>(grain, 1), 1, most);
  for_each_chunk(chunks, [&](int64_t i) { work(count * i / chunks, count * (i + 1) / chunks); });
}

}  // namespace ltc::torchscript
