// OpenCL's error codes as failures.
#pragma once
#include <CL/cl.h>

#include <string>

#include "ltc/plugin.hpp"

namespace ltc::opencl {

using plugin::Failure;

// "CL_OUT_OF_RESOURCES".
std::string error_name(cl_int error);
ltc_code code_of(cl_int error);

// Throws unless the call succeeded. `what`: the function that was called.
inline void check(cl_int error, const char* what) {
  if (error == CL_SUCCESS) return;
  throw Failure(code_of(error), std::string(what) + " answered " + error_name(error));
}

}  // namespace ltc::opencl
