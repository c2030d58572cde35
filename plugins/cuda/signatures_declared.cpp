#include "cuda/blas_api.h"
#include "cuda/dnn_api.h"
#include "cuda/nccl_api.h"
#include "cuda/signatures.h"

namespace ltc::cuda {

Interface as_declared() {
  Interface all;
#define LTC_ADD(name) all.functions[#name] = Signature<decltype(name)>::text();
  {
    using namespace lt;
    LTC_BLAS_FUNCTIONS(LTC_ADD)
  }
  {
    using namespace dnn;
    LTC_DNN_FUNCTIONS(LTC_ADD)
  }
  {
    using namespace nccl;
    LTC_NCCL_FUNCTIONS(LTC_ADD)
  }
#undef LTC_ADD
  all.values = {
      {"CUBLAS_STATUS_SUCCESS", lt::kSuccess},
      {"CUDA_R_32F", lt::kR32F},
      {"CUDA_R_64F", lt::kR64F},
      {"CUDA_R_16F", lt::kR16F},
      {"CUDA_R_16BF", lt::kR16BF},
      {"CUDA_R_8F_E4M3", lt::kR8FE4M3},
      {"CUDA_R_8F_E5M2", lt::kR8FE5M2},
      {"CUBLAS_COMPUTE_32F", lt::kCompute32F},
      {"CUBLAS_COMPUTE_64F", lt::kCompute64F},
      {"CUBLAS_COMPUTE_32F_FAST_TF32", lt::kComputeFastTf32},
      {"CUBLAS_OP_N", lt::kAsIs},
      {"CUBLAS_OP_T", lt::kTransposed},
      {"CUBLASLT_MATMUL_DESC_TRANSA", lt::kTransA},
      {"CUBLASLT_MATMUL_DESC_TRANSB", lt::kTransB},
      {"CUBLASLT_MATMUL_DESC_EPILOGUE", lt::kEpilogue},
      {"CUBLASLT_MATMUL_DESC_BIAS_POINTER", lt::kBiasPointer},
      {"CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER", lt::kAuxPointer},
      {"CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD", lt::kAuxLeading},
      {"CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE", lt::kAuxBatchStride},
      {"CUBLASLT_MATMUL_DESC_A_SCALE_POINTER", lt::kScalePointerA},
      {"CUBLASLT_MATMUL_DESC_B_SCALE_POINTER", lt::kScalePointerB},
      {"CUBLASLT_MATMUL_DESC_FAST_ACCUM", lt::kFastSums},
      {"CUBLASLT_EPILOGUE_DEFAULT", lt::kNoEpilogue},
      {"CUBLASLT_EPILOGUE_RELU", lt::kRelu},
      {"CUBLASLT_EPILOGUE_BIAS", lt::kBias},
      {"CUBLASLT_EPILOGUE_RELU_BIAS", lt::kRelu | lt::kBias},
      {"CUBLASLT_EPILOGUE_GELU", lt::kGelu},
      {"CUBLASLT_EPILOGUE_GELU_BIAS", lt::kGelu | lt::kBias},
      {"CUBLASLT_EPILOGUE_GELU_AUX", lt::kGelu | lt::kAux},
      {"CUBLASLT_EPILOGUE_GELU_AUX_BIAS", lt::kGelu | lt::kAux | lt::kBias},
      {"CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT", lt::kBatchCount},
      {"CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET", lt::kBatchStride},
      {"CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES", lt::kMaxWorkspaceBytes},
      {"CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK", lt::kReductionSchemes},
      {"CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES", lt::kMinAlignmentA},
      {"CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES", lt::kMinAlignmentB},
      {"CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES", lt::kMinAlignmentC},
      {"CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES", lt::kMinAlignmentD},
      {"CUBLASLT_REDUCTION_SCHEME_NONE", lt::kNoReduction},
      {"CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE", lt::kReduceInComputeType},
      {"CUBLASLT_REDUCTION_SCHEME_MASK", lt::kAnyReduction},
      {"sizeof cublasLtMatmulAlgo_t", sizeof(lt::Algorithm)},
      {"sizeof cublasLtMatmulHeuristicResult_t", sizeof(lt::Heuristic)},
      {"cublasLtMatmulHeuristicResult_t.workspaceSize", offsetof(lt::Heuristic, workspace_bytes)},
      {"cublasLtMatmulHeuristicResult_t.state", offsetof(lt::Heuristic, state)},
      {"sizeof ncclUniqueId", sizeof(nccl::UniqueId)},
      {"ncclSuccess", nccl::kSuccess},
      {"ncclInProgress", nccl::kInProgress},
      {"ncclInt8", nccl::kInt8},
      {"ncclUint8", nccl::kUint8},
      {"ncclInt32", nccl::kInt32},
      {"ncclInt64", nccl::kInt64},
      {"ncclFloat16", nccl::kFloat16},
      {"ncclFloat32", nccl::kFloat32},
      {"ncclFloat64", nccl::kFloat64},
      {"ncclBfloat16", nccl::kBfloat16},
      {"ncclSum", nccl::kSum},
      {"ncclProd", nccl::kProd},
      {"ncclMax", nccl::kMax},
      {"ncclMin", nccl::kMin},
      {"CUDNN_STATUS_SUCCESS", dnn::kSuccess},
      {"CUDNN_DATA_FLOAT", dnn::kFloat},
      {"CUDNN_DATA_DOUBLE", dnn::kDouble},
      {"CUDNN_DATA_HALF", dnn::kHalf},
      {"CUDNN_DATA_BFLOAT16", dnn::kBFloat16},
      {"CUDNN_TENSOR_NCHW", dnn::kChannelsFirst},
      {"CUDNN_CROSS_CORRELATION", dnn::kCrossCorrelation},
      {"CUDNN_DETERMINISTIC", dnn::kDeterministic},
      {"CUDNN_DEFAULT_MATH", dnn::kDefaultMath},
      {"CUDNN_TENSOR_OP_MATH", dnn::kTensorOpMath},
      {"CUDNN_FMA_MATH", dnn::kFmaMath},
  };
  for (const char* pass :
       {"cudnnConvolutionFwdAlgoPerf_t", "cudnnConvolutionBwdDataAlgoPerf_t", "cudnnConvolutionBwdFilterAlgoPerf_t"}) {
    const std::string name = pass;
    all.values["sizeof " + name] = sizeof(dnn::Found);
    all.values[name + ".algo"] = offsetof(dnn::Found, algorithm);
    all.values[name + ".status"] = offsetof(dnn::Found, status);
    all.values[name + ".memory"] = offsetof(dnn::Found, memory);
    all.values[name + ".determinism"] = offsetof(dnn::Found, determinism);
    all.values[name + ".mathType"] = offsetof(dnn::Found, math);
  }
  return all;
}

}  // namespace ltc::cuda
