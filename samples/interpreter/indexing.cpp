// Reading and writing along a dim at positions that a tensor holds.
#include <cstring>
#include <utility>

#include "strided.h"

namespace interpreter {
namespace {

// Calls void each(char* element, char* other) for all elements of the index: `element` is where the index points in `x`, and
// `other` the element of `others` with the coordinates of the index.
template <typename Each>
void visit(const Call& call, const Array& x, const Array& others, const Each& each) {
  const Array& index = call.in[1];
  Sizes sizes = index.sizes(), bounds = x.sizes();
  View positions = dense(index), elements = dense(x), other = dense(others);
  if (bounds.empty()) bounds = {1}, elements.strides = {0};
  if (sizes.empty()) sizes = {1}, positions.strides = {0};
  other.strides.resize(sizes.size(), 0);  // of rank 0 beside an index of one element
  const size_t dim = dim_of(call.integer("dim", 0), bounds.size());
  const int64_t size = bounds[dim], stride = std::exchange(elements.strides[dim], 0);
  walk(sizes, {positions, elements, other}, [&](char* const* at, const int64_t* strides, int64_t count) {
    for (int64_t k = 0; k < count; ++k) {
      const int64_t i = *reinterpret_cast<const int64_t*>(at[0] + k * strides[0]);
      if (i < 0 || i >= size) {
        throw Failure(LTC_OUT_OF_RANGE, "index " + std::to_string(i) + " is out of bounds for dimension " + std::to_string(dim) +
                                            " with size " + std::to_string(size));
      }
      each(at[1] + k * strides[1] + i * stride, at[2] + k * strides[2]);
    }
  });
}

void gather(const Call& call) {
  const uint64_t bytes = element_bytes(call.out[0].dtype());
  visit(call, call.in[0], call.out[0], [bytes](char* from, char* to) { std::memcpy(to, from, bytes); });
}

// Where two indices meet, the later one in row-major order stays.
void scatter(const Call& call) {
  const uint64_t bytes = element_bytes(call.out[0].dtype());
  copy_all(call.out[0], call.in[0]);
  visit(call, call.out[0], call.in[2], [bytes](char* to, char* from) { std::memcpy(to, from, bytes); });
}

template <typename T>
void scatter_add(const Call& call) {
  copy_all(call.out[0], call.in[0]);
  visit(call, call.out[0], call.in[2], [](char* to, char* from) {
    T& sum = *reinterpret_cast<T*>(to);
    const T more = *reinterpret_cast<const T*>(from);
    if constexpr (std::is_same_v<T, bool>) {
      sum |= more;
    } else {
      sum = static_cast<T>(static_cast<Wide<T>>(sum) + static_cast<Wide<T>>(more));
    }
  });
}
template <typename... T>
Kernels scatter_adds(Types<T...>) {
  return {{dtype_of<T>, scatter_add<T>}...};
}

}  // namespace

const Table index_ops{
    {"aten::gather", {"Ti:T", moves(gather), true}},
    {"aten::scatter.src", {"TiT:T", moves(scatter), true}},
    {"aten::scatter_add", {"TiT:T", scatter_adds(all_computed), true}},
};

}  // namespace interpreter
