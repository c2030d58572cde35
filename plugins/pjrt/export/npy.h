// Arrays as files of NumPy's format .npy, version 1.0.
#pragma once

#include <filesystem>

#include "conformance/kit/array.h"

namespace ltc::pjrt {

using conformance::Array;

// NumPy has no bfloat16: its files hold the bits as uint16.
void write_npy(const std::filesystem::path& path, const Array& array);
// Throws Error(kDataCorrupt) for a file of another dtype, or one that is no such file.
Array read_npy(const std::filesystem::path& path, DType dtype);

// All bytes of a file. Throw where it cannot be read or written.
std::string read_file(const std::filesystem::path& path);
void write_file(const std::filesystem::path& path, std::string_view bytes);

}  // namespace ltc::pjrt
