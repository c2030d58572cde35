// Conversion of values in host memory between the type that tensors report and the one that a device keeps.
#pragma once

#include "core/run/queue/host_ops.h"

namespace ltc {

// `value` as `type`, which differs in its dtype only: the value itself where that is equal. Between f64, f32 and bf16, and
// between c128 and c64; rounds to the nearest, ties to even. Throws Error(kInternal) for other pairs, and for want of memory.
HostValue convert(const HostValue& value, TypeId type);

// The same into memory with room for the elements.
void convert_elements(const HostValue& from, DType dtype, void* to);

}  // namespace ltc
