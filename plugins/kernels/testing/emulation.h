// Runs the text of CUDA kernels on the host, for tests: a fiber per thread of a block, which goes on to the next one where
// threads meet; warps run one after the other from one meeting of the block to the next. This file states CUDA's side of the
// language only; the kernels are those that a GPU would get. emulated_tensor_cores.h has the functions of their assembly.
#pragma once
#include <string>
#include <vector>

namespace ltc::kernels {

// Stands before the program. Threads of a warp or block that do not come to the same meetings are found, and what a kernel
// does that a device would refuse (`refuse`): the launch then answers false.
inline constexpr const char* kEmulation = R"c(
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

#include <functional>
#include <utility>
#include <vector>

#define __global__
#define __device__
#define __shared__ static
#define __launch_bounds__(...)

struct Triple {
  unsigned x, y, z;
};
static Triple threadIdx, blockIdx, blockDim, gridDim;

template <typename To, typename From>
static To same_bits(From from) {
  To to;
  memcpy(&to, &from, sizeof to);
  return to;
}
static float __uint_as_float(unsigned x) { return same_bits<float>(x); }
static float __int_as_float(int x) { return same_bits<float>(x); }
static unsigned __float_as_uint(float x) { return same_bits<unsigned>(x); }
static double __longlong_as_double(long long x) { return same_bits<double>(x); }
static long long __double_as_longlong(double x) { return same_bits<long long>(x); }

namespace emulation {

enum class Place : char { kStart, kWarp, kBlock, kEnd };  // where a fiber stands: what it meets for

struct Fiber {
  ucontext_t context;
  std::vector<char> stack = std::vector<char>(1 << 17);
  Place place = Place::kStart;
};
static std::vector<Fiber> fibers;
static ucontext_t scheduler;
static const std::function<void()>* body;
static bool refused;

static void refuse(const char* why) {
  if (!refused) fprintf(stderr, "thread %u of block %u: %s\n", threadIdx.x, blockIdx.x, why);
  refused = true;
}

static void run_thread() {
  (*body)();
  fibers[threadIdx.x].place = Place::kEnd;
}

static void meet(Place place) {
  Fiber& fiber = fibers[threadIdx.x];
  fiber.place = place;
  swapcontext(&fiber.context, &scheduler);
}

// Threads [begin, end) up to where their block meets, or their end; none of them goes past another by a meeting.
static bool run_warp(unsigned begin, unsigned end) {
  do {
    for (unsigned i = begin; i < end; ++i) {
      threadIdx.x = i;
      swapcontext(&scheduler, &fibers[i].context);
      if (fibers[i].place != fibers[begin].place) return false;
    }
  } while (fibers[begin].place == Place::kWarp);
  return true;
}

static bool run_block(unsigned threads) {
  fibers.resize(threads);
  for (Fiber& fiber : fibers) {
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.data();
    fiber.context.uc_stack.ss_size = fiber.stack.size();
    fiber.context.uc_link = &scheduler;
    makecontext(&fiber.context, run_thread, 0);
  }
  do {
    for (unsigned begin = 0; begin < threads; begin += 32) {
      if (!run_warp(begin, begin + 32 < threads ? begin + 32 : threads)) return false;
      if (fibers[begin].place != fibers[0].place) return false;
    }
  } while (fibers[0].place == Place::kBlock);
  return true;
}

static bool run(const std::function<void()>& thread, unsigned blocks, unsigned threads, bool meets) {
  body = &thread;
  refused = false;
  blockDim = {threads, 1, 1};
  gridDim = {blocks, 1, 1};
  for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x) {
    if (meets && !run_block(threads)) return false;
    for (threadIdx.x = 0; !meets && threadIdx.x < threads; ++threadIdx.x) thread();
  }
  return !refused;
}

template <typename T>
T argument(void* given) {
  if constexpr (std::is_pointer_v<T>) return static_cast<T>(given);
  else return *static_cast<const T*>(given);
}
template <typename... Args, size_t... I>
bool launch(void (*kernel)(Args...), void* const* args, long items, long local, bool meets, std::index_sequence<I...>) {
  return run([&] { kernel(argument<Args>(args[I])...); }, (unsigned)((items + local - 1) / local), (unsigned)local, meets);
}
template <typename... Args>
bool launch(void (*kernel)(Args...), void* const* args, long items, long local, bool meets) {
  return launch(kernel, args, items, local, meets, std::index_sequence_for<Args...>());
}

}  // namespace emulation

static void __syncthreads() { emulation::meet(emulation::Place::kBlock); }
static void __syncwarp() { emulation::meet(emulation::Place::kWarp); }
template <typename T>
static T __shfl_xor_sync(unsigned, T x, int step) {
  static T all[1024];
  all[threadIdx.x] = x;
  __syncwarp();
  const T other = all[threadIdx.x ^ (unsigned)step];
  __syncwarp();
  return other;
}
)c";

// Stands behind a program: runs kernel i with its arguments in an array; false where its threads part.
inline std::string emulated_launch(size_t i, const std::string& kernel) {
  const std::string number = std::to_string(i);
  const bool meets = kernel.find("ltc_partner") != kernel.npos || kernel.find("__sync") != kernel.npos;
  return "extern \"C\" bool emulated_" + number +
         "(void* const* args, long items, long local) {\n  return emulation::launch(ltc_kernel_" + number +
         ", args, items, local, " + (meets ? "true" : "false") + ");\n}\n";
}

}  // namespace ltc::kernels
