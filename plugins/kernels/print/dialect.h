// The languages that kernels are printed in. All are C; what differs is in these tables.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace ltc::kernels {

// maths.h for one type.
struct MathsForm {
  std::string_view type;  // its functions are ltc_exp_ and this
  std::string_view definitions;
};

// Defined where a kernel's text holds its name, which is not the beginning of another's.
struct OwnFunction {
  std::string_view name, text;
};

struct Dialect {
  std::string_view name;
  // Defines the types u8 to f64, FN (a function), GLOBAL (the memory of buffers), RESTRICT, INFINITY, and the functions
  // f32_of_u32, u32_of_f32, f64_of_u64, u64_of_f64.
  std::string_view prelude;
  std::string_view prelude_f64;  // what is needed besides for F64
  bool suffixed;                 // mathematical functions of F32 end in f
  // The frame of a kernel: arguments go between open and body, statements between body and close.
  std::string_view open, body, close;
  std::span<const std::string_view> maths;  // the functions of F32 that come from maths.h
  std::span<const MathsForm> maths_forms;
  bool vectors;  // has float16, vload16 and their like
  // Above 0: threads meet in blocks (coop_reduce.h) and load several elements at once (vectorized_access.h); so many keep a
  // device busy.
  int64_t device_threads = 0;
  // Whether arguments arrive in an array; else they are parameters of the kernel.
  bool arguments_in_array;
  std::span<const OwnFunction> (*functions)() = nullptr;  // what it has besides those of all dialects
};

const Dialect& opencl_dialect();                       // OpenCL C 1.2
const Dialect& cuda_dialect();                         // CUDA C++, without headers
std::span<const OwnFunction> tensor_core_functions();  // its assembly
// C++17 of GCC and clang, without headers: void ltc_kernel(void* const* args, int64_t begin, int64_t end) runs items [begin,
// end).
const Dialect& host_dialect();
// The same for clang alone, of kernels of F32 without loops whose items can be lanes of vectors (vectors.h): [begin, end) is
// whole vectors of 16 items. Nothing is left for a compiler to vectorise.
const Dialect& host_vector_dialect();

// The functions of ours that `text` calls, and those that they call, to stand before it.
std::string functions_for(std::string_view text, const Dialect& dialect);
// The functions of maths.h that `text` calls, in each form, to stand before it.
std::string maths_for(std::string_view text, const Dialect& dialect);
bool is_in_maths(std::string_view name, const Dialect& dialect);
// Whether @name( of the dtype class is a function of ours.
bool is_own_function(std::string_view name, bool floats);

}  // namespace ltc::kernels
