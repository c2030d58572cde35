// A library of PJRT: found, loaded, its version agreed on, and how it is called.
#pragma once
#include <pjrt_c_api.h>

#include <memory>
#include <string>

#include "abi/failure.h"

namespace ltc::pjrt {

// What the user has set: a path, a name of the table in library.cpp, or nothing. From the environment.
std::string library_setting();
// The file of a setting; of an empty one that of the first package which is installed. Throws where there is none.
std::string find_library(const std::string& setting);

// The arguments of a function, zeroed: PJRT_ARGS(Client_Compile).
#define PJRT_ARGS(Name)                                \
  [] {                                                 \
    PJRT_##Name##_Args args{};                         \
    args.struct_size = PJRT_##Name##_Args_STRUCT_SIZE; \
    return args;                                       \
  }()
// Calls it; throws its error.
#define PJRT_CALL(library, Name, args) (library).call("PJRT_" #Name, (library).api().PJRT_##Name, args)

class Library {
 public:
  // Throws where the file cannot be loaded, or speaks a version of the interface that is not understood.
  explicit Library(std::string path);
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  const PJRT_Api& api() const { return api_; }  // a slot that the library does not know is NULL
  const std::string& path() const { return path_; }
  std::string version() const;  // "0.115"

  template <typename Args>
  void call(const char* name, PJRT_Error* (*function)(Args*), Args& args) const {
    if (!function) lacks(name);
    check(function(&args));
  }

  // Throws an error, or does nothing for NULL.
  void check(PJRT_Error* error) const {
    if (error) throw abi::Failure(take(error));
  }
  abi::Error take(PJRT_Error* error) const noexcept;  // and frees it

 private:
  [[noreturn]] void lacks(const char* name) const;
  void agree(const PJRT_Api& theirs);

  std::string path_;
  PJRT_Api api_{};
};

}  // namespace ltc::pjrt
