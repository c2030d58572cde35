#include "torchscript/threads/thread_pool.h"

#include <pthread.h>

#include <chrono>
#include <exception>

#include "torchscript/threads/memory_pool.h"
#include "torchscript/threads/quiet_dispatch.h"
#include "torchscript/threads/threads.h"

namespace ltc::torchscript {
namespace {

// How long a worker spins for more, while somebody waits for the device: to wake it takes 50 us and more.
constexpr std::chrono::microseconds kLinger{100};
constexpr std::chrono::microseconds kGiveWay{10};  // between yields meanwhile
constexpr int kLooks = 8;                          // between those at the clock

// Leaves the processor's units to the thread beside it for a moment, if they share one.
void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

struct ThreadPool::Job {
  bool do_one() noexcept {
    const int64_t chunk = next.fetch_add(1, std::memory_order_relaxed);
    if (chunk >= chunks) return false;
    try {
      work(chunk);
    } catch (...) {
      if (!failed.test_and_set()) error = std::current_exception();
    }
    return true;
  }

  const Work work;
  const int64_t chunks;
  std::atomic<int> workers{0};  // called so far
  std::atomic<int64_t> next{0};
  std::atomic_flag failed{};
  std::exception_ptr error{};
};

ThreadPool::~ThreadPool() {
  is_stopping_ = true;
  ++calls_;
  calls_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::call(Job& job, int workers) {
  try {
    while (threads_.size() < static_cast<size_t>(workers)) {
      threads_.emplace_back([this, number = static_cast<int>(threads_.size())] { run_worker(number); });
    }
  } catch (const std::exception&) {  // those that there are do it, perhaps with this one alone
  }
  job.workers = workers;
  job_ = &job;
  ++calls_;
  calls_.notify_all();
}

void ThreadPool::run(int64_t chunks, int few, int most, Work work) {
  if (chunks < 2 || most < 1 || is_busy_.test_and_set(std::memory_order_acquire)) {
    for (int64_t chunk = 0; chunk < chunks; ++chunk) work(chunk);
    return;
  }
  Job job{work, chunks};
  do {
    const int wanted = few == most || host_->is_awaited(host_->host) ? most : few;
    if (wanted > job.workers) call(job, wanted);
  } while (job.do_one());
  job_ = nullptr;
  while (inside_ > 0) std::this_thread::yield();
  is_busy_.clear(std::memory_order_release);
  if (job.error) std::rethrow_exception(job.error);
}

void ThreadPool::run_worker(int number) {
  pthread_setname_np(pthread_self(), "ltc_worker");  // for debuggers and profilers
  OneThread alone;
  QuietDispatch quiet;
  MemoryPoolScope pooled;
  for (uint32_t seen = 0;;) {
    wait_for_call(seen);
    seen = calls_;  // before the end is looked for, which is a call too: nobody calls after it
    if (is_stopping_) return;
    ++inside_;  // before the job is looked at: whoever took it back waits for those inside
    if (Job* const job = job_; job && number < job->workers) {
      while (job->do_one()) {
      }
    }
    --inside_;
  }
}

// Until there was another call than the last one seen. It yields now and then meanwhile, so that a thread with work to do gets
// the processor; system calls one after the other would slow down the one beside.
void ThreadPool::wait_for_call(uint32_t last) const {
  const auto end = std::chrono::steady_clock::now() + kLinger;
  for (auto now = end - kLinger, yielded = now - kGiveWay; now < end && host_->is_awaited(host_->host);) {
    for (int look = 0; look < kLooks; ++look) {
      if (calls_ != last) return;
      relax();
    }
    if (now - yielded >= kGiveWay) {
      std::this_thread::yield();
      yielded = now;
    }
    now = std::chrono::steady_clock::now();
  }
  calls_.wait(last);
}

}  // namespace ltc::torchscript
