// Element types and names on both sides of the C ABI.
#pragma once
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <string_view>

#include "ltc/plugin.h"

namespace ltc::torchscript {

// Fails with UNSUPPORTED for an id that ATen has no type for.
at::ScalarType to_torch(ltc_dtype dtype);

// Bit per ltc dtype that buffers may have.
uint64_t supported_dtypes();

inline std::string_view text(const ltc_string& string) { return {string.data, string.size}; }

}  // namespace ltc::torchscript
