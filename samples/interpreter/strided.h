// Loops over strided arrays.
#pragma once
#include <functional>

#include "ops.h"

namespace interpreter {

// Elements of an array for each index of a loop. Strides count bytes, may be 0 or negative.
struct View {
  char* data;
  Sizes strides;
};

View dense(const Array& array);
// The array repeated along the dims that it lacks, and those where it has size 1.
View broadcast(const Array& array, const Sizes& to);

// Calls `inner` for each innermost dim: where each view begins, its stride, and how many elements there are.
using Inner = std::function<void(char* const* at, const int64_t* strides, int64_t count)>;
void walk(const Sizes& sizes, const std::vector<View>& views, const Inner& inner);

// Copies elements of 1, 2, 4 or 8 bytes.
void copy(const Sizes& sizes, uint64_t bytes, const View& to, const View& from);
// All of an array, as bytes.
void copy_all(const Array& to, const Array& from);

// The dim that an attribute names: a negative one counts from the end.
inline size_t dim_of(int64_t dim, size_t rank) { return static_cast<size_t>(dim < 0 ? dim + static_cast<int64_t>(rank) : dim); }

}  // namespace interpreter
