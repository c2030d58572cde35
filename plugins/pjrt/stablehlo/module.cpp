#include "pjrt/stablehlo/module.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <iterator>

namespace ltc::pjrt {
namespace {

struct Element {
  ltc_dtype dtype;
  const char* text;
  int bits;
  char kind;  // b, u, i, f (computed with), q (8 bits), c
};
constexpr Element kElements[] = {
    {LTC_BOOL, "i1", 8, 'b'},
    {LTC_U8, "ui8", 8, 'u'},
    {LTC_I8, "i8", 8, 'i'},
    {LTC_I16, "i16", 16, 'i'},
    {LTC_I32, "i32", 32, 'i'},
    {LTC_I64, "i64", 64, 'i'},
    {LTC_F16, "f16", 16, 'f'},
    {LTC_BF16, "bf16", 16, 'f'},
    {LTC_F32, "f32", 32, 'f'},
    {LTC_F64, "f64", 64, 'f'},
    {LTC_C64, "complex<f32>", 64, 'c'},
    {LTC_C128, "complex<f64>", 128, 'c'},
    {LTC_U16, "ui16", 16, 'u'},
    {LTC_U32, "ui32", 32, 'u'},
    {LTC_U64, "ui64", 64, 'u'},
    {LTC_F8_E4M3FN, "f8E4M3FN", 8, 'q'},
    {LTC_F8_E5M2, "f8E5M2", 8, 'q'},
    {LTC_F8_E4M3FNUZ, "f8E4M3FNUZ", 8, 'q'},
    {LTC_F8_E5M2FNUZ, "f8E5M2FNUZ", 8, 'q'},
    {LTC_F8_E8M0FNU, "f8E8M0FNU", 8, 'q'},
};

const Element* find_element(ltc_dtype dtype) {
  const auto found = std::ranges::find(kElements, dtype, &Element::dtype);
  return found == std::end(kElements) ? nullptr : found;
}
bool is_kind(ltc_dtype dtype, char kind) {
  const Element* element = find_element(dtype);
  return element && element->kind == kind;
}

// The bits of a number as a literal of a float type.
std::string hex(uint64_t bits) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llX", static_cast<unsigned long long>(bits));
  return text;
}

std::string infinity(ltc_dtype dtype, bool negative) {
  const uint64_t exponent = dtype == LTC_F64    ? 0x7FF0'0000'0000'0000
                            : dtype == LTC_F32  ? 0x7F80'0000
                            : dtype == LTC_BF16 ? 0x7F80
                                                : 0x7C00;
  return hex(exponent | uint64_t{negative} << (bits_of(dtype) - 1));
}

template <typename Items, typename Text>
std::string joined(const Items& items, Text text) {
  std::string all;
  for (const auto& item : items) (all += all.empty() ? "" : ", ") += text(item);
  return all;
}

}  // namespace

int64_t Type::count() const {
  int64_t count = 1;
  for (const int64_t size : sizes) count *= size;
  return count;
}

std::string Type::text() const {
  std::string text = "tensor<";
  for (const int64_t size : sizes) (text += std::to_string(size)) += 'x';
  return (text += element_text(dtype)) += '>';
}

const char* element_text(ltc_dtype dtype) {
  const Element* element = find_element(dtype);
  return element ? element->text : nullptr;
}
bool is_float(ltc_dtype dtype) { return is_kind(dtype, 'f'); }
bool is_unsigned(ltc_dtype dtype) { return is_kind(dtype, 'u'); }
int64_t bits_of(ltc_dtype dtype) {
  const Element* element = find_element(dtype);
  return element ? element->bits : 0;
}

std::string list(const Sizes& numbers) {
  return joined(numbers, [](int64_t number) { return std::to_string(number); });
}
std::string array(const Sizes& numbers) { return numbers.empty() ? "array<i64>" : "array<i64: " + list(numbers) + ">"; }

Values Module::emit(std::string_view name, const Values& operands, const std::vector<Type>& results, std::string_view attrs,
                    std::string_view region) {
  const std::string result = "%" + std::to_string(next_++);
  text_ += "    " + result;
  if (results.size() > 1) text_ += ":" + std::to_string(results.size());
  text_ += " = \"";
  if (name.find('.') == name.npos) text_ += "stablehlo.";
  text_ += name;
  text_ += "\"(" + joined(operands, [](const Value& value) { return value.name; }) + ")";
  if (!region.empty()) (text_ += " ") += region;
  if (!attrs.empty()) ((text_ += " {") += attrs) += "}";
  text_ += " : (" + joined(operands, [](const Value& value) { return value.type.text(); }) + ") -> ";
  const std::string types = joined(results, [](const Type& type) { return type.text(); });
  text_ += results.size() == 1 ? types : "(" + types + ")";
  text_ += location_ + "\n";
  Values values;
  for (size_t i = 0; i < results.size(); ++i) {
    values.push_back({results.size() == 1 ? result : result + "#" + std::to_string(i), results[i]});
  }
  return values;
}

std::string Module::joining(std::string_view op, ltc_dtype dtype) {
  const std::string prefix = new_prefix(), type = Type{dtype, {}}.text(), a = prefix + "a", b = prefix + "b", c = prefix + "c";
  std::string text = "({ ^bb0(" + a + ": " + type + ", " + b + ": " + type + "): ";
  if (!op.empty()) {
    text += c + " = \"stablehlo." + std::string(op) + "\"(" + a + ", " + b + ") : (" + type + ", " + type + ") -> " + type + " ";
  }
  return text + "\"stablehlo.return\"(" + (op.empty() ? b : c) + ") : (" + type + ") -> () })";
}

Value Module::constant(const Type& type, std::string_view element) {
  return op("constant", {}, type, "value = dense<" + std::string(element) + "> : " + type.text());
}

Value Module::number(ltc_dtype dtype, int64_t value) {
  std::string text = std::to_string(value);
  if (dtype == LTC_BOOL) text = value ? "true" : "false";
  if (is_float(dtype) || is_kind(dtype, 'q')) text += ".0";
  if (is_kind(dtype, 'c')) text = "(" + text + ".0, 0.0)";
  return constant({dtype, {}}, text);
}

Value Module::real(double value) { return constant({LTC_F64, {}}, hex(std::bit_cast<uint64_t>(value))); }

Value Module::least(ltc_dtype dtype) {
  if (is_float(dtype)) return constant({dtype, {}}, infinity(dtype, true));
  return number(dtype, is_kind(dtype, 'i') ? INT64_MIN >> (64 - bits_of(dtype)) : 0);
}
Value Module::greatest(ltc_dtype dtype) {
  if (is_float(dtype)) return constant({dtype, {}}, infinity(dtype, false));
  return number(dtype, dtype == LTC_BOOL ? 1 : INT64_MAX >> (64 - bits_of(dtype) - is_unsigned(dtype)));
}

Value Module::filled(const Type& type, int64_t value) { return broadcast(number(type.dtype, value), type.sizes); }

Value Module::broadcast(const Value& value, const Sizes& sizes) {
  if (value.type.sizes == sizes) return value;
  Sizes dims;
  for (size_t i = sizes.size() - value.type.sizes.size(); i < sizes.size(); ++i) dims.push_back(static_cast<int64_t>(i));
  return op("broadcast_in_dim", {value}, {value.type.dtype, sizes}, "broadcast_dimensions = " + array(dims));
}

Value Module::reshape(const Value& value, const Sizes& sizes) {
  return value.type.sizes == sizes ? value : op("reshape", {value}, {value.type.dtype, sizes});
}

Value Module::iota(ltc_dtype dtype, const Sizes& sizes, int64_t dim) {
  return op("iota", {}, {dtype, sizes}, "iota_dimension = " + std::to_string(dim) + " : i64");
}

Value Module::slice(const Value& value, const Sizes& start, const Sizes& limit, const Sizes& step) {
  Type type = value.type;
  for (size_t i = 0; i < start.size(); ++i) type.sizes[i] = (limit[i] - start[i] + step[i] - 1) / step[i];
  return op("slice", {value}, type,
            "start_indices = " + array(start) + ", limit_indices = " + array(limit) + ", strides = " + array(step));
}

Value Module::pad(const Value& value, const Value& with, const Sizes& low, const Sizes& high) {
  Type type = value.type;
  for (size_t i = 0; i < low.size(); ++i) type.sizes[i] += low[i] + high[i];
  return op("pad", {value, with}, type,
            "edge_padding_low = " + array(low) + ", edge_padding_high = " + array(high) +
                ", interior_padding = " + array(Sizes(low.size(), 0)));
}

Value Module::compare(const Value& a, const Value& b, std::string_view direction) {
  return op("compare", {a, b}, {LTC_BOOL, a.type.sizes},
            "comparison_direction = #stablehlo<comparison_direction " + std::string(direction) + ">");
}

Value Module::convert(const Value& value, ltc_dtype dtype) {
  return value.type.dtype == dtype ? value : op("convert", {value}, {dtype, value.type.sizes});
}

Value Module::bitcast(const Value& value, ltc_dtype dtype) {
  return value.type.dtype == dtype ? value : op("bitcast_convert", {value}, {dtype, value.type.sizes});
}

Value Module::reduce(const Value& value, const Sizes& dims, std::string_view name, const Value& initial) {
  Type type{value.type.dtype, {}};
  for (int64_t dim = 0; dim < value.type.rank(); ++dim) {
    if (std::ranges::find(dims, dim) == dims.end()) type.sizes.push_back(value.type.sizes[static_cast<size_t>(dim)]);
  }
  return op("reduce", {value, initial}, type, "dimensions = " + array(dims), joining(name, value.type.dtype));
}

}  // namespace ltc::pjrt
