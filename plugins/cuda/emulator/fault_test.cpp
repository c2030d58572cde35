// The check of the checks: kernels with a fault each must fail or compute something else, and their correct twins must pass. Both
// come from one text, where FAULTY says which it is.
#include <gmock/gmock.h>

#include <functional>

#include "cuda/emulator/test_device.h"

namespace ltc::emulator {
namespace {

constexpr unsigned kThreads = 64, kBlocks = 2, kCount = kThreads * kBlocks;

struct Case {
  const char* name;
  const char* body;  // of a kernel; i: the thread's number in the launch, t: in its block
  float (*expected)(unsigned i);
};

// in[i] = i + 1, which the device has before; out is fresh.
float in(unsigned i) { return static_cast<float>(i + 1); }
float same(unsigned i) { return in(i); }
float reversed(unsigned i) { return in(i / kThreads * kThreads + kThreads - 1 - i % kThreads); }
float neighbour(unsigned i) { return in(i ^ 1); }
float sum_of_warp(unsigned i) { return 32 * in(i / 32 * 32) + 496; }

constexpr Case kCases[] = {
    {"missing_barrier", R"(__shared__ float s[64];
s[t] = in[i];
if (!FAULTY) __syncthreads();
out[i] = s[63 - t];)",
     reversed},
    {"missing_barrier_before_reuse", R"(__shared__ float s[64];
for (int round = 0; round < 3; ++round) {
  s[t] = round < 2 ? 0 : in[i];
  __syncthreads();
  out[i] = s[63 - t];
  if (!FAULTY) __syncthreads();
})",
     reversed},
    {"barrier_for_some_threads", R"(__shared__ float s[64];
s[t] = in[i];
if (!FAULTY || t < 32) __syncthreads();
out[i] = s[t];)",
     same},
    {"thread_that_leaves_before_a_barrier", R"(if (FAULTY && t == 63) return;
__syncthreads();
out[i] = in[i];)",
     same},
    {"missing_warp_barrier", R"(__shared__ volatile float s[64];
s[t] = in[i];
if (!FAULTY) __syncwarp();
out[i] = s[t ^ 1];)",
     neighbour},
    {"mask_without_the_lane", R"(float x = in[i];
out[i] = __shfl_xor_sync(FAULTY ? 0x7fffffffu : 0xffffffffu, x, 1);)",
     neighbour},
    {"mask_of_lanes_that_do_not_come", R"(float x = in[i];
if (t % 32 < 16) x = __shfl_xor_sync(FAULTY ? 0xffffffffu : 0xffffu, x, 1);
else x = in[i ^ 1];
out[i] = x;)",
     neighbour},
    {"lane_outside_the_mask", R"(float x = in[i];
if (t % 32 < 16) x = __shfl_sync(0xffffu, x, FAULTY ? (t ^ 1) + 16 : t ^ 1);
else x = in[i ^ 1];
out[i] = x;)",
     neighbour},
    {"reduction_that_leaves_out_a_step", R"(float x = in[i];
for (int step = FAULTY ? 8 : 16; step > 0; step /= 2) x += __shfl_xor_sync(0xffffffffu, x, step);
out[i] = x;)",
     sum_of_warp},
    {"write_past_the_end", R"(out[FAULTY ? i + 1 : i] = in[i];
if (FAULTY && i == 0) out[0] = in[0];)",
     same},
    {"read_past_the_end", R"(out[i] = in[i];
if (FAULTY && in[i + 1] == 12345) out[i] = 0;)",
     same},
    {"read_before_the_beginning", R"(out[i] = in[FAULTY ? (long)i - 2000 : i];)", same},
    {"overlapping_source_and_target", R"(float* to = const_cast<float*>(in);
if (FAULTY) to[(i + 64) % 128] = in[i];
out[i] = FAULTY ? to[i] : in[i];)",
     same},
    {"blocks_that_write_one_place", R"(out[i] = in[i];
if (FAULTY) out[t] = in[i];)",
     same},
    {"counter_that_is_not_atomic", R"(if (FAULTY) counter[0] += 1; else atomicAdd(counter, 1);
out[i] = in[i];)",
     same},
    {"shared_counter_that_is_not_atomic", R"(__shared__ unsigned s;
if (t == 0) s = 0;
__syncthreads();
if (FAULTY) ++s; else atomicAdd(&s, 1);
__syncthreads();
out[i] = s == 64 ? in[i] : 0;)",
     same},
    {"shared_memory_that_nothing_has_written", R"(__shared__ float s[64];
if (!FAULTY || t != 5) s[t] = in[i];
__syncthreads();
out[i] = s[63 - t];)",
     reversed},
    {"memory_that_nothing_has_written", R"(out[i] = FAULTY ? out[i] + in[i] : in[i];)", same},
    {"vector_that_is_not_aligned", R"(float4 four = *(const float4*)(in + (i & ~3u) % 124 + (FAULTY ? 1 : 0));
out[i] = four.x + four.y + four.z + four.w == 12345 ? 0 : in[i];)",
     same},
    {"index_past_shared_memory", R"(__shared__ float s[64];
s[FAULTY ? t + 1 : t] = in[i];
__syncthreads();
out[i] = s[t];)",
     same},
    {"copy_ahead_without_a_wait", R"(__shared__ float s[64];
asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"((unsigned)__cvta_generic_to_shared(s + t)), "l"(in + i) : "memory");
if (!FAULTY) asm volatile("cp.async.wait_all;" ::: "memory");
__syncthreads();
out[i] = s[63 - t];
asm volatile("cp.async.wait_all;" ::: "memory");)",
     reversed},
    {"copy_ahead_without_a_barrier", R"(__shared__ float s[64];
asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"((unsigned)__cvta_generic_to_shared(s + t)), "l"(in + i) : "memory");
if (FAULTY) __syncthreads();
asm volatile("cp.async.wait_all;" ::: "memory");
if (!FAULTY) __syncthreads();
out[i] = s[63 - t];)",
     reversed},
    {"wait_for_too_few_copies", R"(__shared__ float s[64], other[64];
asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"((unsigned)__cvta_generic_to_shared(other + t)), "l"(in + i) : "memory");
asm volatile("cp.async.commit_group;" ::: "memory");
asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"((unsigned)__cvta_generic_to_shared(s + t)), "l"(in + i) : "memory");
asm volatile("cp.async.commit_group;" ::: "memory");
if (FAULTY) asm volatile("cp.async.wait_group 1;" ::: "memory");
else asm volatile("cp.async.wait_group 0;" ::: "memory");
__syncthreads();
out[i] = s[63 - t];
asm volatile("cp.async.wait_all;" ::: "memory");)",
     reversed},
};

class EmulatorFaults : public testing::TestWithParam<Case> {};

// Whether it ran and gave what is expected.
bool passes(const Case& one, bool faulty) {
  const std::string source = std::string("#define FAULTY ") + (faulty ? "true" : "false") +
                             "\nextern \"C\" __global__ void k(const float* in, float* out, unsigned* counter) {\n"
                             "const unsigned t = threadIdx.x, i = blockIdx.x * 64 + t;\n" +
                             one.body + "\n}\n";
  TestDevice device;
  const CUfunction kernel = device.load(TestDevice::compile(source));
  std::vector<float> values(kCount), out(kCount);
  for (unsigned i = 0; i < kCount; ++i) values[i] = in(i);
  const CUdeviceptr from = device.upload(values), to = device.allocate(kCount * sizeof(float));
  const CUdeviceptr counter = device.upload(std::vector<uint32_t>{0});
  EXPECT_EQ(device.launch(kernel, {kBlocks, kThreads}, from, to, counter), CUDA_SUCCESS);
  if (device.download(out, to) != CUDA_SUCCESS) return false;
  for (unsigned i = 0; i < kCount; ++i) {
    if (out[i] != one.expected(i)) return false;
  }
  return true;
}

TEST_P(EmulatorFaults, is_found) {
  if (TestDevice::compile("").empty()) GTEST_SKIP() << "no NVRTC where this was configured";
  EXPECT_TRUE(passes(GetParam(), false)) << "the correct twin";
  EXPECT_FALSE(passes(GetParam(), true));
}

INSTANTIATE_TEST_SUITE_P(All, EmulatorFaults, testing::ValuesIn(kCases), [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace ltc::emulator
