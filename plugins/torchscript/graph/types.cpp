#include "torchscript/graph/types.h"

#include <c10/util/StringUtil.h>

#include "torchscript/graph/errors.h"

namespace ltc::torchscript {
namespace {

struct Pair {
  ltc_dtype dtype;
  at::ScalarType torch;
};

constexpr Pair kPairs[] = {
    {LTC_BOOL, at::kBool},
    {LTC_U8, at::kByte},
    {LTC_I8, at::kChar},
    {LTC_I16, at::kShort},
    {LTC_I32, at::kInt},
    {LTC_I64, at::kLong},
    {LTC_F16, at::kHalf},
    {LTC_BF16, at::kBFloat16},
    {LTC_F32, at::kFloat},
    {LTC_F64, at::kDouble},
    {LTC_C64, at::kComplexFloat},
    {LTC_C128, at::kComplexDouble},
    {LTC_U16, at::kUInt16},
    {LTC_U32, at::kUInt32},
    {LTC_U64, at::kUInt64},
    {LTC_C32, at::kComplexHalf},
    {LTC_F8_E4M3FN, at::kFloat8_e4m3fn},
    {LTC_F8_E5M2, at::kFloat8_e5m2},
    {LTC_F8_E4M3FNUZ, at::kFloat8_e4m3fnuz},
    {LTC_F8_E5M2FNUZ, at::kFloat8_e5m2fnuz},
    {LTC_F8_E8M0FNU, at::kFloat8_e8m0fnu},
    {LTC_F4_E2M1FN_X2, at::ScalarType::Float4_e2m1fn_x2},
};

}  // namespace

at::ScalarType to_torch(ltc_dtype dtype) {
  for (const Pair& pair : kPairs) {
    if (pair.dtype == dtype) return pair.torch;
  }
  throw Failure(LTC_UNSUPPORTED, c10::str("ATen has no element type for ltc dtype ", dtype));
}

uint64_t supported_dtypes() {
  uint64_t bits = 0;
  for (const Pair& pair : kPairs) bits |= uint64_t{1} << pair.dtype;
  return bits;
}

}  // namespace ltc::torchscript
