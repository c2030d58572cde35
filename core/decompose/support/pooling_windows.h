// Windows over the last dims. A window is the list of its places: each place of the kernel, for all windows at once, is a strided
// slice of the padded input.
#pragma once

#include <functional>

#include "core/decompose/support/call.h"

namespace ltc::decompose {

// Options with one element stand for all dims.
Ints per_dim(Ints values, size_t dims, int64_t otherwise);

// How windows lie over the last `kernel.size()` dims.
struct Windows {
  Ints kernel, stride, padding, dilation;
  Ints input, output;

  size_t dims() const { return kernel.size(); }
  int64_t places() const;
  // Zeros needed behind, so that the last window, which may reach beyond the padding, lies within.
  int64_t behind(size_t i) const;
};

// From the options kernel_size, stride and padding; not dilated.
Windows windows_of(const Call& call, const Ints& input, const Ints& output, size_t dims);

Val padded(Val x, const Windows& w, double with);

// Calls `visit` with each place of the kernel, as an index per dim.
void for_each_place(const Windows& w, const std::function<void(const Ints&)>& visit);

// The elements that all windows have at one place of the kernel, x being padded; and the reverse, with zeros elsewhere.
Val at_place(Val x, const Windows& w, const Ints& place);
Val from_place(Val x, const Windows& w, const Ints& place);

}  // namespace ltc::decompose
