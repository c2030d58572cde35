// The part of cuBLASLt's C interface that is used, declared here because its headers come only with half a gigabyte of libraries.
// Names, values and layouts are those of cublasLt.h, which keeps them within and across major versions 12 and 13.
#pragma once
#include <cuda.h>

#include <cstddef>
#include <cstdint>

#ifndef LTC_ONLY_NAMES  // for who has the real headers: the list of functions below is all
namespace ltc::cuda::lt {

using Status = int;
inline constexpr Status kSuccess = 0;

using Handle = struct cublasLtContext*;
using MatmulDesc = struct cublasLtMatmulDescOpaque*;
using Layout = struct cublasLtMatrixLayoutOpaque*;
using Preference = struct cublasLtMatmulPreferenceOpaque*;

struct Algorithm {
  uint64_t data[8];
};
struct Heuristic {
  Algorithm algorithm;
  size_t workspace_bytes;
  Status state;
  float waves_count;
  int reserved[4];
};
static_assert(sizeof(Heuristic) == 96);

enum DataType : int { kR32F = 0, kR64F = 1, kR16F = 2, kR16BF = 14, kR8FE4M3 = 28, kR8FE5M2 = 29 };
enum ComputeType : int { kCompute32F = 68, kCompute64F = 70, kComputeFastTf32 = 77 };
enum Operation : int32_t { kAsIs = 0, kTransposed = 1 };
enum DescAttribute : int {
  kTransA = 3,
  kTransB = 4,
  kEpilogue = 7,
  kBiasPointer = 8,
  kAuxPointer = 11,
  kAuxLeading = 12,
  kAuxBatchStride = 13,
  kScalePointerA = 17,
  kScalePointerB = 18,
  kFastSums = 25
};
enum EpilogueBits : uint32_t { kNoEpilogue = 1, kRelu = 2, kBias = 4, kGelu = 32, kAux = 128 };  // those without the first add up
// Partial sums that are put together in the dtype of computing; the others are rounded to that of the result.
enum ReductionScheme : uint32_t { kNoReduction = 0, kReduceInComputeType = 2, kAnyReduction = 7 };
enum LayoutAttribute : int { kBatchCount = 5, kBatchStride = 6 };
enum PreferenceAttribute : int {
  kMaxWorkspaceBytes = 1,
  kReductionSchemes = 3,
  kMinAlignmentA = 5,
  kMinAlignmentB = 6,
  kMinAlignmentC = 7,
  kMinAlignmentD = 8
};

extern "C" {
Status cublasLtCreate(Handle* handle);
Status cublasLtDestroy(Handle handle);
size_t cublasLtGetVersion();
Status cublasLtMatmulDescCreate(MatmulDesc* desc, ComputeType compute, DataType scale);
Status cublasLtMatmulDescDestroy(MatmulDesc desc);
Status cublasLtMatmulDescSetAttribute(MatmulDesc desc, DescAttribute attribute, const void* value, size_t size);
Status cublasLtMatrixLayoutCreate(Layout* layout, DataType type, uint64_t rows, uint64_t columns, int64_t leading);
Status cublasLtMatrixLayoutDestroy(Layout layout);
Status cublasLtMatrixLayoutSetAttribute(Layout layout, LayoutAttribute attribute, const void* value, size_t size);
Status cublasLtMatmulPreferenceCreate(Preference* preference);
Status cublasLtMatmulPreferenceDestroy(Preference preference);
Status cublasLtMatmulPreferenceSetAttribute(Preference preference, PreferenceAttribute attribute, const void* value, size_t size);
Status cublasLtMatmulAlgoGetHeuristic(Handle handle, MatmulDesc desc, Layout a, Layout b, Layout c, Layout d,
                                      Preference preference, int asked, Heuristic* found, int* found_count);
Status cublasLtMatmul(Handle handle, MatmulDesc desc, const void* alpha, const void* a, Layout a_layout, const void* b,
                      Layout b_layout, const void* beta, const void* c, Layout c_layout, void* d, Layout d_layout,
                      const Algorithm* algorithm, void* workspace, size_t workspace_bytes, CUstream stream);
}

}  // namespace ltc::cuda::lt
#endif

#define LTC_BLAS_FUNCTIONS(X)             \
  X(cublasLtCreate)                       \
  X(cublasLtDestroy)                      \
  X(cublasLtGetVersion)                   \
  X(cublasLtMatmulDescCreate)             \
  X(cublasLtMatmulDescDestroy)            \
  X(cublasLtMatmulDescSetAttribute)       \
  X(cublasLtMatrixLayoutCreate)           \
  X(cublasLtMatrixLayoutDestroy)          \
  X(cublasLtMatrixLayoutSetAttribute)     \
  X(cublasLtMatmulPreferenceCreate)       \
  X(cublasLtMatmulPreferenceDestroy)      \
  X(cublasLtMatmulPreferenceSetAttribute) \
  X(cublasLtMatmulAlgoGetHeuristic)       \
  X(cublasLtMatmul)
