// Threads that help the one that runs a program.
//
// They take pieces of its work as they come. One that is late, because it slept or its processor does something else, finds none
// left, and nobody waits for it: with OpenMP's threads, which have their share each, everybody waits for the last to wake.
#pragma once
#include <c10/util/FunctionRef.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "ltc/plugin.h"

namespace ltc::torchscript {

class Team {
 public:
  explicit Team(const ltc_host_api* host) : host_(host) {}
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  // Calls work(0) ... work(pieces - 1), each in this thread or in one of `few` helpers, `most` once somebody waits for the
  // device; throws what one of them threw. One thread is helped at a time; another does its work alone. Where the system gives
  // no more threads, fewer help.
  using Work = c10::function_ref<void(int64_t piece)>;
  void run(int64_t pieces, int few, int most, Work work);

 private:
  struct Job;

  void call(Job& job, int helpers);
  void help(int number);
  void await_call(uint32_t last) const;

  const ltc_host_api* const host_;
  std::vector<std::thread> threads_;
  std::atomic_flag is_busy_;
  std::atomic<bool> is_stopping_{false};
  std::atomic<uint32_t> calls_{0};  // for help
  std::atomic<Job*> job_{nullptr};
  std::atomic<int> inside_{0};  // helpers that may hold the job
};

}  // namespace ltc::torchscript
