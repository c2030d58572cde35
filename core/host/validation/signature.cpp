#include "core/host/validation/signature.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/ir/dtype.h"

namespace ltc::host::validation {
namespace {

size_t bytes_of(ltc_dtype dtype) {
  if (dtype < kDTypeCount) return dtype_size_bytes(static_cast<DType>(dtype));
  return dtype <= LTC_U4_X2 ? 1 : 0;  // two elements in a byte count as one
}

}  // namespace

bool is_known_dtype(ltc_dtype dtype) { return (dtype >= LTC_BOOL && dtype <= LTC_U4_X2) || dtype >= kFirstOfVendors; }

Type Type::of(const ltc_type& type) { return {type.dtype, {type.sizes, type.sizes + type.rank}, {}}; }

Type Type::with(const int64_t* symbols) const {
  Type type{dtype, sizes, {}};
  for (const Formula& formula : formulas) type.sizes[formula.dim] = formula.scale * symbols[formula.symbol] + formula.offset;
  return type;
}

std::optional<uint64_t> Type::bytes() const {
  if (dtype >= kFirstOfVendors) return std::nullopt;
  uint64_t bytes = bytes_of(dtype);
  for (const int64_t size : sizes) bytes *= static_cast<uint64_t>(size);
  return bytes;
}

std::string Type::text() const {
  std::string text = dtype < kDTypeCount ? std::string(dtype_name(static_cast<DType>(dtype))) : cat("dtype ", dtype);
  for (size_t i = 0; i < sizes.size(); ++i) text += cat(i ? ", " : "[", sizes[i]);
  return text + (sizes.empty() ? "[]" : "]");
}

Signature Signature::of(const ltc_graph& graph, const ltc_symbolic_sizes* symbols) {
  std::vector<Type> types;
  for (size_t i = 0; i < graph.value_count; ++i) types.push_back(Type::of(*graph.types[i]));
  Signature signature{.node_count = graph.node_count,
                      .inputs = {},
                      .outputs = {},
                      .may_donate = {},
                      .scalars = {},
                      .is_symbolic = symbols != nullptr,
                      .symbol_count = symbols ? symbols->symbol_count : 0};
  for (size_t i = 0; symbols && i < symbols->number_count; ++i) {
    const ltc_symbolic_number& number = symbols->numbers[i];
    if (number.attr == LTC_NONE)
      types[number.owner].formulas.push_back({number.element, number.symbol, number.scale, number.offset});
  }
  for (size_t i = 0; i < graph.param_count; ++i) {
    const ltc_param& param = *graph.params[i];
    if (param.flags & LTC_PARAM_SCALAR) {
      signature.scalars.push_back(types[param.value].dtype);
    } else {
      signature.inputs.push_back(types[param.value]);
      signature.may_donate.push_back(param.alias_output != LTC_NONE);
    }
  }
  for (size_t i = 0; i < graph.output_count; ++i) signature.outputs.push_back(types[graph.outputs[i]]);
  return signature;
}

}  // namespace ltc::host::validation
