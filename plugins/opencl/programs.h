// Compiled sources of one device.
#pragma once
#include <string>

#include "device/sources.h"
#include "handle.h"
#include "platform.h"

namespace ltc::opencl {

// Any thread.
class Programs {
 public:
  using Ref = device::CompiledSources<ClProgram>::Ref;

  Programs(cl_context context, const DeviceFacts& facts);

  // From a binary that binary_of gave; where that is empty, or the driver wants it no more, from the source. Throws INTERNAL with
  // the compiler's messages and the lines that they speak of.
  Ref build(const std::string& source, const std::string& binary = {});

  static std::string binary_of(cl_program program);

 private:
  Ref from_source(const std::string& source) const;
  Ref from_binary(const std::string& binary) const;  // null: not wanted

  cl_context context_;
  cl_device_id device_;
  std::string options_;
  device::CompiledSources<ClProgram> sources_;
};

}  // namespace ltc::opencl
