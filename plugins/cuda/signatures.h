// Interfaces of libraries as text, so that what this plugin declares of them can be compared with their own headers. The two
// declare the same names, so no file can include both.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <type_traits>

namespace ltc::cuda {

// "n4": a number or enumerator of 4 bytes, "p": a pointer, with "c" before what is const, "s": a struct.
template <typename T>
std::string type_text() {
  if constexpr (std::is_void_v<T>)
    return "v";
  else if constexpr (std::is_pointer_v<T>)
    return "p" + type_text<std::remove_pointer_t<T>>();
  else if constexpr (std::is_const_v<T>)
    return "c" + type_text<std::remove_const_t<T>>();
  else if constexpr (std::is_class_v<T>)
    return "s";
  else if constexpr (std::is_floating_point_v<T>)
    return "f" + std::to_string(sizeof(T));
  else
    return "n" + std::to_string(sizeof(T));
}
// Takes a function's type: to name the function itself would need the library.
template <typename Function>
struct Signature;
template <typename Result, typename... Args>
struct Signature<Result(Args...)> {
  static std::string text() { return type_text<Result>() + "(" + ((type_text<Args>() + ",") + ... + "") + ")"; }
};

struct Interface {
  std::map<std::string, std::string> functions;
  std::map<std::string, int64_t> values;  // of enumerators, sizes and offsets, by the library's names
};
Interface as_declared();    // by this plugin
Interface as_in_headers();  // of the libraries

}  // namespace ltc::cuda
