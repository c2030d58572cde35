// Complex numbers as pairs of real ones: what computes with them computes with both parts, what moves them moves 8 bytes.
#pragma once

#include "core/decompose/support/call.h"

namespace ltc::decompose {

// Null if no rule computes the op on C64.
Rule find_complex_rule(std::string_view op);

struct Pair {
  Val re, im;
};
Pair parts(Val x);     // of a C64; of a real one with zeros
Val complex(Pair x);   // C64, both parts being F32 of the same sizes
Val as_bits(Val x);    // of a C64: I64
Val from_bits(Val x);  // the reverse

}  // namespace ltc::decompose
