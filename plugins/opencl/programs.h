// Compiled sources of one device.
#pragma once
#include <atomic>
#include <string>

#include "device/sources.h"
#include "opencl/handle.h"
#include "opencl/platform.h"

namespace ltc::opencl {

// Any thread.
class Programs {
 public:
  using Ref = device::CompiledSources<ClProgram>::Ref;

  Programs(cl_context context, const DeviceFacts& facts);

  // From a binary that binary_of gave; where that is empty, or the driver wants it no more, from the source. Throws INTERNAL with
  // the compiler's messages and the lines that they speak of.
  Ref build(const std::string& source, const std::string& binary = {});

  // Whether kernels are compiled with builtins.h instead of the driver's declarations.
  bool uses_own_builtins() const { return own_builtins_; }

  // Empty where the driver keeps what it has compiled by itself.
  std::string binary_of(cl_program program) const;

 private:
  Ref from_source(const std::string& source);
  Ref from_binary(const std::string& binary) const;  // null: not wanted
  // With our own declarations of OpenCL C; null: it does not compile.
  Ref with_own_builtins(const std::string& source) const;
  ClProgram create(const std::string& source) const;
  cl_int compile(const ClProgram& program, const std::string& options) const;

  cl_context context_;
  cl_device_id device_;
  std::string options_;
  const bool is_pocl_;
  std::atomic<bool> own_builtins_;  // whether they have served so far
  device::CompiledSources<ClProgram> sources_;
};

}  // namespace ltc::opencl
