// Kernels as source text.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernels/graph/ir.h"
#include "kernels/print/dialect.h"

namespace ltc::kernels {

// A kernel that does more than this has its integers in the text: dividing by a constant is several times faster, and worth a
// compile for each size.
inline constexpr int64_t kMuchWork = 1 << 18;

// One kernel. Sizes and strides are not in the text but among the arguments, so kernels that differ in them only are compiled
// once.
//
// Arguments: pointers to the buffers, in the order of Kernel::buffers, the scalars, `items`, then the other integers; these are
// of 32 bits, or of 64 where long_index. The host dialect finds them in an array: pointers to the buffers, to the scalars, and to
// the integers.
struct Source {
  std::string text;               // the function ltc_kernel
  std::vector<int64_t> integers;  // the first is the number of items
  bool long_index;
  int64_t local_size = 0;  // threads of a block where the text is made for it
};

Source render(const Kernel& kernel, const Dialect& dialect);

// The text for a compiler: the kernels, as the functions NAME_0, NAME_1, ..., with all that they need before them.
std::string program_text(std::span<const std::string> kernels, const Dialect& dialect, std::string_view name = "ltc_kernel");

// The function's frame around a body: arguments and `ix`, the type of integers.
std::string framed(std::string_view arguments, std::string_view body, bool long_index, const Dialect& dialect);

}  // namespace ltc::kernels
