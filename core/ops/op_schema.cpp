#include "core/ops/op_schema.h"

#include <unordered_map>

namespace ltc {
namespace {

OpArgKind kind_of(std::string_view type) {
  if (type.ends_with('?')) type.remove_suffix(1);
  if (type.starts_with("Tensor")) return type.ends_with(']') ? OpArgKind::kTensorList : OpArgKind::kTensor;
  return type == "Scalar" || type == "float" ? OpArgKind::kNumber : OpArgKind::kConstant;
}

// "int[1] dim=[]" and the like. Types hold no blank.
OpArg parse_arg(std::string_view text) {
  const size_t blank = text.find(' ');
  const std::string_view type = text.substr(0, blank), rest = text.substr(blank + 1);
  const size_t equals = rest.find('=');
  return {rest.substr(0, equals), type, kind_of(type), equals == std::string_view::npos ? "" : rest.substr(equals + 1)};
}

std::vector<OpArg> parse(std::string_view schema) {
  std::vector<OpArg> args;
  const size_t begin = schema.find('(') + 1;
  int depth = 0;
  size_t start = begin;
  for (size_t i = begin; i < schema.size(); ++i) {
    const char c = schema[i];
    const bool closes = c == ')' && depth == 0;
    if (c == '[' || c == '(') ++depth;
    if (c == ']' || (c == ')' && !closes)) --depth;
    if (!closes && (c != ',' || depth > 0)) continue;
    std::string_view text = schema.substr(start, i - start);
    while (text.starts_with(' ')) text.remove_prefix(1);
    if (!text.empty() && text != "*") args.push_back(parse_arg(text));
    if (closes) break;
    start = i + 1;
  }
  return args;
}

}  // namespace

const std::vector<OpArg>& op_args(const OpRow& row) {
  static const auto* table = [] {
    auto* all = new std::unordered_map<const OpRow*, std::vector<OpArg>>();
    for (const OpRow& each : op_rows()) all->emplace(&each, parse(each.schema));
    return all;
  }();
  return table->at(&row);
}

}  // namespace ltc
