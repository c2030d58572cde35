// Memory of runs and of transfers, kept for the next ones: fresh pages from the operating system cost a training step a tenth
// of its time and more.
#pragma once
#include <cstddef>

namespace ltc::torchscript {

// Once, before anything runs: later would be while other threads allocate for programs of theirs.
void install_memory_pool();

// Whether the system has so much memory, as far as it says so. It may be less than the pool could give.
bool can_allocate(double bytes);

// While one lives, what the thread that made it allocates for CPU tensors comes from a pool of the process, from kPooledBytes up.
// Wherever the memory is freed, it goes back there; what no run has wanted for some time goes back to the system.
//
// The pool stands before the CPU allocator that libtorch had, which keeps serving everybody else.
class MemoryPoolScope {
 public:
  enum Use { kRun, kTransfer };  // the end of a run makes what lies unused older

  explicit MemoryPoolScope(Use use = kRun);
  ~MemoryPoolScope();
  MemoryPoolScope(const MemoryPoolScope&) = delete;
  MemoryPoolScope& operator=(const MemoryPoolScope&) = delete;

 private:
  const bool outer_, ends_run_;
};

}  // namespace ltc::torchscript
