#include "strided.h"

#include <algorithm>
#include <cstring>

namespace interpreter {

View dense(const Array& array) {
  const Sizes& sizes = array.sizes();
  View view{array.data, Sizes(sizes.size())};
  auto stride = static_cast<int64_t>(element_bytes(array.dtype()));
  for (size_t dim = sizes.size(); dim-- > 0; stride *= sizes[dim]) view.strides[dim] = stride;
  return view;
}

View broadcast(const Array& array, const Sizes& to) {
  const Sizes &sizes = array.sizes(), from = dense(array).strides;
  View view{array.data, Sizes(to.size(), 0)};
  for (size_t k = 1; k <= sizes.size(); ++k) {
    if (sizes[sizes.size() - k] != 1) view.strides[to.size() - k] = from[sizes.size() - k];
  }
  return view;
}

void walk(const Sizes& sizes, const std::vector<View>& views, const Inner& inner) {
  if (std::ranges::count(sizes, 0) > 0) return;
  const size_t outer = sizes.empty() ? 0 : sizes.size() - 1;
  std::vector<char*> at;
  Sizes strides, index(outer, 0);
  for (const View& view : views) {
    at.push_back(view.data);
    strides.push_back(sizes.empty() ? 0 : view.strides.back());
  }
  while (true) {
    inner(at.data(), strides.data(), sizes.empty() ? 1 : sizes.back());
    size_t dim = outer;
    for (bool wraps = true; wraps;) {
      if (dim-- == 0) return;
      wraps = ++index[dim] == sizes[dim];
      if (wraps) index[dim] = 0;
      for (size_t i = 0; i < at.size(); ++i) at[i] += views[i].strides[dim] * (wraps ? 1 - sizes[dim] : 1);
    }
  }
}

namespace {

template <typename T>
void move(char* const* at, const int64_t* strides, int64_t count) {
  for (int64_t k = 0; k < count; ++k) std::memcpy(at[0] + k * strides[0], at[1] + k * strides[1], sizeof(T));
}

}  // namespace

void copy(const Sizes& sizes, uint64_t bytes, const View& to, const View& from) {
  const auto inner = bytes == 1 ? move<uint8_t> : bytes == 2 ? move<uint16_t> : bytes == 4 ? move<uint32_t> : move<uint64_t>;
  walk(sizes, {to, from}, inner);
}

void copy_all(const Array& to, const Array& from) {
  if (to.type->bytes > 0) std::memcpy(to.data, from.data, to.type->bytes);
}

}  // namespace interpreter
