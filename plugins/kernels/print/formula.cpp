#include "kernels/print/formula.h"

#include <cctype>
#include <cmath>
#include <cstdio>

#include "kernels/graph/dtype.h"

namespace ltc::kernels {
namespace {

std::string lowest(ltc_dtype dtype) {
  switch (dtype) {
    case LTC_I8: return "-128";
    case LTC_I16: return "-32768";
    case LTC_I32: return "(-2147483647 - 1)";
    case LTC_I64: return "(-9223372036854775807L - 1)";
    default: return is_float(dtype) ? "-INFINITY" : "0";
  }
}

std::string word_text(std::string_view word, ltc_dtype dtype, bool in_lanes) {
  if (word == "T") return in_lanes && dtype == LTC_F32 ? "float16" : std::string(facts(dtype).name);
  if (word == "U") return std::string(facts(dtype).unsigned_);
  if (word == "U64") return "u64";
  if (word == "BITS") return std::to_string(8 * facts(dtype).bytes);
  if (word == "LOWEST") return lowest(dtype);
  return std::string(word);
}

std::string function_text(std::string_view name, ltc_dtype dtype, const Dialect& dialect, bool in_lanes) {
  const std::string type = std::string(facts(dtype).name) + (in_lanes ? "x16" : "");
  const bool ours = dtype == LTC_F32 && is_in_maths(name, dialect);
  if (ours || is_own_function(name, is_float(dtype))) return "ltc_" + std::string(name) + "_" + type;
  return std::string(name) + (dialect.suffixed && dtype == LTC_F32 ? "f" : "");
}

bool in_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

size_t word_end(std::string_view text, size_t at) {
  while (at < text.size() && in_word(text[at])) ++at;
  return at;
}

}  // namespace

std::string expand(std::string_view formula, ltc_dtype dtype, std::span<const std::string> args, const Dialect& dialect,
                   bool in_lanes) {
  std::string text;
  for (size_t i = 0; i < formula.size();) {
    if (formula[i] == '$') {
      text += formula[i + 1] == 'a' ? args.back() : args[static_cast<size_t>(formula[i + 1] - '0')];
      i += 2;
    } else if (formula[i] == '@') {
      const size_t end = word_end(formula, i + 1);
      text += function_text(formula.substr(i + 1, end - i - 1), dtype, dialect, in_lanes);
      i = end;
    } else if (in_word(formula[i])) {
      const size_t end = word_end(formula, i);
      text += word_text(formula.substr(i, end - i), dtype, in_lanes);
      i = end;
    } else {
      text += formula[i++];
    }
  }
  return text;
}

// The functions' name of a type that kernels hold as its bits; empty: they compute with it.
static std::string_view held_as_bits(ltc_dtype dtype) {
  switch (dtype) {
    case LTC_F16: return "f16";
    case LTC_BF16: return "bf16";
    case LTC_F8_E4M3FN: return "f8e4m3fn";
    case LTC_F8_E5M2: return "f8e5m2";
    default: return {};
  }
}

std::string cast_text(const std::string& value, ltc_dtype from, ltc_dtype to) {
  const std::string type(facts(to).name), source(facts(from).name);
  if (const std::string held(held_as_bits(from)); !held.empty()) {
    const std::string wide = "ltc_" + held + "_to_f32(" + value + ")";
    return to == LTC_F32 ? wide : cast_text(wide, LTC_F32, to);
  }
  if (const std::string held(held_as_bits(to)); !held.empty()) {
    return "ltc_f32_to_" + held + "(" + cast_text(value, from, LTC_F32) + ")";
  }
  if (from == to) return value;
  if (to == LTC_BOOL) return "(u8)(" + value + " != 0)";
  if (is_float(from) && is_integer(to)) {
    return to == LTC_I64 ? "ltc_to_i64_" + source + "(" + value + ")" : "(" + type + ")ltc_to_i32_" + source + "(" + value + ")";
  }
  return "(" + type + ")" + value;
}

std::string bits_text(const std::string& value, ltc_dtype from, ltc_dtype to) {
  const std::string bits = is_float(from)
                               ? std::string(facts(from).unsigned_) + "_of_" + std::string(facts(from).name) + "(" + value + ")"
                               : "(" + std::string(facts(to).unsigned_) + ")" + value;
  if (is_float(to)) return std::string(facts(to).name) + "_of_" + std::string(facts(to).unsigned_) + "(" + bits + ")";
  return "(" + std::string(facts(to).name) + ")" + bits;
}

std::string real_text(double value, ltc_dtype dtype) {
  if (std::isnan(value)) return "NAN";
  if (std::isinf(value)) return value < 0 ? "-INFINITY" : "INFINITY";
  char text[64];
  std::snprintf(text, sizeof text, "%a%s", value, dtype == LTC_F32 ? "f" : "");
  return text;
}

std::string integer_text(int64_t value) {
  if (value == INT64_MIN) return "(-9223372036854775807L - 1)";
  return std::to_string(value) + (value > INT32_MAX || value < INT32_MIN ? "L" : "");
}

}  // namespace ltc::kernels
