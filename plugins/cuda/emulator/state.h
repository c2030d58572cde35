// The driver's objects. One lock guards them all; work runs on the thread of whoever waits for it.
#pragma once
#include <cuda.h>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "cuda/emulator/launch.h"

namespace ltc::emulator {

// How a device is lost (ltc_emulator_lose_device).
struct Loss {
  CUresult error = CUDA_SUCCESS;  // CUDA_SUCCESS: it is not lost
  uint64_t launches = 0;          // that still run before
  bool for_good = false;
  bool has_happened = false;
};

}  // namespace ltc::emulator

struct CUctx_st {
  int device = 0;
  int users = 0;
  CUresult error = CUDA_SUCCESS;  // stays until the last user has released the context
  ltc::emulator::Loss loss;
};
struct CUfunc_st {
  CUmod_st* module = nullptr;
  ltc::emulator::Function* function = nullptr;
};
struct CUmod_st {
  CUctx_st* context = nullptr;
  std::unique_ptr<ltc::emulator::Module> module;
  std::map<std::string, CUfunc_st> functions;
};
struct CUmemPoolHandle_st {
  int device = 0;
  uint32_t readers = 0;  // devices, as bits
};

namespace ltc::emulator {

using Work = std::function<void()>;

// Outlives its handle: events and other streams wait for what it was given.
struct Stream {
  CUctx_st* context = nullptr;
  std::deque<Work> queue;
  uint64_t submitted = 0, done = 0;
  CUgraph capture = nullptr;  // takes what is submitted, instead of the queue
};
using StreamRef = std::shared_ptr<Stream>;

struct KernelCall {
  CUfunction function = nullptr;
  Dimensions grid, block;
  uint32_t shared_bytes = 0;
  std::vector<std::byte> params;  // their values when the call was made
};

}  // namespace ltc::emulator

struct CUstream_st {
  ltc::emulator::StreamRef stream;
};
struct CUevent_st {
  ltc::emulator::StreamRef stream;  // null: never recorded
  uint64_t place = 0;
};
// One of three: a kernel, other work, or a graph of its own.
struct CUgraphNode_st {
  std::vector<CUgraphNode> after;
  std::unique_ptr<ltc::emulator::KernelCall> kernel;
  ltc::emulator::Work work;
  std::unique_ptr<CUgraph_st> child;
};
struct CUgraph_st {
  std::vector<std::unique_ptr<CUgraphNode_st>> nodes;
};
struct CUgraphExec_st {
  CUctx_st* context = nullptr;
  CUgraph_st graph;
  std::map<CUgraphNode, CUgraphNode> copies;  // by the node of the graph that it was made from
};

namespace ltc::emulator {

struct State {
  State();

  std::recursive_mutex lock;
  std::vector<CUctx_st> contexts;  // one per device
  int capability = 0;
  Memory memory;
  Shadow shadow;
  Order order;
  uint64_t segments = 0;
  std::map<uint64_t, uint64_t> pinned;  // address, bytes
  std::vector<std::weak_ptr<Stream>> streams;
  std::map<std::string, uint64_t> uses;  // of instructions in loaded modules, and of some functions

  void add(const StreamRef& stream);
  void submit(const StreamRef& stream, Work work);
  // Runs what was submitted before the place, and what that waits for.
  void run(Stream& stream, uint64_t until);
  void run_kernel(const KernelCall& call);
  bool is_pinned(const void* memory, uint64_t bytes) const;

 private:
  void run_one(Stream& stream);
  void run_something();
};

State& state();
// The calling thread's; throws a Fault where there is none, or where it has met an error.
CUctx_st& current_context();
void check_context(const CUctx_st& context);

// Calls `body` under the lock; a Fault becomes the answer.
template <typename Body>
CUresult answer(Body body) noexcept {
  const std::lock_guard guard(state().lock);
  try {
    body();
    return CUDA_SUCCESS;
  } catch (const Fault& fault) {
    if (!fault.text.empty()) std::fprintf(stderr, "emulator: %s\n", fault.text.c_str());
    return fault.code;
  } catch (const std::bad_alloc&) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
}
inline void require(bool holds, CUresult code = CUDA_ERROR_INVALID_VALUE) {
  if (!holds) throw Fault{code, {}};
}

KernelCall kernel_call(CUfunction function, Dimensions grid, Dimensions block, uint32_t shared_bytes, void** params);

}  // namespace ltc::emulator

#define LTC_EMULATED extern "C" __attribute__((visibility("default"))) CUresult
