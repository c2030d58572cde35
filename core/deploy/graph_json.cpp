#include "core/deploy/graph_json.h"

#include <cmath>

#include "core/deploy/json.h"

namespace ltc::deploy {
namespace {

Json json_of(ValueId value) { return value == kNone ? Json() : Json(value); }

// JSON has no nan and no infinities.
Json json_of(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

Json json_of(const Attr& attr) {
  switch (attr.kind) {
    case AttrKind::kNone: return {};
    case AttrKind::kInt: return attr.ints[0];
    case AttrKind::kFloat: return json_of(attr.floats[0]);
    case AttrKind::kBool: return attr.ints[0] != 0;
    case AttrKind::kString: return attr.strings[0];
    case AttrKind::kDType: return dtype_name(static_cast<DType>(attr.ints[0]));
    case AttrKind::kInts: return attr.ints;
    case AttrKind::kStrings: return attr.strings;
    case AttrKind::kFloats: break;
  }
  Json list = Json::array();
  for (const double value : attr.floats) list.push_back(json_of(value));
  return list;
}

Json json_of(const Graph& graph, ValueId value) {
  if (value == kNone) return {};
  const Type& type = graph.type(value);
  return {{"value", value}, {"dtype", dtype_name(type.dtype)}, {"shape", type.sizes}};
}

Json json_of(const Graph& graph, const Param& param) {
  Json json = json_of(graph, param.value);
  if (param.scalar) json["number"] = true;
  if (param.alias_output != kNone) json["becomes"] = param.alias_output;
  return json;
}

Json json_of(const Graph& graph, const Node& node) {
  Json json = {{"op", op_name(node.op)}, {"operands", Json::array()}, {"attributes", Json::object()}, {"results", Json::array()}};
  for (const ValueId input : node.inputs) json["operands"].push_back(json_of(input));
  for (const Attr& attr : attrs_of(node.attrs)) json["attributes"][attr.name] = json_of(attr);
  for (const ValueId output : node.outputs) json["results"].push_back(json_of(graph, output));
  if (node.location != kNoLocation) json["line"] = location_text(node.location);
  return json;
}

template <typename Items>
std::string lines(const Graph& graph, const Items& items) {
  std::string text;
  for (const auto& item : items)
    text += cat(text.empty() ? "\n  " : ",\n  ", json_of(graph, item).dump(-1, ' ', false, Json::error_handler_t::replace));
  return text + (items.empty() ? "" : "\n ");
}

}  // namespace

std::string graph_json(const Graph& graph) {
  return cat("{\n \"params\": [", lines(graph, graph.params), "],\n \"nodes\": [", lines(graph, graph.nodes),
             "],\n \"outputs\": ", Json(graph.outputs).dump(), "\n}\n");
}

}  // namespace ltc::deploy
