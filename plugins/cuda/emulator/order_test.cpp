// Faults in the order of calls to the driver, each beside its correct twin; and what the driver answers.
#include <gmock/gmock.h>

#include "cuda/emulator/test_device.h"

namespace ltc::emulator {
namespace {

constexpr unsigned kCount = 64;
const cuda::DriverApi& api() { return TestDevice::api(); }

// to[i] = from[i] + more
constexpr const char* kAdd = R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 from, .param .u64 to, .param .u32 more) {
.reg .b64 %u<3>; .reg .b32 %t<3>;
mov.u32 %t0, %tid.x;
mul.wide.u32 %u0, %t0, 4;
ld.param.u64 %u1, [from];
ld.param.u64 %u2, [to];
ld.param.u32 %t1, [more];
add.s64 %u1, %u1, %u0;
add.s64 %u2, %u2, %u0;
ld.global.u32 %t2, [%u1];
add.s32 %t2, %t2, %t1;
st.global.u32 [%u2], %t2;
ret;
}
)";

class EmulatorOrder : public testing::TestWithParam<bool> {
 protected:
  bool faulty() const { return GetParam(); }
  // The twin that is correct gets the values, and the other one an error or others.
  void expect(CUresult result, const std::vector<uint32_t>& values, uint32_t value) {
    const bool passes = result == CUDA_SUCCESS && values == std::vector<uint32_t>(kCount, value);
    EXPECT_EQ(passes, !faulty()) << result << ", " << values[0];
  }
  void wait(CUstream waits, CUstream for_stream) {
    CUevent event = nullptr;
    EXPECT_EQ(api().cuEventCreate(&event, 0), CUDA_SUCCESS);
    EXPECT_EQ(api().cuEventRecord(event, for_stream), CUDA_SUCCESS);
    EXPECT_EQ(api().cuStreamWaitEvent(waits, event, 0), CUDA_SUCCESS);
    EXPECT_EQ(api().cuEventDestroy_v2(event), CUDA_SUCCESS);
  }
  CUresult add(CUstream stream, CUdeviceptr from, CUdeviceptr to, uint32_t more) {
    return device_.launch_on(stream, kernel_, {1, kCount}, from, to, more);
  }
  CUDA_KERNEL_NODE_PARAMS node(void** arguments) const {
    CUDA_KERNEL_NODE_PARAMS params{};
    params.func = kernel_;
    params.gridDimX = params.gridDimY = params.gridDimZ = params.blockDimY = params.blockDimZ = 1;
    params.blockDimX = kCount;
    params.kernelParams = arguments;
    return params;
  }

  TestDevice device_;
  CUfunction kernel_ = device_.load(kAdd);
  std::vector<uint32_t> out_ = std::vector<uint32_t>(kCount);
  CUdeviceptr a_ = device_.upload(std::vector<uint32_t>(kCount, 1)), b_ = device_.allocate(4 * kCount);
};
INSTANTIATE_TEST_SUITE_P(Faulty, EmulatorOrder, testing::Bool());

TEST_P(EmulatorOrder, missing_wait_for_an_event) {
  add(device_.stream, a_, b_, 5);
  if (!faulty()) wait(device_.other, device_.stream);
  const CUdeviceptr c = device_.allocate(4 * kCount, device_.other);
  add(device_.other, b_, c, 5);
  void* host = device_.pinned(4 * kCount);
  api().cuMemcpyDtoHAsync_v2(host, c, 4 * kCount, device_.other);
  const CUresult result = api().cuStreamSynchronize(device_.other);
  std::memcpy(out_.data(), host, 4 * kCount);
  expect(result, out_, 11);
}

TEST_P(EmulatorOrder, memory_given_back_before_another_stream_has_read_it) {
  add(device_.stream, a_, b_, 5);
  wait(device_.other, device_.stream);
  const CUdeviceptr c = device_.allocate(4 * kCount, device_.other);
  add(device_.other, b_, c, 5);
  if (!faulty()) wait(device_.stream, device_.other);
  api().cuMemFreeAsync(b_, device_.stream);
  api().cuStreamSynchronize(device_.stream);
  const CUresult result = api().cuMemcpyDtoHAsync_v2(out_.data(), c, 4 * kCount, device_.other);
  expect(result, out_, 11);
}

TEST_P(EmulatorOrder, launch_after_the_release) {
  if (faulty()) api().cuMemFreeAsync(b_, device_.stream);
  add(device_.stream, a_, b_, 5);
  expect(device_.download(out_, faulty() ? a_ : b_), out_, 6);
}

TEST_P(EmulatorOrder, memory_used_by_another_stream_before_it_is_there) {
  CUdeviceptr c = device_.allocate(4 * kCount, device_.other);
  if (!faulty()) wait(device_.stream, device_.other);
  add(device_.stream, a_, c, 5);
  expect(device_.download(out_, c), out_, 6);
}

TEST_P(EmulatorOrder, result_read_before_the_copy_has_run) {
  void* host = device_.pinned(4 * kCount);
  add(device_.stream, a_, b_, 5);
  api().cuMemcpyDtoHAsync_v2(host, b_, 4 * kCount, device_.stream);
  if (!faulty()) api().cuStreamSynchronize(device_.stream);
  std::memcpy(out_.data(), host, 4 * kCount);
  expect(CUDA_SUCCESS, out_, 6);
}

TEST_P(EmulatorOrder, pinned_memory_changed_before_its_copy_has_run) {
  auto* host = static_cast<uint32_t*>(device_.pinned(4 * kCount));
  std::fill_n(host, kCount, 7);
  api().cuMemcpyHtoDAsync_v2(b_, host, 4 * kCount, device_.stream);
  if (!faulty()) api().cuStreamSynchronize(device_.stream);
  std::fill_n(host, kCount, 9);
  expect(device_.download(out_, b_), out_, 7);
}

TEST_P(EmulatorOrder, copy_past_the_end) {
  add(device_.stream, a_, b_, 5);
  const CUdeviceptr c = device_.allocate(4 * kCount);
  api().cuMemcpyDtoDAsync_v2(c, b_, 4 * kCount + (faulty() ? 4 : 0), device_.stream);
  expect(device_.download(out_, c), out_, 6);
}

TEST_P(EmulatorOrder, missing_edge_of_a_graph) {
  CUgraph graph = nullptr;
  CUgraphNode first = nullptr, second = nullptr;
  CUgraphExec exec = nullptr;
  uint32_t more = 5;
  const CUdeviceptr c = device_.allocate(4 * kCount);
  void* one[] = {&a_, &b_, &more};
  void* two[] = {&b_, const_cast<CUdeviceptr*>(&c), &more};
  const auto first_params = node(one), second_params = node(two);
  EXPECT_EQ(api().cuGraphCreate(&graph, 0), CUDA_SUCCESS);
  EXPECT_EQ(api().cuGraphAddKernelNode_v2(&first, graph, nullptr, 0, &first_params), CUDA_SUCCESS);
  EXPECT_EQ(api().cuGraphAddKernelNode_v2(&second, graph, &first, faulty() ? 0 : 1, &second_params), CUDA_SUCCESS);
  EXPECT_EQ(api().cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_SUCCESS);
  EXPECT_EQ(api().cuGraphLaunch(exec, device_.stream), CUDA_SUCCESS);
  expect(device_.download(out_, c), out_, 11);
  api().cuGraphExecDestroy(exec);
  api().cuGraphDestroy(graph);
}

TEST_P(EmulatorOrder, scalar_of_a_graph_that_is_not_set_anew) {
  CUgraph graph = nullptr;
  CUgraphNode only = nullptr;
  CUgraphExec exec = nullptr;
  uint32_t more = 5;
  void* arguments[] = {&a_, &b_, &more};
  const auto params = node(arguments);
  EXPECT_EQ(api().cuGraphCreate(&graph, 0), CUDA_SUCCESS);
  EXPECT_EQ(api().cuGraphAddKernelNode_v2(&only, graph, nullptr, 0, &params), CUDA_SUCCESS);
  EXPECT_EQ(api().cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_SUCCESS);
  EXPECT_EQ(api().cuGraphLaunch(exec, device_.stream), CUDA_SUCCESS);
  more = 8;
  if (!faulty()) api().cuGraphExecKernelNodeSetParams_v2(exec, only, &params);
  EXPECT_EQ(api().cuGraphLaunch(exec, device_.stream), CUDA_SUCCESS);
  expect(device_.download(out_, b_), out_, 9);
  api().cuGraphExecDestroy(exec);
  api().cuGraphDestroy(graph);
}

// ---- answers

TEST(EmulatorDriver, an_error_stays_until_the_last_user_has_gone) {
  {
    TestDevice device;
    const CUfunction kernel = device.load(kAdd);
    const CUdeviceptr memory = device.allocate(4);
    EXPECT_EQ(device.launch(kernel, {1, 2}, memory, memory, 1), CUDA_SUCCESS);
    testing::internal::CaptureStderr();
    EXPECT_EQ(api().cuStreamSynchronize(device.stream), CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_THAT(testing::internal::GetCapturedStderr(),
                testing::AllOf(testing::HasSubstr("kernel k, block 0, thread 1"),
                               testing::HasSubstr("4 bytes past an allocation of 4 bytes")));
    EXPECT_EQ(device.launch(kernel, {1, 1}, memory, memory, 1), CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_EQ(api().cuStreamSynchronize(device.other), CUDA_ERROR_ILLEGAL_ADDRESS);
  }
  TestDevice device;
  EXPECT_EQ(api().cuStreamSynchronize(device.stream), CUDA_SUCCESS);
}

TEST(EmulatorDriver, memory_counts_until_its_release_has_run) {
  TestDevice device;
  size_t bytes = 0;
  EXPECT_EQ(api().cuDeviceTotalMem_v2(&bytes, 0), CUDA_SUCCESS);
  const CUdeviceptr most = device.allocate(bytes - (1 << 20));
  CUdeviceptr second = 0;
  api().cuMemFreeAsync(most, device.stream);
  EXPECT_EQ(api().cuMemAllocFromPoolAsync(&second, bytes / 2, device.pool, device.other), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(api().cuStreamSynchronize(device.stream), CUDA_SUCCESS);
  EXPECT_EQ(api().cuMemAllocFromPoolAsync(&second, bytes / 2, device.pool, device.other), CUDA_SUCCESS);
  EXPECT_EQ(api().cuMemFreeAsync(second, device.other), CUDA_SUCCESS);
}

}  // namespace
}  // namespace ltc::emulator
