#include "core/ir/binary.h"

#include <algorithm>
#include <unordered_map>

#include "core/base/error.h"
#include "core/ir/verify.h"

namespace ltc {
namespace {

[[noreturn]] void corrupt(const char* what) { fail(Code::kDataCorrupt, "saved bytes are damaged: ", what); }

// Each distinct one once, and then by number.
class Table {
 public:
  uint32_t number(uint32_t id) {
    const auto [it, is_new] = numbers_.emplace(id, static_cast<uint32_t>(ids_.size()));
    if (is_new) ids_.push_back(id);
    return it->second;
  }
  const std::vector<uint32_t>& ids() const { return ids_; }

 private:
  std::unordered_map<uint32_t, uint32_t> numbers_;
  std::vector<uint32_t> ids_;
};

uint32_t at(const std::vector<uint32_t>& ids, uint32_t number) {
  if (number >= ids.size()) corrupt("a number that stands for nothing");
  return ids[number];
}

void write_attrs(ByteWriter& out, AttrsId id) {
  const AttrList& attrs = attrs_of(id);
  out.number<uint64_t>(attrs.size());
  for (const Attr& attr : attrs) {
    out.text(attr.name);
    out.number(static_cast<uint32_t>(attr.kind));
    out.numbers(attr.ints);
    out.numbers(attr.floats);
    out.number<uint64_t>(attr.strings.size());
    for (const std::string& text : attr.strings) out.text(text);
  }
}

// As many values as its kind has, of that kind alone, and in its range.
bool is_sound(const Attr& attr) {
  const bool one_int = attr.ints.size() == 1 && attr.floats.empty() && attr.strings.empty();
  switch (attr.kind) {
    case AttrKind::kNone: return attr.ints.empty() && attr.floats.empty() && attr.strings.empty();
    case AttrKind::kInt: return one_int;
    case AttrKind::kBool: return one_int && (attr.ints[0] == 0 || attr.ints[0] == 1);
    case AttrKind::kDType: return one_int && attr.ints[0] > 0 && attr.ints[0] < kDTypeCount;
    case AttrKind::kFloat: return attr.floats.size() == 1 && attr.ints.empty() && attr.strings.empty();
    case AttrKind::kString: return attr.strings.size() == 1 && attr.ints.empty() && attr.floats.empty();
    case AttrKind::kInts: return attr.floats.empty() && attr.strings.empty();
    case AttrKind::kFloats: return attr.ints.empty() && attr.strings.empty();
    case AttrKind::kStrings: return attr.ints.empty() && attr.floats.empty();
  }
  return false;
}

AttrsId read_attrs(ByteReader& in) {
  AttrList attrs(in.length(36));
  for (Attr& attr : attrs) {
    attr.name = in.text();
    attr.kind = static_cast<AttrKind>(in.number<uint32_t>());
    attr.ints = in.numbers<int64_t>();
    attr.floats = in.numbers<double>();
    attr.strings.resize(in.length(8));
    for (std::string& text : attr.strings) text = in.text();
    if (!is_sound(attr)) corrupt("an attribute");
  }
  return intern_attrs(attrs);
}

uint32_t location_number(LocationId location, const std::vector<LocationId>& locations) {
  if (location == kNoLocation) return 0;
  const auto it = std::find(locations.begin(), locations.end(), location);
  return it == locations.end() ? 0 : static_cast<uint32_t>(it - locations.begin()) + 1;
}

}  // namespace

void write_type(ByteWriter& out, TypeId id) {
  const Type& type = type_of(id);
  out.number(static_cast<uint32_t>(type.dtype));
  out.numbers(type.sizes);
  out.numbers(type.strides);
}

TypeId read_type(ByteReader& in) {
  const auto dtype = static_cast<DType>(in.number<uint32_t>());
  const auto sizes = in.numbers<int64_t>(), strides = in.numbers<int64_t>();
  if (!is_valid({dtype, sizes, strides})) corrupt("a type");
  return intern_type(dtype, sizes, strides);
}

void write_graph(ByteWriter& out, const Graph& graph, const std::vector<LocationId>* locations) {
  Table types, ops, attrs;
  std::vector<uint32_t> values, params, nodes;
  for (const TypeId type : graph.types) values.push_back(types.number(type));
  for (const Param& param : graph.params) params.insert(params.end(), {param.value, param.scalar, param.alias_output});
  for (const Node& node : graph.nodes) {
    nodes.insert(nodes.end(),
                 {ops.number(node.op), attrs.number(node.attrs), static_cast<uint32_t>(node.inputs.size()),
                  static_cast<uint32_t>(node.outputs.size()), locations ? location_number(node.location, *locations) : 0});
    nodes.insert(nodes.end(), node.inputs.begin(), node.inputs.end());
    nodes.insert(nodes.end(), node.outputs.begin(), node.outputs.end());
  }
  out.number<uint64_t>(types.ids().size());
  for (const TypeId type : types.ids()) write_type(out, type);
  out.number<uint64_t>(ops.ids().size());
  for (const OpId op : ops.ids()) out.text(op_name(op));
  out.number<uint64_t>(attrs.ids().size());
  for (const AttrsId id : attrs.ids()) write_attrs(out, id);
  out.numbers(values);
  out.numbers(params);
  out.number<uint64_t>(graph.nodes.size());
  out.numbers(nodes);
  out.numbers(graph.outputs);
}

Graph read_graph(ByteReader& in, const std::vector<LocationId>* locations) {
  std::vector<uint32_t> types(in.length(20)), ops, attrs;
  for (uint32_t& type : types) type = read_type(in);
  ops.resize(in.length(8));
  for (uint32_t& op : ops) op = intern_op(in.text());
  attrs.resize(in.length(8));
  for (uint32_t& id : attrs) id = read_attrs(in);

  Graph graph;
  for (const uint32_t number : in.numbers<uint32_t>()) graph.types.push_back(at(types, number));
  const auto params = in.numbers<uint32_t>();
  if (params.size() % 3) corrupt("params");
  for (size_t i = 0; i < params.size(); i += 3) {
    if (params[i + 1] > 1) corrupt("a param");
    graph.params.push_back({params[i], params[i + 1] != 0, params[i + 2]});
  }

  const size_t count = in.length(1);
  const auto words = in.numbers<uint32_t>();
  auto word = words.begin();
  const auto take = [&](size_t size) {
    if (size > static_cast<size_t>(words.end() - word)) corrupt("nodes");
    word += static_cast<ptrdiff_t>(size);
    return std::vector<ValueId>(word - static_cast<ptrdiff_t>(size), word);
  };
  for (size_t i = 0; i < count; ++i) {
    const auto head = take(5);
    Node node{at(ops, head[0]), at(attrs, head[1]), take(head[2]), {}};
    node.outputs = take(head[3]);
    if (locations && head[4] > locations->size()) corrupt("the location of a node");
    if (locations && head[4] > 0) node.location = (*locations)[head[4] - 1];
    graph.nodes.push_back(std::move(node));
  }
  if (word != words.end()) corrupt("nodes");
  graph.outputs = in.numbers<uint32_t>();
  try {
    verify(graph, "reading it from the disk");
  } catch (const Error& error) {
    corrupt(error.what());
  }
  return graph;
}

}  // namespace ltc
