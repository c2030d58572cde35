// Convolutions, by cuDNN.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <type_traits>

#include "cuda/dnn_api.h"
#include "cuda/library.h"
#include "cuda/library_call.h"
#include "kernels/fuse/library_convolution.h"

namespace ltc::cuda {

struct DnnApi {
#define LTC_MEMBER(name) decltype(&dnn::name) name = nullptr;
  LTC_DNN_FUNCTIONS(LTC_MEMBER)
#undef LTC_MEMBER

  // Null where there is no cuDNN 9 with these functions.
  static std::unique_ptr<const DnnApi> load(const SearchPath& path);
  void check(dnn::Status status, const char* what) const;
};

// The handle of one device, and what its heuristics said. Any thread, with the device's context current.
class Dnn {
 public:
  // workspace: kWorkspaceBytes of the device.
  Dnn(const DnnApi& api, CUdeviceptr workspace);
  ~Dnn();
  Dnn(const Dnn&) = delete;
  Dnn& operator=(const Dnn&) = delete;

  static constexpr size_t kWorkspaceBytes = 256 << 20;

  // Asks the heuristics once per form. Throws UNSUPPORTED where they know no way.
  std::shared_ptr<const LibraryCall> convolution(const kernels::LibraryConvolution& convolution);

 private:
  class Call;

  const DnnApi& api_;
  const CUdeviceptr workspace_;
  dnn::Handle handle_ = nullptr;
  std::mutex lock_;  // of the handle too: its stream is set before each use
  std::map<kernels::LibraryConvolution, std::shared_ptr<const LibraryCall>> calls_;
};

}  // namespace ltc::cuda
