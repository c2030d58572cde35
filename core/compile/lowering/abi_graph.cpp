#include "core/compile/lowering/abi_graph.h"

#include "core/host/sized.h"
#include "core/ops/op_table.h"

namespace ltc {
namespace {

static_assert(kNone == LTC_NONE);
static_assert(static_cast<uint32_t>(DType::kBool) == LTC_BOOL && static_cast<uint32_t>(DType::kC32) == LTC_C32 &&
              static_cast<uint32_t>(DType::kF8E8M0FNU) == LTC_F8_E8M0FNU);
static_assert(static_cast<uint32_t>(AttrKind::kNone) == LTC_ATTR_NONE &&
              static_cast<uint32_t>(AttrKind::kStrings) == LTC_ATTR_STRINGS);

ltc_string abi_string(const std::string& text) { return {text.c_str(), text.size()}; }

// Attributes are interned, so what they hold may be pointed to.
ltc_attr abi_attr_of(const Attr& attr, const ltc_string* strings) {
  auto abi = host::sized<ltc_attr>();
  abi.name = abi_string(attr.name);
  abi.kind = static_cast<ltc_attr_kind>(attr.kind);
  switch (attr.kind) {
    case AttrKind::kNone: break;
    case AttrKind::kFloat:
    case AttrKind::kFloats:
      abi.count = attr.floats.size();
      if (abi.count) abi.value.floats = attr.floats.data();
      break;
    case AttrKind::kString:
    case AttrKind::kStrings:
      abi.count = attr.strings.size();
      if (abi.count) abi.value.strings = strings;
      break;
    default:
      abi.count = attr.ints.size();
      if (abi.count) abi.value.ints = attr.ints.data();
  }
  return abi;
}

template <typename Struct>
std::vector<const Struct*> pointers_to(const std::vector<Struct>& items) {
  std::vector<const Struct*> pointers;
  pointers.reserve(items.size());
  for (const Struct& item : items) pointers.push_back(&item);
  return pointers;
}

}  // namespace

ltc_type abi_type_of(const Type& type) {
  static constexpr int64_t kNoSizes = 0;  // the ABI wants a pointer for rank 0 too
  auto abi = host::sized<ltc_type>();
  abi.dtype = static_cast<ltc_dtype>(type.dtype);
  abi.rank = static_cast<uint32_t>(type.sizes.size());
  abi.sizes = type.sizes.empty() ? &kNoSizes : type.sizes.data();
  return abi;
}

AbiGraph::AbiGraph(const Graph& graph) : abi_(host::sized<ltc_graph>()) {
  add_types(graph);
  add_params(graph);
  add_attrs(graph);
  add_nodes(graph);
  abi_.output_count = graph.outputs.size();
  abi_.outputs = graph.outputs.data();
}

void AbiGraph::add_types(const Graph& graph) {
  types_.reserve(graph.types.size());
  for (const TypeId type : graph.types) types_.push_back(abi_type_of(type_of(type)));
  type_list_ = pointers_to(types_);
  abi_.value_count = type_list_.size();
  abi_.types = type_list_.data();
}

void AbiGraph::add_params(const Graph& graph) {
  params_.reserve(graph.params.size());
  for (const Param& param : graph.params) {
    auto abi = host::sized<ltc_param>();
    abi.value = param.value;
    abi.flags = param.scalar ? LTC_PARAM_SCALAR : 0;
    abi.alias_output = param.alias_output;
    params_.push_back(abi);
  }
  param_list_ = pointers_to(params_);
  abi_.param_count = param_list_.size();
  abi_.params = param_list_.data();
}

// Counted first: the arrays must not move once they are pointed into.
void AbiGraph::add_attrs(const Graph& graph) {
  size_t attrs = 0, strings = 0;
  for (const Node& node : graph.nodes) {
    for (const Attr& attr : attrs_of(node.attrs)) ++attrs, strings += attr.strings.size();
  }
  attrs_.reserve(attrs);
  strings_.reserve(strings);
  for (const Node& node : graph.nodes) {
    for (const Attr& attr : attrs_of(node.attrs)) {
      const ltc_string* first = strings_.data() + strings_.size();
      for (const std::string& text : attr.strings) strings_.push_back(abi_string(text));
      attrs_.push_back(abi_attr_of(attr, first));
    }
  }
  attr_list_ = pointers_to(attrs_);
}

void AbiGraph::add_nodes(const Graph& graph) {
  nodes_.reserve(graph.nodes.size());
  locations_.reserve(graph.nodes.size());
  size_t attr = 0;
  for (const Node& node : graph.nodes) {
    auto abi = host::sized<ltc_node>();
    abi.op = stable_op_id(node.op);
    abi.name = abi_string(op_name(node.op));
    abi.input_count = node.inputs.size();
    abi.inputs = node.inputs.data();
    abi.output_count = node.outputs.size();
    abi.outputs = node.outputs.data();
    abi.attr_count = attrs_of(node.attrs).size();
    abi.attrs = attr_list_.data() + attr;
    abi.location = abi_string(locations_.emplace_back(location_text(node.location)));
    attr += abi.attr_count;
    nodes_.push_back(abi);
  }
  node_list_ = pointers_to(nodes_);
  abi_.node_count = node_list_.size();
  abi_.nodes = node_list_.data();
}

}  // namespace ltc
