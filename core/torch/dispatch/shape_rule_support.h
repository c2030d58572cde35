// Helpers of the rules for the geometries of results (shape_rules.h).
#pragma once

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <vector>

#include "core/torch/tensor/tensor.h"

namespace ltc::shape_rules {

using Types = std::vector<TypeId>;
// Arguments in the schema's order. No answer: the CPU kernel is asked.
using Rule = std::optional<Types> (*)(const c10::IValue* args);

struct NamedRule {
  std::string_view op;  // "aten::relu"
  Rule rule;
};

// Null for one that is not given.
inline const at::Tensor* tensor(const c10::IValue& value) {
  return value.isTensor() && value.toTensor().defined() ? &value.toTensor() : nullptr;
}

// Whether those of the arguments that are given have the type of `of`.
inline bool same_type(const at::Tensor& of, std::initializer_list<const at::Tensor*> others) {
  return std::ranges::all_of(others, [&](const at::Tensor* other) { return !other || other->scalar_type() == of.scalar_type(); });
}

inline std::vector<int64_t> dense_strides(c10::IntArrayRef sizes, c10::MemoryFormat format) {
  return format == c10::MemoryFormat::ChannelsLast     ? c10::get_channels_last_strides_2d(sizes)
         : format == c10::MemoryFormat::ChannelsLast3d ? c10::get_channels_last_strides_3d(sizes)
                                                       : contiguous_strides(as_span(sizes));
}

inline TypeId dense_type(const at::Tensor& of, c10::IntArrayRef sizes, c10::MemoryFormat format = c10::MemoryFormat::Contiguous) {
  return intern_type(to_dtype(of.scalar_type()), as_span(sizes), dense_strides(sizes, format));
}

std::vector<NamedRule> recurrent();

}  // namespace ltc::shape_rules
