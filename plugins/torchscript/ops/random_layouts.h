// A test mode: values lie in memory as no kernel may presume them to.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

namespace ltc::torchscript {

// LTC_TS_LAYOUTS=random:SEED, for the CPU; null where it is unset, which costs a run nothing. Throws
// Failure(LTC_INVALID_ARGUMENT) for other words.
std::optional<uint64_t> layouts_seed();

// The same value elsewhere: its dims in any order, with any strides for those of size 1, perhaps with gaps between elements and
// rows, and at an offset. Gaps and the memory around are NaN, or large integers. One seed of four leaves the value as it is. Ends
// the process, with a message, if something else stands in a gap when the memory is freed.
at::Tensor in_random_layout(const at::Tensor& self, int64_t seed);

}  // namespace ltc::torchscript
