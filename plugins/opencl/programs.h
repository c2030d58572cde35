// Compiled sources of one device.
#pragma once
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "handle.h"
#include "platform.h"

namespace ltc::opencl {

// A source is compiled once, whoever asks for it and however often. Any thread; two may compile at once.
class Programs {
 public:
  Programs(cl_context context, const DeviceFacts& facts);

  // Throws INTERNAL with the compiler's messages and the lines that they speak of.
  ClProgram build(const std::string& source);
  // From a binary that binary_of gave; where the driver wants it no more, from the source.
  ClProgram build(const std::string& source, const std::string& binary);

  static std::string binary_of(cl_program program);

 private:
  ClProgram compile(ClProgram program, const std::string& source) const;

  cl_context context_;
  cl_device_id device_;
  std::string options_;
  std::mutex lock_;
  std::unordered_map<std::string, ClProgram> built_;  // by source
};

}  // namespace ltc::opencl
