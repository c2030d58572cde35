// A recipe made ready to run on a device.
#pragma once
#include <vector>

#include "device.h"

struct ltc_executable {
  ltc_executable(ltc_device* owner, ltc::opencl::Recipe made_of, const std::vector<std::string>& binaries = {});

  ltc_device* const device;
  const ltc::opencl::Recipe recipe;
  std::vector<ltc::opencl::ClProgram> programs;  // by source
  std::vector<ltc::opencl::ClKernel> kernels;    // by launch
  std::vector<std::vector<cl_mem>> bound;        // by launch: what its pointers were last set to
};

namespace ltc::opencl {

// Submits one run. Throws before anything is consumed.
void execute(ltc_device* device, const ltc_execute_args& args, ltc_buffer** outputs, ltc_event** done);

}  // namespace ltc::opencl
