// The element types that kernels compute with, and what each is called in every dialect.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "ltc/plugin.h"

namespace ltc::kernels {

// F16, BF16 and those of 8 bits are moved and converted only: in a kernel they are their bits. C64 has the bits only.
struct DTypeFacts {
  std::string_view name;       // in text and as the type of a variable
  std::string_view unsigned_;  // of the same width: arithmetic in it wraps
  int bytes;
  bool is_float, is_integer;  // is arithmetic done in it
};

// Empty name: not computed with.
const DTypeFacts& facts(ltc_dtype dtype);
inline bool is_computed(ltc_dtype dtype) { return !facts(dtype).name.empty(); }
inline bool is_float(ltc_dtype dtype) { return facts(dtype).is_float; }
inline bool is_integer(ltc_dtype dtype) { return facts(dtype).is_integer; }
inline bool is_half(ltc_dtype dtype) { return dtype == LTC_F16 || dtype == LTC_BF16; }
inline bool is_f8(ltc_dtype dtype) { return dtype == LTC_F8_E4M3FN || dtype == LTC_F8_E5M2; }

// Bits of an element of any dtype of the ABI; 0 for an unknown one.
int bits_of(ltc_dtype dtype);

}  // namespace ltc::kernels
