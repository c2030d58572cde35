#include "opencl/programs.h"

#include "opencl/builtins.h"
#include "opencl/errors.h"

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
    : context_(context),
      device_(facts.id),
      options_("-cl-std=CL1.2 -w"),
      is_pocl_(facts.platform_name == "Portable Computing Language"),
      own_builtins_(is_pocl_ && facts.fp64) {
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

ClProgram Programs::create(const std::string& source) const {
  const char* text = source.data();
  const size_t size = source.size();
  cl_int error = CL_SUCCESS;
  ClProgram program(clCreateProgramWithSource(context_, 1, &text, &size, &error));
  check(error, "clCreateProgramWithSource");
  return program;
}

cl_int Programs::compile(const ClProgram& program, const std::string& options) const {
  return clBuildProgram(program.get(), 1, &device_, options.c_str(), nullptr, nullptr);
}

Programs::Ref Programs::with_own_builtins(const std::string& source) const {
  ClProgram program = create(std::string(kOwnBuiltins) + source);
  if (compile(program, options_ + std::string(kOwnBuiltinsOption)) != CL_SUCCESS) return nullptr;
  return std::make_shared<ClProgram>(std::move(program));
}

// Messages are those of the whole way. Where that goes well and the short one did not, the driver is another than the one that it
// was made for.
Programs::Ref Programs::from_source(const std::string& source) {
  if (own_builtins_) {
    if (Ref program = with_own_builtins(source)) return program;
  }
  ClProgram program = create(source);
  const cl_int error = compile(program, options_);
  if (error == CL_SUCCESS) {
    own_builtins_ = false;
    return std::make_shared<ClProgram>(std::move(program));
  }
  const std::string log = build_log(program.get(), device_);
  throw Failure(code_of(error), "a kernel does not compile (" + error_name(error) + "):\n" + log +
                                    device::quoted_lines(log, source, ":([0-9]{1,6}):[0-9]+:"));
}

Programs::Ref Programs::from_binary(const std::string& binary) const {
  const auto* bytes = reinterpret_cast<const unsigned char*>(binary.data());
  const size_t size = binary.size();
  cl_int accepted = CL_SUCCESS, error = CL_SUCCESS;
  ClProgram program(clCreateProgramWithBinary(context_, 1, &device_, &size, &bytes, &accepted, &error));
  if (error != CL_SUCCESS || accepted != CL_SUCCESS) return nullptr;
  if (compile(program, options_) != CL_SUCCESS) return nullptr;
  return std::make_shared<ClProgram>(std::move(program));
}

// For PoCL a binary holds a compiled kernel for groups of any size, which has to be compiled besides the one that runs. The one
// that runs, PoCL finds on disk by its text.
std::string Programs::binary_of(cl_program program) const {
  if (is_pocl_) return {};
  size_t size = 0;
  check(clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof size, &size, nullptr), "clGetProgramInfo");
  std::string binary(size, '\0');
  auto* bytes = reinterpret_cast<unsigned char*>(binary.data());
  check(clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof bytes, &bytes, nullptr), "clGetProgramInfo");
  return binary;
}

}  // namespace ltc::opencl
