// Kernels over elements for devices whose threads load up to 16 bytes at once, CUDA's: a thread does a pack of neighbouring
// elements, and reads and writes those that lie side by side in one access.
#pragma once
#include <cstdint>
#include <string>

#include "kernels/graph/ir.h"
#include "kernels/print/dialect.h"
#include "kernels/print/vectors.h"

namespace ltc::kernels {

// Elements of a pack, by the kernel's size and types; 1: none.
int64_t pack_of(const Kernel& kernel, int64_t device_threads);

// The statements of a thread for the pack of elements from `begin`, a multiple of its size.
std::string pack_statements(const Kernel& kernel, int64_t pack, const ScalarText& scalar);

}  // namespace ltc::kernels
