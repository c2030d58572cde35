// A library's call in a compiled plan, ready to be launched.
#pragma once
#include <cuda.h>

#include <span>

namespace ltc::cuda {

class LibraryCall {
 public:
  virtual ~LibraryCall() = default;
  // The addresses of the buffers of the step; one call at a time per device, with its context current.
  virtual void launch(std::span<const CUdeviceptr> buffers, CUstream stream) const = 0;
};

}  // namespace ltc::cuda
