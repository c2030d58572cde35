// Formulas of the table of ops as text of a dialect.
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "kernels/print/dialect.h"
#include "ltc/plugin.h"

namespace ltc::kernels {

// Replaces $0, $1, ... by the arguments, $a by the last of them, and
//   T  U  U64  the type, the unsigned one, the unsigned one of 64 bits   BITS    of the type; T in lanes: vectors of it
//   LOWEST     what no element is below                                  @name(  the function for the type, or for vectors of it
std::string expand(std::string_view formula, ltc_dtype dtype, std::span<const std::string> args, const Dialect& dialect,
                   bool in_lanes = false);

// A conversion, PyTorch's: floats to integers towards zero, to BOOL by comparison with 0, between integers modulo 2^bits.
std::string cast_text(const std::string& value, ltc_dtype from, ltc_dtype to);
std::string bits_text(const std::string& value, ltc_dtype from, ltc_dtype to);
std::string real_text(double value, ltc_dtype dtype);
std::string integer_text(int64_t value);

}  // namespace ltc::kernels
