// Element-wise kernels in explicit vectors, for dialects that have them. Compilers of kernels rarely find these by themselves: on
// PoCL a chain of float operations runs three to ten times faster so.
#pragma once
#include <string>

#include "dialect.h"
#include "ir.h"

namespace ltc::kernels {

inline constexpr int64_t kLanes = 16;

// Whether each item reads and writes just the elements of its own number, or the same for all, in F32 and BOOL.
bool runs_in_vectors(const Kernel& kernel);

// The statements for kLanes items from i0 on. In them a BOOL is a lane of a mask, 0 or -1.
std::string vector_statements(const Kernel& kernel, const Dialect& dialect);

}  // namespace ltc::kernels
