#include "programs.h"

#include <regex>
#include <vector>

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

std::string line_of(const std::string& source, size_t number) {
  size_t begin = 0;
  for (size_t line = 1; line < number && begin != std::string::npos; ++line) begin = source.find('\n', begin) + 1;
  return source.substr(begin, source.find('\n', begin) - begin);
}

// The source line of each place "FILE:LINE:COLUMN:" that a compiler's log names.
std::string blamed_lines(const std::string& log, const std::string& source) {
  static const std::regex place(":([0-9]{1,6}):[0-9]+:");
  std::string lines;
  for (std::sregex_iterator it(log.begin(), log.end(), place), end; it != end; ++it) {
    const std::string number = (*it)[1];
    lines += "\nline " + number + ": " + line_of(source, std::stoul(number));
  }
  return lines;
}

}  // namespace

Programs::Programs(cl_context context, const DeviceFacts& facts)
    : context_(context), device_(facts.id), options_("-cl-std=CL1.2") {
  cl_device_fp_config config = 0;
  clGetDeviceInfo(device_, CL_DEVICE_SINGLE_FP_CONFIG, sizeof config, &config, nullptr);
  if (config & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) options_ += " -cl-fp32-correctly-rounded-divide-sqrt";
}

ClProgram Programs::compile(ClProgram program, const std::string& source) const {
  const cl_int error = clBuildProgram(program.get(), 1, &device_, options_.c_str(), nullptr, nullptr);
  if (error == CL_SUCCESS) return program;
  const std::string log = build_log(program.get(), device_);
  throw Failure(code_of(error), "a kernel does not compile (" + error_name(error) + "):\n" + log + blamed_lines(log, source));
}

ClProgram Programs::build(const std::string& source) {
  {
    const std::lock_guard guard(lock_);
    const auto found = built_.find(source);
    if (found != built_.end()) return found->second;
  }
  const char* text = source.data();
  const size_t size = source.size();
  cl_int error = CL_SUCCESS;
  ClProgram program(clCreateProgramWithSource(context_, 1, &text, &size, &error));
  check(error, "clCreateProgramWithSource");
  program = compile(std::move(program), source);
  const std::lock_guard guard(lock_);
  return built_.emplace(source, std::move(program)).first->second;
}

ClProgram Programs::build(const std::string& source, const std::string& binary) {
  if (binary.empty()) return build(source);
  const auto* bytes = reinterpret_cast<const unsigned char*>(binary.data());
  const size_t size = binary.size();
  cl_int accepted = CL_SUCCESS, error = CL_SUCCESS;
  ClProgram program(clCreateProgramWithBinary(context_, 1, &device_, &size, &bytes, &accepted, &error));
  if (error != CL_SUCCESS || accepted != CL_SUCCESS) return build(source);
  if (clBuildProgram(program.get(), 1, &device_, options_.c_str(), nullptr, nullptr) != CL_SUCCESS) return build(source);
  const std::lock_guard guard(lock_);
  return built_.emplace(source, std::move(program)).first->second;
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
