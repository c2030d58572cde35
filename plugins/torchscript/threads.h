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

#include "ltc/plugin.h"

namespace ltc::torchscript {

enum class Threads : uint8_t {
  kOne,
  kAny,  // the results are the same for any number: each element is one thread's work
  kAll,  // always the same number, so that results do not depend on who waits
};

// Of a node, or of several that run as one loop, by shapes alone.
Threads threads_for(const torch::jit::Node& node, const c10::OperatorHandle& op);
Threads threads_for(c10::ArrayRef<const torch::jit::Node*> cluster);

class Crew {
 public:
  // Sees to the calling thread's kernels until it is destroyed. There is one per thread.
  explicit Crew(const ltc_host_api* host);
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  // Before each kernel.
  void prepare(Threads threads) {
    if (most_ == 1) return;
    const bool leaves_one = few_ < most_ && threads == Threads::kAny && !host_->is_awaited(host_->host);
    const int wanted = threads == Threads::kOne ? 1 : leaves_one ? few_ : most_;
    if (wanted != now_) use(wanted);
  }

  // Into how many pieces the calling thread's kernels may divide their work, however many threads there are to do it.
  static int pieces();

 private:
  void use(int threads);

  const ltc_host_api* const host_;
  const int all_;
  int most_, few_, now_;
};

// While one lives, the BLAS behind libtorch computes in the calling thread alone.
class OneThread {
 public:
  OneThread();
  ~OneThread();
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int outer_;
};

}  // namespace ltc::torchscript
