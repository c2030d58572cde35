// Functions that no dialect has, or each with other special cases, written once in the common subset of all.
#include <algorithm>
#include <string>
#include <vector>

#include "kernels/graph/dtype.h"
#include "kernels/print/dialect.h"
#include "kernels/print/formula.h"
#include "kernels/print/maths_text.h"

namespace ltc::kernels {
namespace {

// One for each type of the class: T, U and the like stand for the type's names, as in formulas.
struct Generic {
  std::string_view name;
  bool floats;
  std::string_view arguments, body;
};

constexpr Generic kGenerics[] = {
    {"remainder", true, "T x, T y", "const T r = @fmod(x, y); return r != 0 && (r < 0) != (y < 0) ? r + y : r;"},
    // The first has no answer, the second traps for the least integer.
    {"remainder", false, "T x, T y",
     "const i64 a = x, b = y; if (b == 0 || b == -1) return 0; const i64 r = a % b; "
     "return (T)(r != 0 && (r < 0) != (b < 0) ? r + b : r);"},
    {"fmod", false, "T x, T y", "const i64 a = x, b = y; return (T)(b == 0 || b == -1 ? 0 : a % b);"},
    {"pow", false, "T x, T y",
     "i64 n = y; u64 f = (u64)x, p = 1; if (n < 0) return (T)(x == 1 ? 1 : (i64)x == -1 ? (n % 2 ? -1 : 1) : 0); "
     "for (; n > 0; n /= 2, f *= f) if (n % 2) p *= f; return (T)p;"},
    // Out of range and NaN: the least integer of 32 or 64 bits.
    {"to_i64", true, "T x", "return x >= (T)-0x1p63f && x < (T)0x1p63f ? (i64)x : (i64)((u64)1 << 63);"},
    {"to_i32", true, "T x", "return (i32)@to_i64(x >= (T)-0x1p31f && x < (T)0x1p31f ? x : (T)-0x1p31f);"},
};

constexpr OwnFunction kPlain[] = {
    {"ltc_f16_to_f32",
     "FN f32 ltc_f16_to_f32(u16 x) {\n"
     "  const u32 sign = (u32)(x & 0x8000) << 16, magnitude = x & 0x7fff;\n"
     "  if (magnitude >= 0x7c00) return f32_of_u32(sign | 0x7f800000u | (magnitude & 0x3ff) << 13);\n"
     "  return f32_of_u32(u32_of_f32(f32_of_u32(magnitude << 13) * 0x1p112f) | sign);\n"
     "}\n"},
    // Below the least normal number, adding 0.5 moves the last bit that is kept to the end of the float.
    {"ltc_f32_to_f16",
     "FN u16 ltc_f32_to_f16(f32 x) {\n"
     "  const u32 bits = u32_of_f32(x), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;\n"
     "  if (magnitude > 0x7f800000) return (u16)(sign | 0x7e00);\n"
     "  if (magnitude >= 0x477ff000) return (u16)(sign | 0x7c00);\n"
     "  if (magnitude < 0x38800000) return (u16)(sign | (u32_of_f32(f32_of_u32(magnitude) + 0.5f) - 0x3f000000u));\n"
     "  return (u16)(sign | ((magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1)) >> 13));\n"
     "}\n"},
    {"ltc_bf16_to_f32", "FN f32 ltc_bf16_to_f32(u16 x) { return f32_of_u32((u32)x << 16); }\n"},
    {"ltc_f32_to_bf16",
     "FN u16 ltc_f32_to_bf16(f32 x) {\n"
     "  const u32 bits = u32_of_f32(x);\n"
     "  return x != x ? 0x7fc0 : (u16)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);\n"
     "}\n"},
    // An F16 without the last 8 bits of its fraction.
    {"ltc_f8e5m2_to_f32", "FN f32 ltc_f8e5m2_to_f32(u8 x) { return ltc_f16_to_f32((u16)(x << 8)); }\n"},
    {"ltc_f32_to_f8e5m2",
     "FN u8 ltc_f32_to_f8e5m2(f32 x) {\n"
     "  const u32 bits = u32_of_f32(x), sign = bits >> 24 & 0x80, magnitude = bits & 0x7fffffff;\n"
     "  if (magnitude > 0x7f800000) return (u8)(sign | 0x7f);\n"
     "  if (magnitude >= 0x47800000) return (u8)(sign | 0x7c);\n"
     "  if (magnitude < 0x38800000) return (u8)(sign | (u32_of_f32(f32_of_u32(magnitude) + 128.0f) - 0x43000000u));\n"
     "  return (u8)(sign | ((magnitude - 0x38000000 + 0xfffff + (magnitude >> 21 & 1)) >> 21));\n"
     "}\n"},
    // Without infinities: what is larger than all becomes the largest. NaN has one pattern.
    {"ltc_f8e4m3fn_to_f32",
     "FN f32 ltc_f8e4m3fn_to_f32(u8 x) {\n"
     "  const u32 sign = (u32)(x & 0x80) << 24, magnitude = x & 0x7f;\n"
     "  if (magnitude == 0x7f) return f32_of_u32(sign | 0x7fc00000u);\n"
     "  return f32_of_u32(u32_of_f32(f32_of_u32(magnitude << 20) * 0x1p120f) | sign);\n"
     "}\n"},
    {"ltc_f32_to_f8e4m3fn",
     "FN u8 ltc_f32_to_f8e4m3fn(f32 x) {\n"
     "  const u32 bits = u32_of_f32(x), sign = bits >> 24 & 0x80, magnitude = bits & 0x7fffffff;\n"
     "  if (magnitude > 0x7f800000) return (u8)(sign | 0x7f);\n"
     "  if (magnitude >= 0x43e00000) return (u8)(sign | 0x7e);\n"
     "  if (magnitude < 0x3c800000) return (u8)(sign | (u32_of_f32(f32_of_u32(magnitude) + 16384.0f) - 0x46800000u));\n"
     "  return (u8)(sign | ((magnitude - 0x3c000000 + 0x7ffff + (magnitude >> 20 & 1)) >> 20));\n"
     "}\n"},
    // Word i of Philox4x32-10's stream; see ltc/plugin.h.
    {"ltc_philox_u32",
     "FN u32 ltc_philox_u32(i64 seed, i64 offset, i64 i) {\n"
     "  const u64 c = (u64)offset + (u64)i / 4;\n"
     "  u32 x0 = (u32)c, x1 = (u32)(c >> 32), x2 = 0, x3 = 0, k0 = (u32)(u64)seed, k1 = (u32)((u64)seed >> 32);\n"
     "  for (i32 round = 0; round < 10; ++round) {\n"
     "    const u64 a = (u64)0xD2511F53u * x0, b = (u64)0xCD9E8D57u * x2;\n"
     "    x0 = (u32)(b >> 32) ^ x1 ^ k0;\n"
     "    x2 = (u32)(a >> 32) ^ x3 ^ k1;\n"
     "    x1 = (u32)b;\n"
     "    x3 = (u32)a;\n"
     "    k0 += 0x9E3779B9u;\n"
     "    k1 += 0xBB67AE85u;\n"
     "  }\n"
     "  return i % 4 == 0 ? x0 : i % 4 == 1 ? x1 : i % 4 == 2 ? x2 : x3;\n"
     "}\n"},
    {"ltc_philox_i32", "FN i32 ltc_philox_i32(i64 seed, i64 offset, i64 i) { return (i32)ltc_philox_u32(seed, offset, i); }\n"},
    {"ltc_philox_f32",
     "FN f32 ltc_philox_f32(i64 seed, i64 offset, i64 i) { return (f32)(ltc_philox_u32(seed, offset, i) >> 8) * 0x1p-24f; }\n"},
    {"ltc_philox_u64",
     "FN u64 ltc_philox_u64(i64 seed, i64 offset, i64 i) {\n"
     "  return (u64)ltc_philox_u32(seed, offset, 2 * i + 1) << 32 | ltc_philox_u32(seed, offset, 2 * i);\n"
     "}\n"},
    {"ltc_philox_i64", "FN i64 ltc_philox_i64(i64 seed, i64 offset, i64 i) { return (i64)ltc_philox_u64(seed, offset, i); }\n"},
    {"ltc_philox_f64",
     "FN f64 ltc_philox_f64(i64 seed, i64 offset, i64 i) { return (f64)(ltc_philox_u64(seed, offset, i) >> 11) * 0x1p-53; }\n"},
};

struct Function {
  std::string name, text;
};

std::string instance(const Generic& generic, ltc_dtype dtype, const Dialect& dialect) {
  const std::string type(facts(dtype).name);
  const std::string result = generic.name == "to_i64" ? "i64" : generic.name == "to_i32" ? "i32" : type;
  return "FN " + result + " ltc_" + std::string(generic.name) + "_" + type + "(" + expand(generic.arguments, dtype, {}, dialect) +
         ") { " + expand(generic.body, dtype, {}, dialect) + " }\n";
}

std::vector<Function> all_functions(const Dialect& dialect) {
  std::vector<Function> functions;
  const auto add = [&](const OwnFunction& own) { functions.push_back({std::string(own.name), std::string(own.text)}); };
  std::ranges::for_each(kPlain, add);
  if (dialect.functions) std::ranges::for_each(dialect.functions(), add);
  for (const Generic& generic : kGenerics) {
    for (const ltc_dtype dtype : {LTC_U8, LTC_I8, LTC_I16, LTC_I32, LTC_I64, LTC_F32, LTC_F64}) {
      if (is_float(dtype) != generic.floats) continue;
      const std::string name = "ltc_" + std::string(generic.name) + "_" + std::string(facts(dtype).name) + "(";
      functions.push_back({name, instance(generic, dtype, dialect)});
    }
  }
  return functions;
}

bool contains(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

std::string call_of(std::string_view name) { return "NAME(" + std::string(name) + ")("; }

// maths.h without the functions that neither `called` nor one that stays calls; a function calls only those before it.
std::string maths_with(std::string called) {
  constexpr std::string_view kBegin = "static inline F NAME(", kEnd = "\n}\n";
  std::string_view left = kMathsText;
  std::string kept;
  for (size_t begin; (begin = left.rfind(kBegin)) != left.npos; left = left.substr(0, begin)) {
    const size_t name = begin + kBegin.size(), end = left.find(kEnd, begin) + kEnd.size();
    const std::string_view function = left.substr(begin, end - begin);
    kept = std::string(left.substr(end)) + kept;
    if (!contains(called, call_of(left.substr(name, left.find(')', name) - name)))) continue;
    kept = std::string(function) + kept;
    called += function.substr(kBegin.size());
  }
  return std::string(left) + kept;
}

}  // namespace

bool is_own_function(std::string_view name, bool floats) {
  return std::ranges::any_of(kGenerics, [&](const Generic& g) { return g.name == name && g.floats == floats; });
}

bool is_in_maths(std::string_view name, const Dialect& dialect) { return std::ranges::count(dialect.maths, name) > 0; }

std::string maths_for(std::string_view text, const Dialect& dialect) {
  std::string maths;
  for (const MathsForm& form : dialect.maths_forms) {
    std::string called;
    for (const std::string_view name : dialect.maths) {
      if (contains(text, "ltc_" + std::string(name) + "_" + std::string(form.type) + "(")) called += call_of(name);
    }
    if (!called.empty()) maths += std::string(form.definitions) + maths_with(called);
  }
  return maths;
}

std::string functions_for(std::string_view text, const Dialect& dialect) {
  const auto functions = all_functions(dialect);
  std::string needed;
  // A function calls only those before it in the tables.
  for (size_t i = functions.size(); i-- > 0;) {
    const bool called = text.find(functions[i].name) != text.npos || needed.find(functions[i].name) != needed.npos;
    if (called) needed = functions[i].text + needed;
  }
  return needed;
}

}  // namespace ltc::kernels
