#include "programs.h"

#include "errors.h"

namespace ltc::opencl {
namespace {

std::string build_log(cl_program program, cl_device_id device) {
  size_t size = 0;
  clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, 0, nullptr, &size);
  std::string log(size, '\0');
  if (size) clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, size, log.data(), nullptr);
  return log.c_str();
}

}  // namespace

Programs::Programs(cl_context context, const DeviceFacts& facts)
    : context_(context), device_(facts.id), options_("-cl-std=CL1.2 -w") {
  cl_device_fp_config config = 0;
  clGetDeviceInfo(device_, CL_DEVICE_SINGLE_FP_CONFIG, sizeof config, &config, nullptr);
  if (config & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) options_ += " -cl-fp32-correctly-rounded-divide-sqrt";
}

Programs::Ref Programs::build(const std::string& source, const std::string& binary) {
  return sources_.get(source, [&] {
    Ref program = binary.empty() ? nullptr : from_binary(binary);
    return program ? program : from_source(source);
  });
}

Programs::Ref Programs::from_source(const std::string& source) const {
  const char* text = source.data();
  const size_t size = source.size();
  cl_int error = CL_SUCCESS;
  ClProgram program(clCreateProgramWithSource(context_, 1, &text, &size, &error));
  check(error, "clCreateProgramWithSource");
  error = clBuildProgram(program.get(), 1, &device_, options_.c_str(), nullptr, nullptr);
  if (error == CL_SUCCESS) return std::make_shared<ClProgram>(std::move(program));
  const std::string log = build_log(program.get(), device_);
  throw Failure(code_of(error), "a kernel does not compile (" + error_name(error) + "):\n" + log +
                                    device::blamed_lines(log, source, ":([0-9]{1,6}):[0-9]+:"));
}

Programs::Ref Programs::from_binary(const std::string& binary) const {
  const auto* bytes = reinterpret_cast<const unsigned char*>(binary.data());
  const size_t size = binary.size();
  cl_int accepted = CL_SUCCESS, error = CL_SUCCESS;
  ClProgram program(clCreateProgramWithBinary(context_, 1, &device_, &size, &bytes, &accepted, &error));
  if (error != CL_SUCCESS || accepted != CL_SUCCESS) return nullptr;
  if (clBuildProgram(program.get(), 1, &device_, options_.c_str(), nullptr, nullptr) != CL_SUCCESS) return nullptr;
  return std::make_shared<ClProgram>(std::move(program));
}

std::string Programs::binary_of(cl_program program) {
  size_t size = 0;
  check(clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof size, &size, nullptr), "clGetProgramInfo");
  std::string binary(size, '\0');
  auto* bytes = reinterpret_cast<unsigned char*>(binary.data());
  check(clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof bytes, &bytes, nullptr), "clGetProgramInfo");
  return binary;
}

}  // namespace ltc::opencl
