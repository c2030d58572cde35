#include "core/decompose/support/pooling_windows.h"

#include <algorithm>

namespace ltc::decompose {

Ints per_dim(Ints values, size_t dims, int64_t otherwise) {
  if (values.empty()) values.push_back(otherwise);
  if (values.size() == 1) values.resize(dims, values[0]);
  return values;
}

int64_t Windows::places() const {
  int64_t count = 1;
  for (const int64_t size : kernel) count *= size;
  return count;
}

int64_t Windows::behind(size_t i) const {
  return std::max<int64_t>((output[i] - 1) * stride[i] + dilation[i] * (kernel[i] - 1) + 1 - input[i] - padding[i], padding[i]);
}

Windows windows_of(const Call& call, const Ints& input, const Ints& output, size_t dims) {
  Windows w;
  w.kernel = per_dim(call.ints("kernel_size"), dims, 1);
  w.stride = call.ints("stride").empty() ? w.kernel : per_dim(call.ints("stride"), dims, 1);
  w.padding = per_dim(call.ints("padding"), dims, 0);
  w.dilation.assign(dims, 1);
  w.input.assign(input.end() - static_cast<int64_t>(dims), input.end());
  w.output.assign(output.end() - static_cast<int64_t>(dims), output.end());
  return w;
}

Val padded(Val x, const Windows& w, double with) {
  Ints amounts;
  for (size_t i = w.dims(); i-- > 0;) amounts.insert(amounts.end(), {w.padding[i], w.behind(i)});
  return std::ranges::all_of(amounts, [](int64_t amount) { return amount == 0; }) ? x : pad(x, amounts, with);
}

void for_each_place(const Windows& w, const std::function<void(const Ints&)>& visit) {
  Ints place(w.dims(), 0);
  for (int64_t n = 0; n < w.places(); ++n) {
    visit(place);
    for (size_t i = w.dims(); i-- > 0;) {
      if (++place[i] < w.kernel[i]) break;
      place[i] = 0;
    }
  }
}

Val at_place(Val x, const Windows& w, const Ints& place) {
  for (size_t i = 0; i < w.dims(); ++i) {
    const int64_t dim = x.rank() - static_cast<int64_t>(w.dims() - i), begin = place[i] * w.dilation[i];
    x = slice(x, dim, begin, begin + (w.output[i] - 1) * w.stride[i] + 1, w.stride[i]);
  }
  return x;
}

Val from_place(Val x, const Windows& w, const Ints& place) {
  for (size_t i = 0; i < w.dims(); ++i) {
    const int64_t dim = x.rank() - static_cast<int64_t>(w.dims() - i);
    x = unslice(x, dim, place[i] * w.dilation[i], w.stride[i], w.padding[i] + w.input[i] + w.behind(i));
  }
  return x;
}

}  // namespace ltc::decompose
