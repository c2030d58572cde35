#include "kernels/graph/op_table.h"

#include <unordered_map>

#include "kernels/graph/dtype.h"

namespace ltc::kernels {
namespace {

using enum Kind;

constexpr char kReductionOperands[] = "T:input T?:after Z:op I:group";

constexpr OpRow kOps[] = {
    // one operand
    {"aten::neg", kMap, "T:T", "fi", "-$0", "(T)(0 - (U)$0)"},
    {"aten::abs", kMap, "T:T", "fi", "@fabs($0)", "(T)($0 < 0 ? 0 - (U)$0 : (U)$0)"},
    {"aten::sign", kMap, "T:T", "fi", "(T)(($0 > 0) - ($0 < 0))", "(T)(($0 > 0) - ($0 < 0))"},
    {"aten::floor", kMap, "T:T", "f", "@floor($0)"},
    {"aten::ceil", kMap, "T:T", "f", "@ceil($0)"},
    {"aten::trunc", kMap, "T:T", "f", "@trunc($0)"},
    {"aten::round", kMap, "T:T", "f", "@rint($0)"},
    {"aten::exp", kMap, "T:T", "f", "@exp($0)"},
    {"aten::expm1", kMap, "T:T", "f", "@expm1($0)"},
    {"aten::log", kMap, "T:T", "f", "@log($0)"},
    {"aten::log1p", kMap, "T:T", "f", "@log1p($0)"},
    {"aten::sqrt", kMap, "T:T", "f", "@sqrt($0)"},
    {"aten::sin", kMap, "T:T", "f", "@sin($0)"},
    {"aten::cos", kMap, "T:T", "f", "@cos($0)"},
    {"aten::tan", kMap, "T:T", "f", "@tan($0)"},
    {"aten::tanh", kMap, "T:T", "f", "@tanh($0)"},
    {"aten::atan", kMap, "T:T", "f", "@atan($0)"},
    {"aten::erf", kMap, "T:T", "f", "@erf($0)"},
    {"aten::lgamma", kMap, "T:T", "f", "@lgamma($0)"},
    {"aten::bitwise_not", kMap, "T:T", "ib", {}, "(T)~$0", "(T)!$0"},
    // two operands
    {"aten::add.Tensor", kMap, "TT:T", "fi", "$0 + $1", "(T)((U)$0 + (U)$1)"},
    {"aten::mul.Tensor", kMap, "TT:T", "fi", "$0 * $1", "(T)((U64)$0 * (U64)$1)"},
    {"aten::div.Tensor", kMap, "TT:T", "f", "$0 / $1"},
    {"aten::remainder.Tensor", kMap, "TT:T", "fi", "@remainder($0, $1)", "@remainder($0, $1)"},
    {"aten::fmod.Tensor", kMap, "TT:T", "fi", "@fmod($0, $1)", "@fmod($0, $1)"},
    {"aten::pow.Tensor_Tensor", kMap, "TT:T", "fi", "@pow($0, $1)", "@pow($0, $1)"},
    {"aten::maximum", kMap, "TT:T", "fib", "$0 != $0 || $0 > $1 ? $0 : $1", "$0 > $1 ? $0 : $1", "(T)($0 | $1)"},
    {"aten::minimum", kMap, "TT:T", "fib", "$0 != $0 || $0 < $1 ? $0 : $1", "$0 < $1 ? $0 : $1", "(T)($0 & $1)"},
    {"aten::atan2", kMap, "TT:T", "f", "@atan2($0, $1)"},
    {"aten::bitwise_and.Tensor", kMap, "TT:T", "ib", {}, "(T)($0 & $1)", "(T)($0 & $1)"},
    {"aten::bitwise_or.Tensor", kMap, "TT:T", "ib", {}, "(T)($0 | $1)", "(T)($0 | $1)"},
    {"aten::bitwise_xor.Tensor", kMap, "TT:T", "ib", {}, "(T)($0 ^ $1)", "(T)($0 ^ $1)"},
    {"aten::bitwise_left_shift.Tensor", kMap, "TT:T", "i", {}, "$1 < 0 || $1 >= BITS ? (T)0 : (T)((U64)$0 << $1)"},
    {"aten::bitwise_right_shift.Tensor", kMap, "TT:T", "i", {}, "$1 < 0 || $1 >= BITS ? (T)($0 < 0 ? -1 : 0) : (T)($0 >> $1)"},
    {"aten::eq.Tensor", kMap, "TT:b", "fib", "$0 == $1", "$0 == $1", "$0 == $1"},
    {"aten::lt.Tensor", kMap, "TT:b", "fib", "$0 < $1", "$0 < $1", "$0 < $1"},
    {"aten::le.Tensor", kMap, "TT:b", "fib", "$0 <= $1", "$0 <= $1", "$0 <= $1"},
    // a choice and conversions
    {"aten::where.self", kMap, "bTT:T", "fibhq", "$0 ? $1 : $2", "$0 ? $1 : $2", "$0 ? $1 : $2"},
    {"aten::_to_copy", kCast, "N:A", "fibhq"},
    {"aten::view.dtype", kBits, "T:A", "fibhqc"},
    // movement
    {"aten::reshape", kReshape, "T:T", "fibhq"},
    {"aten::permute", kPermute, "T:T", "fibhq"},
    {"aten::expand", kExpand, "T:T", "fibhq"},
    {"aten::slice.Tensor", kSlice, "T:T", "fibhq"},
    {"aten::constant_pad_nd", kPad, "Ts:T", "fibhq"},
    {"aten::cat", kCat, "+:T", "fibhq"},
    {"aten::flip", kFlip, "T:T", "fibhq"},
    {"aten::as_strided", kStrided, "T:T", "fibhq"},
    {"aten::gather", kGather, "Ti:T", "fibhq"},
    // made from nothing
    {"aten::full", kFull, "s:T", "fibhq"},
    {"aten::arange.start_step", kArange, ":T", "fi"},
    {"ltc::philox", kPhilox, "ss:T", "fi"},
    // rows to elements. The sum of floats runs in a wider type, U.
    {"aten::sum.dim_IntList", kReduce, "T:T", "fi", "0;$a + $0", "0;(T)((U)$a + (U)$0)"},
    {"aten::prod.dim_int", kReduce, "T:T", "fi", "1;$a * $0", "1;(T)((U64)$a * (U64)$0)"},
    {"aten::amax", kReduce, "T:T", "fib", "LOWEST;$0 > $a || $0 != $0 ? $0 : $a", "LOWEST;$0 > $a ? $0 : $a", "0;(T)($a | $0)"},
    {"aten::argmax", kArgmax, "T:i", "fib", "$0 > $a || ($0 != $0 && $a == $a)", "$0 > $a", "$0 > $a"},
    // kernels of their own
    {"aten::cumsum", kScan, "T:T", "fi", "0;$a + $0", "0;(T)((U)$a + (U)$0)"},
    {"aten::scatter.src", kScatter, "TiT:T", "fibhq"},
    {"aten::scatter_add", kScatterAdd, "TiT:T", "fib", "$0 + $1", "(T)((U)$0 + (U)$1)", "(T)($0 | $1)"},
    {"aten::as_strided_scatter", kStridedScatter, "TT:T", "fibhq"},
    {"aten::sort.stable", kSort, "T:Ti", "fib"},
    // of a device with kernels for it, see attention.h
    {"aten::_scaled_dot_product_flash_attention_for_cpu", kAttention, {}, {}},
    {"aten::_scaled_dot_product_flash_attention_for_cpu_backward", kAttention, {}, {}},
    {"aten::bmm", kProduct, "TT:T", "fi", "0;$a + $0", "0;(T)((U)$a + (U)$0)"},
    {"aten::convolution", kConvolution, "TT-:T", "fih"},
    // of a device with a library for it, see library_convolution.h
    {"aten::convolution_backward", kConvolutionBackward, "TTT:TTT", "fh"},
    // likewise, see scaled_product.h
    {.name = "aten::_scaled_mm",
     .kind = kScaledProduct,
     .types = {},
     .dtypes = {},
     .operands = "T:self T:mat2 T:scale_a T:scale_b T?:bias T?:scale_result D?:out_dtype B:use_fast_accum"},
    // likewise, see collective.h
    {.name = "ltc_c10d::all_reduce", .kind = kCollective, .types = {}, .dtypes = {}, .operands = kReductionOperands},
    {.name = "ltc_c10d::reduce_scatter", .kind = kCollective, .types = {}, .dtypes = {}, .operands = kReductionOperands},
    {.name = "ltc_c10d::broadcast",
     .kind = kCollective,
     .types = {},
     .dtypes = {},
     .operands = "T:input T?:after I:root I:group"},
    {.name = "ltc_c10d::all_gather",
     .kind = kCollective,
     .types = {},
     .dtypes = {},
     .operands = "T:input T?:after I:ranks I:group"},
    {.name = "ltc_c10d::all_to_all",
     .kind = kCollective,
     .types = {},
     .dtypes = {},
     .operands = "T:input T?:after I*:to I*:from_ I:group"},
};

}  // namespace

std::span<const OpRow> op_table() { return kOps; }

const OpRow* find_op(std::string_view name) {
  static const auto rows = [] {
    std::unordered_map<std::string_view, const OpRow*> by_name;
    for (const OpRow& row : kOps) by_name.emplace(row.name, &row);
    return by_name;
  }();
  const auto row = rows.find(name);
  return row == rows.end() ? nullptr : row->second;
}

std::string_view formula(const OpRow& row, ltc_dtype dtype) {
  return is_float(dtype) ? row.floats : is_integer(dtype) ? row.integers : dtype == LTC_BOOL ? row.bools : std::string_view{};
}

}  // namespace ltc::kernels
