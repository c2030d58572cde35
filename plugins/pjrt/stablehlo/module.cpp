#include "pjrt/stablehlo/module.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <optional>

namespace ltc::pjrt {
namespace {

// By dtype. A dtype that PJRT lacks is only held, as integers of its size.
#define TYPE(name) PJRT_Buffer_Type_##name
constexpr Element kElements[] = {
    {},
    {"i1", 8, "b", TYPE(PRED)},
    {"ui8", 8, "ui", TYPE(U8)},
    {"i8", 8, "i", TYPE(S8)},
    {"i16", 16, "i", TYPE(S16)},
    {"i32", 32, "iw", TYPE(S32)},
    {"i64", 64, "iw", TYPE(S64)},
    {"f16", 16, "h", TYPE(F16)},
    {"bf16", 16, "h", TYPE(BF16)},
    {"f32", 32, "f", TYPE(F32)},
    {"f64", 64, "f", TYPE(F64)},
    {"complex<f32>", 64, "c", TYPE(C64)},
    {"complex<f64>", 128, "z", TYPE(C128)},
    {"ui16", 16, "u", TYPE(U16)},
    {"ui32", 32, "u", TYPE(U32)},
    {"ui64", 64, "u", TYPE(U64)},
    {"ui32", 32, "", TYPE(U32)},
    {"f8E4M3FN", 8, "q", TYPE(F8E4M3FN)},
    {"f8E5M2", 8, "q", TYPE(F8E5M2)},
    {"f8E4M3FNUZ", 8, "q", TYPE(F8E4M3FNUZ)},
    {"f8E5M2FNUZ", 8, "q", TYPE(F8E5M2FNUZ)},
    {"f8E8M0FNU", 8, "q", TYPE(F8E8M0FNU)},
    {"ui8", 8, "", TYPE(U8)},
    {"ui8", 8, "", TYPE(U8)},
    {"ui8", 8, "", TYPE(U8)},
};
#undef TYPE

template <typename Items, typename Text>
std::string joined(const Items& items, Text text) {
  std::string all;
  for (const auto& item : items) (all += all.empty() ? "" : ", ") += std::invoke(text, item);
  return all;
}

}  // namespace

const Element& element(ltc_dtype dtype) { return kElements[dtype < std::size(kElements) ? dtype : 0]; }

int64_t Type::count() const {
  int64_t count = 1;
  bool overflows = false;
  for (const int64_t size : sizes) overflows |= __builtin_mul_overflow(count, size, &count);
  return overflows ? INT64_MAX : count;
}

std::string Type::text() const {
  std::string text = "tensor<";
  for (const int64_t size : sizes) (text += std::to_string(size)) += 'x';
  const char* name = element(dtype).text;
  return (text += name ? name : "?") += '>';
}

std::string names(const Values& values) { return joined(values, &Value::name); }
std::string types(const Values& values) {
  return joined(values, [](const Value& value) { return value.type.text(); });
}
std::string array(const Sizes& numbers) {
  const std::string list = joined(numbers, [](int64_t number) { return std::to_string(number); });
  return list.empty() ? "array<i64>" : "array<i64: " + list + ">";
}
std::string axis(const char* name, int64_t dim) { return std::string(name) + " = " + std::to_string(dim) + " : i64"; }

Values Module::emit(std::string_view name, const Values& operands, const std::vector<Type>& results, std::string_view attrs,
                    std::string_view region) {
  const std::string result = new_name(), prefix = name.find('.') == name.npos ? "stablehlo." : "";
  Values values;
  for (const Type& type : results) values.push_back({result, type});
  text_ += "    " + result + (results.size() > 1 ? ":" + std::to_string(results.size()) : "") + " = \"" + prefix;
  ((text_ += name) += "\"(") += names(operands) + ") ";
  if (!region.empty()) (text_ += region) += ' ';
  if (!attrs.empty()) ((text_ += '{') += attrs) += "} ";
  text_ += ": (" + types(operands) + ") -> (" + types(values) + ")" + location_ + "\n";
  for (size_t i = 0; results.size() > 1 && i < results.size(); ++i) values[i].name += "#" + std::to_string(i);
  return values;
}

// ---- formulas

struct Module::Term {
  std::optional<Value> value;  // nothing for a number
  int64_t number = 0;
};

Module::Term Module::term(std::string_view& text, const Values& operands) {
  int64_t number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failed == std::errc()) {
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    return {{}, number};
  }
  const size_t size = std::min(text.find_first_of("(),"), text.size());
  const std::string_view name = text.substr(0, size);
  text.remove_prefix(size);
  if (!text.starts_with('(')) return {operands.at(std::string_view("xyzw").find(name)), 0};
  std::vector<Term> terms;
  while (!text.starts_with(')')) {
    text.remove_prefix(1);
    terms.push_back(term(text, operands));
  }
  text.remove_prefix(1);
  const Value beside = std::find_if(terms.rbegin(), terms.rend(), [](const Term& term) { return term.value; })->value.value();
  Values values;
  for (const Term& term : terms) values.push_back(term.value ? *term.value : filled(beside.type, term.number));
  const Type& first = values[0].type;
  const auto to = std::ranges::find_if(kElements, [&](const Element& element) { return element.text && element.text == name; });
  if (name == "top") return {{}, element(first.dtype).bits - 1};
  if (name == "T") return {convert(values[0], operands[0].type.dtype), 0};
  if (to != std::end(kElements)) return {convert(values[0], static_cast<ltc_dtype>(to - kElements)), 0};
  if (name[0] >= 'A' && name[0] <= 'Z') {
    return {op("compare", values, {LTC_BOOL, first.sizes},
               "comparison_direction = #stablehlo<comparison_direction " + std::string(name) + ">"),
            0};
  }
  return {op(name, values, name == "select" ? values[1].type : first), 0};
}

Value Module::eval(std::string_view formula, Values operands) {
  while (true) {
    const size_t end = formula.find(';');
    std::string_view text = formula.substr(0, end);
    operands.push_back(term(text, operands).value.value());
    if (end == formula.npos) return operands.back();
    formula.remove_prefix(end + 1);
  }
}

std::string Module::region(const std::vector<ltc_dtype>& dtypes, std::string_view formula) {
  Values arguments;
  for (const ltc_dtype dtype : dtypes) arguments.push_back({new_name(), {dtype, {}}});
  std::string outside = std::move(text_);
  text_ = "({ ^bb0(" + joined(arguments, [](const Value& value) { return value.name + ": " + value.type.text(); }) + "):\n";
  const Value result = eval(formula, arguments);
  text_ += "    \"stablehlo.return\"(" + result.name + ") : (" + result.type.text() + ") -> () })";
  outside.swap(text_);
  return outside;
}

// ---- single ops

Value Module::constant(const Type& type, std::string_view text) {
  return op("constant", {}, type, "value = dense<" + std::string(text) + "> : " + type.text());
}

Value Module::number(ltc_dtype dtype, int64_t value) {
  const int bits = element(dtype).bits;
  if (is_kind(dtype, "u") && bits < 64) value &= (int64_t{1} << bits) - 1;
  std::string text = std::to_string(value);
  if (dtype == LTC_BOOL) text = value ? "true" : "false";
  if (is_kind(dtype, "fhq")) text += ".0";
  if (is_kind(dtype, "cz")) text = "(" + text + ".0, 0.0)";
  return constant({dtype, {}}, text);
}

Value Module::extreme(ltc_dtype dtype, bool least) {
  if (dtype == LTC_F32) return constant({dtype, {}}, least ? "0xFF800000" : "0x7F800000");
  if (dtype == LTC_F64) return constant({dtype, {}}, least ? "0xFFF0000000000000" : "0x7FF0000000000000");
  if (is_kind(dtype, "bu")) return number(dtype, least ? 0 : -1);
  return number(dtype, (least ? INT64_MIN : INT64_MAX) >> (64 - element(dtype).bits));
}

Value Module::broadcast(const Value& value, const Sizes& sizes) {
  if (value.type.sizes == sizes) return value;
  Sizes dims;
  for (size_t i = sizes.size() - value.type.sizes.size(); i < sizes.size(); ++i) dims.push_back(static_cast<int64_t>(i));
  return op("broadcast_in_dim", {value}, {value.type.dtype, sizes}, "broadcast_dimensions = " + array(dims));
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
  const std::string none = array(Sizes(low.size(), 0));
  return op("pad", {value, with}, type,
            "edge_padding_low = " + array(low) + ", edge_padding_high = " + array(high) + ", interior_padding = " + none);
}

Value Module::reduce(const Value& value, const Sizes& dims, std::string_view formula, const Value& initial) {
  Type type{value.type.dtype, {}};
  for (int64_t dim = 0; dim < value.type.rank(); ++dim) {
    if (std::ranges::find(dims, dim) == dims.end()) type.sizes.push_back(value.type.sizes[static_cast<size_t>(dim)]);
  }
  const std::string joining = region({type.dtype, type.dtype}, formula);
  return op("reduce", {value, initial}, type, "dimensions = " + array(dims), joining);
}

}  // namespace ltc::pjrt
