// NVRTC: CUDA C++ to machine code.
#pragma once
#include <nvrtc.h>

#include <string>

#include "cuda/library.h"

#define LTC_NVRTC_FUNCTIONS(X) \
  X(nvrtcGetErrorString)       \
  X(nvrtcVersion)              \
  X(nvrtcGetNumSupportedArchs) \
  X(nvrtcGetSupportedArchs)    \
  X(nvrtcCreateProgram)        \
  X(nvrtcDestroyProgram)       \
  X(nvrtcCompileProgram)       \
  X(nvrtcGetCUBINSize)         \
  X(nvrtcGetCUBIN)             \
  X(nvrtcGetPTXSize)           \
  X(nvrtcGetPTX)               \
  X(nvrtcGetProgramLogSize)    \
  X(nvrtcGetProgramLog)

namespace ltc::cuda {

inline constexpr int kNewestMajor = 99;  // of CUDA, where no driver sets a limit

// Any thread, several at once.
class Compiler {
 public:
  // Throws NOT_FOUND, and says what to install, where there is no NVRTC. `newest_major`: of CUDA, that the driver runs.
  Compiler(const SearchPath& path, int newest_major);

  // "13.5".
  const std::string& version() const { return version_; }
  const std::string& library() const { return library_; }

  // Machine code of a device of this compute capability, 90 for 9.0; for one that is newer than NVRTC the text of PTX, which its
  // driver takes. Throws INTERNAL with the compiler's messages and the lines that they speak of.
  // `Effort::kLeast`: for code that nobody runs; sooner than optimised code by a factor of three.
  enum class Effort { kFull, kLeast };
  // `resources`, if not null, gets the assembler's account of registers, spills and shared memory, for machine code.
  std::string compile(const std::string& source, int capability, Effort effort = Effort::kFull,
                      std::string* resources = nullptr) const;

 private:
  struct Symbols {
#define LTC_MEMBER(name) decltype(&::name) name = nullptr;
    LTC_NVRTC_FUNCTIONS(LTC_MEMBER)
#undef LTC_MEMBER
  };
  void check(nvrtcResult result, const char* what) const;
  std::string log_of(nvrtcProgram program) const;

  Symbols nvrtc_;
  std::string library_, version_;
  std::vector<int> capabilities_;  // that it knows, ascending
};

}  // namespace ltc::cuda
