// The part of cuDNN's C interface that is used, declared here because its headers come only with its libraries. Names, values and
// layouts are those of the headers of cuDNN 9, which has these functions from version 7 on.
#pragma once
#include <cuda.h>

#include <cstddef>

#ifndef LTC_ONLY_NAMES  // for who has the real headers: the list of functions below is all
namespace ltc::cuda::dnn {

using Status = int;
inline constexpr Status kSuccess = 0;

using Handle = struct cudnnContext*;
using Tensor = struct cudnnTensorStruct*;
using Filter = struct cudnnFilterStruct*;
using Convolution = struct cudnnConvolutionStruct*;

enum DataType : int { kFloat = 0, kDouble = 1, kHalf = 2, kBFloat16 = 9 };
enum Format : int { kChannelsFirst = 0 };
enum Mode : int { kCrossCorrelation = 1 };
enum Determinism : int { kDeterministic = 1 };
enum MathType : int { kDefaultMath = 0, kTensorOpMath = 1, kFmaMath = 3 };  // only the last keeps F32 from TF32

// cudnnConvolutionFwdAlgoPerf_t and its two siblings.
struct Found {
  int algorithm;
  Status status;
  float time;
  size_t memory;
  int determinism, math;
  int reserved[3];
};
static_assert(offsetof(Found, memory) == 16 && sizeof(Found) == 48);

extern "C" {
Status cudnnCreate(Handle* handle);
Status cudnnDestroy(Handle handle);
Status cudnnSetStream(Handle handle, CUstream stream);
const char* cudnnGetErrorString(Status status);
Status cudnnCreateTensorDescriptor(Tensor* tensor);
Status cudnnDestroyTensorDescriptor(Tensor tensor);
Status cudnnSetTensorNdDescriptor(Tensor tensor, DataType type, int rank, const int* sizes, const int* strides);
Status cudnnCreateFilterDescriptor(Filter* filter);
Status cudnnDestroyFilterDescriptor(Filter filter);
Status cudnnSetFilterNdDescriptor(Filter filter, DataType type, Format format, int rank, const int* sizes);
Status cudnnCreateConvolutionDescriptor(Convolution* convolution);
Status cudnnDestroyConvolutionDescriptor(Convolution convolution);
Status cudnnSetConvolutionNdDescriptor(Convolution convolution, int dims, const int* padding, const int* stride,
                                       const int* dilation, Mode mode, DataType compute);
Status cudnnSetConvolutionMathType(Convolution convolution, int math);
Status cudnnSetConvolutionGroupCount(Convolution convolution, int groups);
Status cudnnGetConvolutionForwardAlgorithm_v7(Handle handle, Tensor x, Filter w, Convolution convolution, Tensor y, int asked,
                                              int* found_count, Found* found);
Status cudnnGetConvolutionBackwardDataAlgorithm_v7(Handle handle, Filter w, Tensor dy, Convolution convolution, Tensor dx,
                                                   int asked, int* found_count, Found* found);
Status cudnnGetConvolutionBackwardFilterAlgorithm_v7(Handle handle, Tensor x, Tensor dy, Convolution convolution, Filter dw,
                                                     int asked, int* found_count, Found* found);
Status cudnnConvolutionForward(Handle handle, const void* alpha, Tensor x_desc, const void* x, Filter w_desc, const void* w,
                               Convolution convolution, int algorithm, void* workspace, size_t workspace_bytes, const void* beta,
                               Tensor y_desc, void* y);
Status cudnnConvolutionBackwardData(Handle handle, const void* alpha, Filter w_desc, const void* w, Tensor dy_desc,
                                    const void* dy, Convolution convolution, int algorithm, void* workspace,
                                    size_t workspace_bytes, const void* beta, Tensor dx_desc, void* dx);
Status cudnnConvolutionBackwardFilter(Handle handle, const void* alpha, Tensor x_desc, const void* x, Tensor dy_desc,
                                      const void* dy, Convolution convolution, int algorithm, void* workspace,
                                      size_t workspace_bytes, const void* beta, Filter dw_desc, void* dw);
}

}  // namespace ltc::cuda::dnn
#endif

#define LTC_DNN_FUNCTIONS(X)                       \
  X(cudnnCreate)                                   \
  X(cudnnDestroy)                                  \
  X(cudnnSetStream)                                \
  X(cudnnGetErrorString)                           \
  X(cudnnCreateTensorDescriptor)                   \
  X(cudnnDestroyTensorDescriptor)                  \
  X(cudnnSetTensorNdDescriptor)                    \
  X(cudnnCreateFilterDescriptor)                   \
  X(cudnnDestroyFilterDescriptor)                  \
  X(cudnnSetFilterNdDescriptor)                    \
  X(cudnnCreateConvolutionDescriptor)              \
  X(cudnnDestroyConvolutionDescriptor)             \
  X(cudnnSetConvolutionNdDescriptor)               \
  X(cudnnSetConvolutionMathType)                   \
  X(cudnnSetConvolutionGroupCount)                 \
  X(cudnnGetConvolutionForwardAlgorithm_v7)        \
  X(cudnnGetConvolutionBackwardDataAlgorithm_v7)   \
  X(cudnnGetConvolutionBackwardFilterAlgorithm_v7) \
  X(cudnnConvolutionForward)                       \
  X(cudnnConvolutionBackwardData)                  \
  X(cudnnConvolutionBackwardFilter)
