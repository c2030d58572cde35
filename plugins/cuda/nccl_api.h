// The part of NCCL's C interface that is used, declared here because its header comes only with its library. Names, values and
// layouts are those of NCCL 2, which has these functions from 2.7 on.
#pragma once
#include <cuda.h>

#include <cstddef>

#ifndef LTC_ONLY_NAMES  // for who has the real header: the list of functions below is all
namespace ltc::cuda::nccl {

using Result = int;
inline constexpr Result kSuccess = 0, kInProgress = 7;

using Comm = struct ncclComm*;
struct UniqueId {
  char internal[128];
};

enum DataType : int {
  kInt8 = 0,
  kUint8 = 1,
  kInt32 = 2,
  kInt64 = 4,
  kFloat16 = 6,
  kFloat32 = 7,
  kFloat64 = 8,
  kBfloat16 = 9,
};
enum RedOp : int { kSum = 0, kProd = 1, kMax = 2, kMin = 3 };

extern "C" {
Result ncclGetUniqueId(UniqueId* id);
Result ncclCommInitRank(Comm* comm, int ranks, UniqueId id, int rank);
Result ncclCommAbort(Comm comm);
Result ncclCommGetAsyncError(Comm comm, Result* error);
const char* ncclGetErrorString(Result result);
Result ncclAllReduce(const void* from, void* to, size_t count, DataType type, RedOp op, Comm comm, CUstream stream);
Result ncclBroadcast(const void* from, void* to, size_t count, DataType type, int root, Comm comm, CUstream stream);
Result ncclAllGather(const void* from, void* to, size_t count, DataType type, Comm comm, CUstream stream);
Result ncclReduceScatter(const void* from, void* to, size_t count, DataType type, RedOp op, Comm comm, CUstream stream);
Result ncclSend(const void* from, size_t count, DataType type, int to, Comm comm, CUstream stream);
Result ncclRecv(void* to, size_t count, DataType type, int from, Comm comm, CUstream stream);
Result ncclGroupStart();
Result ncclGroupEnd();
}

}  // namespace ltc::cuda::nccl
#endif

#define LTC_NCCL_FUNCTIONS(X) \
  X(ncclGetUniqueId)          \
  X(ncclCommInitRank)         \
  X(ncclCommAbort)            \
  X(ncclCommGetAsyncError)    \
  X(ncclGetErrorString)       \
  X(ncclAllReduce)            \
  X(ncclBroadcast)            \
  X(ncclAllGather)            \
  X(ncclReduceScatter)        \
  X(ncclSend)                 \
  X(ncclRecv)                 \
  X(ncclGroupStart)           \
  X(ncclGroupEnd)
