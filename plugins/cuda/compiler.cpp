#include "cuda/compiler.h"

#include <algorithm>
#include <memory>

#include "device/sources.h"

namespace ltc::cuda {

Compiler::Compiler(const SearchPath& path, int newest_major) {
  const Library library = Library::open(versions_of("libnvrtc.so", newest_major), path);
  if (!library) {
    throw Failure(LTC_NOT_FOUND,
                  "NVRTC, the compiler of kernels, of CUDA " + std::to_string(kOldestMajor) +
                      (newest_major == kNewestMajor ? " or newer" : " up to the driver's " + std::to_string(newest_major)) +
                      " was not found in the system's folders, the option path, CUDA_HOME or nvidia-* packages; "
                      "install it, for example: pip install nvidia-cuda-nvrtc");
  }
#define LTC_RESOLVE(name) library.resolve(#name, nvrtc_.name);
  LTC_NVRTC_FUNCTIONS(LTC_RESOLVE)
#undef LTC_RESOLVE
  library_ = library.name();
  int major = 0, minor = 0, count = 0;
  check(nvrtc_.nvrtcVersion(&major, &minor), "nvrtcVersion");
  version_ = std::to_string(major) + "." + std::to_string(minor);
  check(nvrtc_.nvrtcGetNumSupportedArchs(&count), "nvrtcGetNumSupportedArchs");
  capabilities_.resize(static_cast<size_t>(count));
  check(nvrtc_.nvrtcGetSupportedArchs(capabilities_.data()), "nvrtcGetSupportedArchs");
  std::ranges::sort(capabilities_);
}

void Compiler::check(nvrtcResult result, const char* what) const {
  if (result == NVRTC_SUCCESS) return;
  throw Failure(LTC_INTERNAL, std::string(what) + " answered " + nvrtc_.nvrtcGetErrorString(result));
}

std::string Compiler::log_of(nvrtcProgram program) const {
  size_t size = 0;
  if (nvrtc_.nvrtcGetProgramLogSize(program, &size) != NVRTC_SUCCESS) return {};
  std::string log(size, '\0');
  nvrtc_.nvrtcGetProgramLog(program, log.data());
  return log.c_str();
}

std::string Compiler::compile(const std::string& source, int capability, Effort effort, std::string* resources) const {
  nvrtcProgram made = nullptr;
  check(nvrtc_.nvrtcCreateProgram(&made, source.c_str(), "kernel.cu", 0, nullptr, nullptr), "nvrtcCreateProgram");
  const auto destroy = [this](nvrtcProgram program) { nvrtc_.nvrtcDestroyProgram(&program); };
  const std::unique_ptr<_nvrtcProgram, decltype(destroy)> program(made, destroy);

  const auto above = std::ranges::upper_bound(capabilities_, capability);
  const int known = above == capabilities_.begin() ? capability : *std::prev(above);
  const bool exact = known == capability;
  const std::string architecture = (exact ? "--gpu-architecture=sm_" : "--gpu-architecture=compute_") + std::to_string(known);
  // The fourth is for generic lambdas, which NVRTC 13.0 takes for functions of the host otherwise (13.5 does not).
  std::vector<const char*> options{architecture.c_str(), "--std=c++17", "--fmad=false", "--device-as-default-execution-space"};
  if (effort == Effort::kLeast) options.push_back("--Ofast-compile=max");
  if (resources) options.push_back("--ptxas-options=-v");
  const nvrtcResult result = nvrtc_.nvrtcCompileProgram(made, static_cast<int>(options.size()), options.data());
  if (result != NVRTC_SUCCESS) {
    const std::string log = log_of(made);
    throw Failure(LTC_INTERNAL, "a kernel does not compile with " + library_ + " for " + architecture.substr(19) + " (" +
                                    nvrtc_.nvrtcGetErrorString(result) + "):\n" + log +
                                    device::quoted_lines(log, source, "kernel\\.cu\\(([0-9]{1,6})\\)"));
  }
  if (resources) *resources = log_of(made);
  size_t size = 0;
  check(exact ? nvrtc_.nvrtcGetCUBINSize(made, &size) : nvrtc_.nvrtcGetPTXSize(made, &size), "nvrtcGetCUBINSize");
  std::string code(size, '\0');
  check(exact ? nvrtc_.nvrtcGetCUBIN(made, code.data()) : nvrtc_.nvrtcGetPTX(made, code.data()), "nvrtcGetCUBIN");
  return code;
}

}  // namespace ltc::cuda
