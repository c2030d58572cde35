// Threads that help the one that runs a program.
//
// They take chunks of its work as they come. One that is late, because it slept or its processor does something else, finds none
// left, and nobody waits for it: with OpenMP's threads, which have their share each, everybody waits for the last to wake.
#pragma once
#include <c10/util/FunctionRef.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "ltc/plugin.h"

namespace ltc::torchscript {

class ThreadPool {
 public:
  explicit ThreadPool(const ltc_host_api* host) : host_(host) {}
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // Calls work(0) ... work(chunks - 1), each in this thread or in one of `few` workers, `most` once somebody waits for the
  // device; throws what one of them threw. One thread is served at a time; another does its work alone. Where the system gives
  // no more threads, fewer help.
  using Work = c10::function_ref<void(int64_t chunk)>;
  void run(int64_t chunks, int few, int most, Work work);

 private:
  struct Job;

  void call(Job& job, int workers);
  void run_worker(int number);
  void wait_for_call(uint32_t last) const;

  const ltc_host_api* const host_;
  std::vector<std::thread> threads_;
  std::atomic_flag is_busy_;
  std::atomic<bool> is_stopping_{false};
  std::atomic<uint32_t> calls_{0};  // for help
  std::atomic<Job*> job_{nullptr};
  std::atomic<int> inside_{0};  // workers that may hold the job
};

}  // namespace ltc::torchscript
