// A library of PJRT: found, loaded, its version agreed on, and how it is called.
#pragma once
#include <pjrt_c_api.h>

#include <string>

#include "ltc/plugin.hpp"

namespace ltc::pjrt {

// The file of a setting: a path, the name of a Python package, or nothing for the first known package which is installed. Throws
// where there is none.
std::string find_library(const std::string& setting);

// The arguments of a function, zeroed: PJRT_ARGS(Client_Compile). All but struct_size of a plain struct: PJRT_STRUCT(Program).
#define PJRT_STRUCT(Name)                         \
  [] {                                            \
    PJRT_##Name made{};                           \
    made.struct_size = PJRT_##Name##_STRUCT_SIZE; \
    return made;                                  \
  }()
#define PJRT_ARGS(Name) PJRT_STRUCT(Name##_Args)
// Calls it; throws its error.
#define PJRT_CALL(library, Name, args) (library).call("PJRT_" #Name, (library).api().PJRT_##Name, args)
// The same where an error can do no harm: of destructors, and of optional questions. Whether it went well.
#define PJRT_TRY(library, Name, args) (library).attempt((library).api().PJRT_##Name, args)

class Library {
 public:
  // Throws where the file cannot be loaded, or speaks a version of the interface that is not understood.
  explicit Library(std::string path);
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  const PJRT_Api& api() const { return api_; }  // a slot that the library lacks is NULL
  const std::string& path() const { return path_; }
  std::string version() const;  // "0.115"

  template <typename Args>
  void call(const char* name, PJRT_Error* (*function)(Args*), Args& args) const {
    if (!function) throw plugin::Failure(LTC_UNSUPPORTED, path_ + " speaks PJRT " + version() + ", which lacks " + name);
    check(function(&args));
  }
  template <typename Args>
  bool attempt(PJRT_Error* (*function)(Args*), Args& args) const noexcept {
    PJRT_Error* error = function ? function(&args) : nullptr;
    if (error) (void)take(error);
    return function && !error;
  }
  // Throws an error, or does nothing for NULL.
  void check(PJRT_Error* error) const {
    if (error) throw plugin::Failure(take(error));
  }
  plugin::Error take(PJRT_Error* error) const noexcept;  // and frees it

 private:
  std::string path_;
  PJRT_Api api_{};
};

}  // namespace ltc::pjrt
