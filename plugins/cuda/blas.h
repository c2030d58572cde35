// Matrix products, by cuBLASLt.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "cuda/blas_api.h"
#include "cuda/library.h"
#include "cuda/library_call.h"
#include "kernels/plan/plan.h"

namespace ltc::cuda {

struct BlasApi {
#define LTC_MEMBER(name) decltype(&lt::name) name = nullptr;
  LTC_BLAS_FUNCTIONS(LTC_MEMBER)
#undef LTC_MEMBER

  // Null where there is no cuBLASLt of the driver's CUDA version or an older one.
  static std::unique_ptr<const BlasApi> load(const SearchPath& path, int newest_major);
  void check(lt::Status status, const char* what) const;
  // Whether it multiplies floats of 8 bits on all devices that do; older ones do so on Hopper only.
  bool takes_f8() const { return cublasLtGetVersion() >= 120103; }
};

// Options::library_product of the plan: F16, BF16, F32 and F64, unless the product is so small that a generated kernel is as
// good.
bool wants_blas(ltc_dtype dtype, int64_t batch, int64_t rows, int64_t columns, int64_t length);

// cuBLASLt computes column-major: c transposed, from b transposed and a transposed. An operand as the library takes it.
struct BlasOperand {
  ltc_dtype dtype;
  uint64_t rows, columns;
  int64_t leading, batch_stride, offset;  // in elements
  lt::Operation operation;
  uint32_t alignment_bytes;
  auto operator<=>(const BlasOperand&) const = default;
};
struct BlasCall {
  int32_t batch;
  bool scaled;
  bool rounds;  // F32 in TF32, halves in sums of halves, floats of 8 bits in fast sums
  kernels::Epilogue epilogue;
  BlasOperand first, second, result;  // b, a, c of the product
  auto operator<=>(const BlasCall&) const = default;
};
BlasCall blas_call(const kernels::Product& product);

// The handle of one device, and what its heuristics said. Any thread, with the device's context current.
class Blas {
 public:
  // workspace: kWorkspaceBytes of the device.
  Blas(const BlasApi& api, CUdeviceptr workspace);
  ~Blas();
  Blas(const Blas&) = delete;
  Blas& operator=(const Blas&) = delete;

  static constexpr size_t kWorkspaceBytes = 32 << 20;

  // A product of the buffers of kernels::Product. Asks the heuristics once per form; throws UNSUPPORTED where they know no way.
  std::shared_ptr<const LibraryCall> product(const BlasCall& call);

 private:
  class Product;

  const BlasApi& api_;
  const CUdeviceptr workspace_;
  lt::Handle handle_ = nullptr;
  std::mutex lock_;
  std::map<BlasCall, std::shared_ptr<const LibraryCall>> products_;
};

}  // namespace ltc::cuda
