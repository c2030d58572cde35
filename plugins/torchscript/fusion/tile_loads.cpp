#include "torchscript/fusion/tile_loads.h"

#include <algorithm>

namespace ltc::torchscript {
namespace {

template <typename T>
void load_row(float* out, const T* data, int64_t stride, int64_t count) {
  if (stride == 0) {
    std::fill_n(out, count, static_cast<float>(*data));
  } else if (stride == 1) {
    for (int64_t i = 0; i < count; ++i) out[i] = static_cast<float>(data[i]);
  } else {
    for (int64_t i = 0; i < count; ++i) out[i] = static_cast<float>(data[i * stride]);
  }
}

template <typename T>
void load_elements(float* out, const T* data, const Dims& dims, int64_t first, int64_t count) {
  const Dim inner = dims.back();
  while (count > 0) {
    int64_t rest = first / inner.size, offset = 0;
    for (size_t i = dims.size() - 1; i-- > 0; rest /= dims[i].size) offset += rest % dims[i].size * dims[i].stride;
    const int64_t at = first % inner.size, row = std::min(count, inner.size - at);
    load_row(out, data + offset + at * inner.stride, inner.stride, row);
    out += row, first += row, count -= row;
  }
}

}  // namespace

Dims dims_of(const at::Tensor& tensor, at::IntArrayRef sizes) {
  Dims dims;
  const auto missing = static_cast<int64_t>(sizes.size()) - tensor.dim();
  for (int64_t i = 0; i < static_cast<int64_t>(sizes.size()); ++i) {
    if (sizes[i] == 1) continue;
    const bool repeats = i < missing || tensor.size(i - missing) == 1;
    const int64_t stride = repeats ? 0 : tensor.stride(i - missing);
    if (!dims.empty() && dims.back().stride == stride * sizes[i]) {
      dims.back() = {dims.back().size * sizes[i], stride};
    } else {
      dims.push_back({sizes[i], stride});
    }
  }
  if (dims.empty()) dims.push_back({1, 0});
  return dims;
}

void load(float* out, const float* data, const Dims& dims, int64_t first, int64_t count) {
  load_elements(out, data, dims, first, count);
}

void load(float* out, const uint8_t* data, const Dims& dims, int64_t first, int64_t count) {
  load_elements(out, data, dims, first, count);
}

}  // namespace ltc::torchscript
