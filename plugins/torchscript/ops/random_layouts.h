// A test mode: values lie in memory as no kernel may presume them to.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string_view>

namespace ltc::torchscript {

// The seed of the option layouts=random:SEED, for the CPU and the process. Null where it is not given: a run then costs the same.
std::optional<uint64_t> layouts_seed();
void choose_layouts_seed(std::string_view value);

// The same value elsewhere: its dims in any order, with any strides for those of size 1, perhaps with gaps between elements and
// rows, and at an offset. Gaps and the memory around are NaN, or large integers. One seed of four leaves the value as it is. Ends
// the process, with a message, if something else stands in a gap when the memory is freed.
at::Tensor in_random_layout(const at::Tensor& self, int64_t seed);

}  // namespace ltc::torchscript
