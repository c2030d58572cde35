// A library of PJRT: found, loaded, its version agreed on, and how it is called.
#pragma once
#include <pjrt_c_api.h>

#include <memory>
#include <optional>
#include <string>

#include "ltc/plugin.hpp"

namespace ltc::pjrt {

using plugin::Failure;

// The file of a setting: a path, the name of a Python package, or nothing for the first known package which is installed. Throws
// where there is none.
std::string find_library(const std::string& setting);

// A struct of the interface, with the fields that are given.
#define PJRT_STRUCT(Name, ...) \
  PJRT_##Name { .struct_size = PJRT_##Name##_STRUCT_SIZE, __VA_ARGS__ }
// Calls a function with these fields of its arguments, and returns them with its answers: PJRT_CALL(library, Client_Create).
// Throws its error.
#define PJRT_CALL(library, Name, ...) \
  (library).call("PJRT_" #Name, (library).api().PJRT_##Name, PJRT_STRUCT(Name##_Args, __VA_ARGS__))
// The same where an error can do no harm: of destructors, and of optional questions. Nothing after an error.
#define PJRT_TRY(library, Name, ...) (library).attempt((library).api().PJRT_##Name, PJRT_STRUCT(Name##_Args, __VA_ARGS__))
// The object as one of shared owners, the last of which destroys it. `field`: its name in the destructor's arguments.
#define PJRT_OWN(library, Name, field, object)                                            \
  std::shared_ptr<PJRT_##Name>(object, [&owner_library = (library)](PJRT_##Name* ended) { \
    (void)PJRT_TRY(owner_library, Name##_Destroy, .field = ended);                        \
  })

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
  Args call(const char* name, PJRT_Error* (*function)(Args*), Args args) const {
    if (!function) throw Failure(LTC_UNSUPPORTED, path_ + " speaks PJRT " + version() + ", which lacks " + name);
    check(function(&args));
    return args;
  }
  template <typename Args>
  std::optional<Args> attempt(PJRT_Error* (*function)(Args*), Args args) const noexcept {
    PJRT_Error* error = function ? function(&args) : nullptr;
    if (error) (void)take(error);
    return function && !error ? std::optional(args) : std::nullopt;
  }
  // Throws an error, or does nothing for NULL.
  void check(PJRT_Error* error) const {
    if (error) throw Failure(take(error));
  }

 private:
  plugin::Error take(PJRT_Error* error) const noexcept;  // and frees it

  std::string path_;
  PJRT_Api api_{};
};

}  // namespace ltc::pjrt
