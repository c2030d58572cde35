#include "opencl/errors.h"

namespace ltc::opencl {
namespace {

struct ErrorRow {
  cl_int error;
  const char* name;
  ltc_code code;
};

constexpr ErrorRow kErrors[] = {
    {CL_DEVICE_NOT_FOUND, "CL_DEVICE_NOT_FOUND", LTC_NOT_FOUND},
    {CL_DEVICE_NOT_AVAILABLE, "CL_DEVICE_NOT_AVAILABLE", LTC_DEVICE_LOST},
    {CL_COMPILER_NOT_AVAILABLE, "CL_COMPILER_NOT_AVAILABLE", LTC_UNSUPPORTED},
    {CL_MEM_OBJECT_ALLOCATION_FAILURE, "CL_MEM_OBJECT_ALLOCATION_FAILURE", LTC_RESOURCE_EXHAUSTED},
    {CL_OUT_OF_RESOURCES, "CL_OUT_OF_RESOURCES", LTC_RESOURCE_EXHAUSTED},
    {CL_OUT_OF_HOST_MEMORY, "CL_OUT_OF_HOST_MEMORY", LTC_RESOURCE_EXHAUSTED},
    {CL_BUILD_PROGRAM_FAILURE, "CL_BUILD_PROGRAM_FAILURE", LTC_INTERNAL},
    {CL_MAP_FAILURE, "CL_MAP_FAILURE", LTC_RESOURCE_EXHAUSTED},
    {CL_INVALID_VALUE, "CL_INVALID_VALUE", LTC_INTERNAL},
    {CL_INVALID_CONTEXT, "CL_INVALID_CONTEXT", LTC_DEVICE_LOST},
    {CL_INVALID_COMMAND_QUEUE, "CL_INVALID_COMMAND_QUEUE", LTC_DEVICE_LOST},
    {CL_INVALID_MEM_OBJECT, "CL_INVALID_MEM_OBJECT", LTC_INTERNAL},
    {CL_INVALID_BINARY, "CL_INVALID_BINARY", LTC_DATA_CORRUPT},
    {CL_INVALID_KERNEL_NAME, "CL_INVALID_KERNEL_NAME", LTC_INTERNAL},
    {CL_INVALID_KERNEL_ARGS, "CL_INVALID_KERNEL_ARGS", LTC_INTERNAL},
    {CL_INVALID_ARG_INDEX, "CL_INVALID_ARG_INDEX", LTC_INTERNAL},
    {CL_INVALID_ARG_SIZE, "CL_INVALID_ARG_SIZE", LTC_INTERNAL},
    {CL_INVALID_WORK_GROUP_SIZE, "CL_INVALID_WORK_GROUP_SIZE", LTC_INTERNAL},
    {CL_INVALID_BUFFER_SIZE, "CL_INVALID_BUFFER_SIZE", LTC_RESOURCE_EXHAUSTED},
    {-1001, "CL_PLATFORM_NOT_FOUND_KHR", LTC_NOT_FOUND},
};

const ErrorRow* find(cl_int error) {
  for (const ErrorRow& row : kErrors) {
    if (row.error == error) return &row;
  }
  return nullptr;
}

}  // namespace

std::string error_name(cl_int error) {
  const ErrorRow* row = find(error);
  return row ? row->name : "error " + std::to_string(error);
}

ltc_code code_of(cl_int error) {
  const ErrorRow* row = find(error);
  return row ? row->code : ltc_code{LTC_INTERNAL};
}

}  // namespace ltc::opencl
