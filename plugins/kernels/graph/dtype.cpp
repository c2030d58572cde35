#include "kernels/graph/dtype.h"

#include <iterator>

namespace ltc::kernels {
namespace {

constexpr DTypeFacts kFacts[] = {
    {},
    {"u8", "u8", 1, false, false},    // BOOL
    {"u8", "u8", 1, false, true},     // U8
    {"i8", "u8", 1, false, true},     // I8
    {"i16", "u16", 2, false, true},   // I16
    {"i32", "u32", 4, false, true},   // I32
    {"i64", "u64", 8, false, true},   // I64
    {"u16", "u16", 2, false, false},  // F16
    {"u16", "u16", 2, false, false},  // BF16
    {"f32", "u32", 4, true, false},   // F32
    {"f64", "u64", 8, true, false},   // F64
    {"i64", "u64", 8, false, false},  // C64
    {},                               // C128
    {},                               // U16
    {},                               // U32
    {},                               // U64
    {},                               // C32
    {"u8", "u8", 1, false, false},    // F8_E4M3FN
    {"u8", "u8", 1, false, false},    // F8_E5M2
};

constexpr int16_t kBits[] = {0, 8, 8, 8, 16, 32, 64, 16, 16, 32, 64, 64, 128, 16, 32, 64, 32, 8, 8, 8, 8, 8, 4, 4, 4};

}  // namespace

const DTypeFacts& facts(ltc_dtype dtype) { return kFacts[dtype < std::size(kFacts) ? dtype : 0]; }
int bits_of(ltc_dtype dtype) { return dtype < std::size(kBits) ? kBits[dtype] : 0; }

}  // namespace ltc::kernels
