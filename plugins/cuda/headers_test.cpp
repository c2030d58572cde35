// The plugin's declarations of cuBLASLt and cuDNN, against their headers, and against the libraries where they are beside those.
// It declares nothing of the driver and NVRTC: its tables of functions take their types from cuda.h and nvrtc.h.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cuda/blas.h"
#include "cuda/dnn.h"
#include "cuda/signatures.h"

namespace ltc::cuda {
namespace {

TEST(CudaHeaders, declare_the_functions_as_this_plugin_does) {
  EXPECT_GT(as_declared().functions.size(), 30u);
  EXPECT_EQ(as_declared().functions, as_in_headers().functions);
}

TEST(CudaHeaders, have_the_values_and_layouts_that_this_plugin_takes) { EXPECT_EQ(as_declared().values, as_in_headers().values); }

// The real libraries describe products and convolutions without a GPU.
class CudaRealLibraries : public testing::Test {
 protected:
  static SearchPath folder_of(const char* library) { return {{std::filesystem::path(library)}, {}}; }
};

TEST_F(CudaRealLibraries, cublaslt_takes_the_attributes) {
  const auto api = BlasApi::load(folder_of(LTC_CUBLAS_LIBRARIES), 13);
  if (!api) GTEST_SKIP() << "no libcublasLt.so beside its header";
  lt::MatmulDesc desc = nullptr;
  ASSERT_EQ(api->cublasLtMatmulDescCreate(&desc, lt::kComputeFastTf32, lt::kR32F), lt::kSuccess);
  const auto takes = [&](lt::DescAttribute attribute, auto value) {
    return api->cublasLtMatmulDescSetAttribute(desc, attribute, &value, sizeof value) == lt::kSuccess;
  };
  EXPECT_TRUE(takes(lt::kTransA, lt::kTransposed));
  EXPECT_TRUE(takes(lt::kEpilogue, uint32_t{lt::kGelu | lt::kBias | lt::kAux}));
  EXPECT_TRUE(takes(lt::kBiasPointer, CUdeviceptr{256}));
  EXPECT_TRUE(takes(lt::kAuxPointer, CUdeviceptr{256}));
  EXPECT_TRUE(takes(lt::kAuxLeading, int64_t{64}));
  EXPECT_TRUE(takes(lt::kAuxBatchStride, int64_t{64 * 64}));
  EXPECT_TRUE(takes(lt::kScalePointerA, CUdeviceptr{256}));
  EXPECT_TRUE(takes(lt::kScalePointerB, CUdeviceptr{256}));
  EXPECT_TRUE(takes(lt::kFastSums, int8_t{1}));
  EXPECT_FALSE(takes(lt::kFastSums, int32_t{1}));
  EXPECT_FALSE(takes(lt::kEpilogue, uint8_t{4}));
  EXPECT_EQ(api->cublasLtMatmulDescDestroy(desc), lt::kSuccess);

  lt::Layout layout = nullptr;
  const int32_t batch = 2;
  const int64_t stride = 64;
  ASSERT_EQ(api->cublasLtMatrixLayoutCreate(&layout, lt::kR16BF, 8, 8, 8), lt::kSuccess);
  EXPECT_EQ(api->cublasLtMatrixLayoutSetAttribute(layout, lt::kBatchCount, &batch, sizeof batch), lt::kSuccess);
  EXPECT_EQ(api->cublasLtMatrixLayoutSetAttribute(layout, lt::kBatchStride, &stride, sizeof stride), lt::kSuccess);
  EXPECT_EQ(api->cublasLtMatrixLayoutDestroy(layout), lt::kSuccess);

  lt::Preference preference = nullptr;
  ASSERT_EQ(api->cublasLtMatmulPreferenceCreate(&preference), lt::kSuccess);
  const auto prefers = [&](lt::PreferenceAttribute attribute, auto value) {
    return api->cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value) == lt::kSuccess;
  };
  EXPECT_TRUE(prefers(lt::kMaxWorkspaceBytes, uint64_t{Blas::kWorkspaceBytes}));
  EXPECT_TRUE(prefers(lt::kReductionSchemes, uint32_t{lt::kReduceInComputeType}));
  EXPECT_TRUE(prefers(lt::kMinAlignmentD, uint32_t{16}));
  EXPECT_EQ(api->cublasLtMatmulPreferenceDestroy(preference), lt::kSuccess);
}

TEST_F(CudaRealLibraries, cudnn_takes_the_descriptions) {
  const auto api = DnnApi::load(folder_of(LTC_CUDNN_LIBRARIES));
  if (!api) GTEST_SKIP() << "no libcudnn.so beside its header";
  dnn::Tensor tensor = nullptr;
  const int sizes[] = {2, 3, 8, 8}, strides[] = {192, 64, 8, 1};
  ASSERT_EQ(api->cudnnCreateTensorDescriptor(&tensor), dnn::kSuccess);
  for (const dnn::DataType type : {dnn::kFloat, dnn::kDouble, dnn::kHalf, dnn::kBFloat16}) {
    EXPECT_EQ(api->cudnnSetTensorNdDescriptor(tensor, type, 4, sizes, strides), dnn::kSuccess) << type;
  }
  EXPECT_NE(api->cudnnSetTensorNdDescriptor(tensor, dnn::kFloat, 0, sizes, strides), dnn::kSuccess);
  EXPECT_EQ(api->cudnnDestroyTensorDescriptor(tensor), dnn::kSuccess);

  dnn::Filter filter = nullptr;
  ASSERT_EQ(api->cudnnCreateFilterDescriptor(&filter), dnn::kSuccess);
  EXPECT_EQ(api->cudnnSetFilterNdDescriptor(filter, dnn::kHalf, dnn::kChannelsFirst, 4, sizes), dnn::kSuccess);
  EXPECT_EQ(api->cudnnDestroyFilterDescriptor(filter), dnn::kSuccess);

  dnn::Convolution how = nullptr;
  const int padding[] = {1, 1}, ones[] = {1, 1};
  ASSERT_EQ(api->cudnnCreateConvolutionDescriptor(&how), dnn::kSuccess);
  EXPECT_EQ(api->cudnnSetConvolutionNdDescriptor(how, 2, padding, ones, ones, dnn::kCrossCorrelation, dnn::kFloat),
            dnn::kSuccess);
  EXPECT_EQ(api->cudnnSetConvolutionGroupCount(how, 3), dnn::kSuccess);
  for (const int math : {dnn::kDefaultMath, dnn::kTensorOpMath, dnn::kFmaMath})
    EXPECT_EQ(api->cudnnSetConvolutionMathType(how, math), dnn::kSuccess) << math;
  EXPECT_EQ(api->cudnnDestroyConvolutionDescriptor(how), dnn::kSuccess);
}

}  // namespace
}  // namespace ltc::cuda
