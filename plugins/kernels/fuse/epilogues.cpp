#include "kernels/fuse/epilogues.h"

#include <algorithm>
#include <cstdio>
#include <optional>

#include "kernels/fuse/candidates.h"
#include "kernels/fuse/products.h"
#include "kernels/graph/dtype.h"

namespace ltc::kernels {
namespace {

constexpr const char* kActivation = "activation";
// As the core takes aten::gelu with approximate='tanh' apart; see Expressions::text.
constexpr std::string_view kGelu = "mul(add(1,tanh(mul(0.797885,add(mul(0.044715,mul(mul(x,x),x)),x)))),mul(0.5,x))";
constexpr int kGeluReads = 5;
// cuBLASLt wants rows of what it keeps to begin at multiples of so many elements (CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD).
constexpr int64_t kKeptColumns = 8;

// A number that is known, below conversions and views.
std::optional<double> constant(const Graph& graph, ValueId value) {
  while (graph.values[value].producer != kNone) {
    const Node& node = graph.nodes[graph.values[value].producer];
    if (node.kind == Kind::kFull) {
      const Attr* fill = node.find("fill_value");
      if (!fill) return std::nullopt;
      return fill->floats.empty() ? static_cast<double>(fill->ints.at(0)) : fill->floats[0];
    }
    if (node.kind != Kind::kCast && node.kind != Kind::kExpand && node.kind != Kind::kReshape) return std::nullopt;
    value = node.in[0];
  }
  return std::nullopt;
}

// The expression below a value as text, in which x is `leaf` and operands of sums and products stand in the order of their texts.
// Cut off where it is deeper than any that is looked for.
std::string expression(const Graph& graph, ValueId value, ValueId leaf, int depth = 8) {
  if (value == leaf) return "x";
  if (const auto number = constant(graph, value)) {
    char text[32];
    std::snprintf(text, sizeof text, "%.6g", *number);
    return text;
  }
  const NodeId producer = graph.values[value].producer;
  if (depth == 0 || producer == kNone || graph.nodes[producer].kind != Kind::kMap) return "?";
  const Node& node = graph.nodes[producer];
  std::vector<std::string> operands;
  for (const ValueId operand : node.in) operands.push_back(expression(graph, operand, leaf, depth - 1));
  const std::string_view name = node.op->name.substr(6);
  if (name == "add.Tensor" || name == "mul.Tensor") std::ranges::sort(operands);
  std::string text(name.substr(0, name.find('.')));
  for (size_t i = 0; i < operands.size(); ++i) text += (i ? "," : "(") + operands[i];
  return text + ")";
}

class Extender {
 public:
  Extender(Graph& graph, const Options& options)
      : graph_(graph), options_(options), readers_(graph.values.size()), is_output_(graph.values.size(), false) {
    for (const ValueId value : graph.outputs) is_output_[value] = true;
    for (NodeId id = 0; id < graph.nodes.size(); ++id) {
      for (const ValueId value : graph.nodes[id].in) {
        if (value != kNone) readers_[value].push_back(id);
      }
    }
  }

  std::vector<std::string> extend() {
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) {
      if (graph_.nodes[id].kind == Kind::kProduct && is_unfusable(graph_, graph_.nodes[id], options_)) extend(id);
    }
    if (!products_.empty()) rebuild();
    return std::move(notes_);
  }

 private:
  // A product with what it has taken so far.
  struct Product {
    NodeId id, at;       // where it stands, and where its operands are there
    ltc_dtype operands;  // their dtype
    int64_t columns;
    ValueId result;
    ValueId bias = kNone, kept = kNone;
    Activation activation = Activation::kNone;
    std::vector<uint32_t> also = {};  // nodes of the graph of the ABI that it computes besides
  };

  void extend(NodeId id) {
    const Node& node = graph_.nodes[id];
    Product product{id, id, graph_.values[node.in[0]].dtype, graph_.values[node.out[0]].sizes[2], node.out[0]};
    skip_reshapes(product.result);
    if (options_.epilogues.bias) take_bias(product);
    if (options_.epilogues.activations) take_activation(product);
    if (product.result != node.out[0]) products_.push_back(product);
  }

  // ---- what follows

  // The one node that reads the value; null: there are several, or the graph gives it out.
  const Node* only_reader(ValueId value) const {
    return is_output_[value] || readers_[value].size() != 1 ? nullptr : &graph_.nodes[readers_[value][0]];
  }
  // Conversions too that a narrowed product has left without work.
  void skip_reshapes(ValueId& value) const {
    while (const Node* reader = only_reader(value)) {
      const bool converts = reader->kind == Kind::kCast && graph_.values[reader->out[0]].dtype != graph_.values[value].dtype;
      if (converts || (reader->kind != Kind::kReshape && reader->kind != Kind::kCast)) return;
      value = reader->out[0];
    }
  }
  // The conversion of the value that is all that is done with it, below reshapes; kNone: there is no such.
  ValueId only_cast(ValueId value, ltc_dtype to) const {
    skip_reshapes(value);
    const Node* reader = only_reader(value);
    const bool casts = reader && reader->kind == Kind::kCast && graph_.values[reader->out[0]].dtype == to;
    return casts ? reader->out[0] : kNone;
  }
  static bool is(const Node* node, std::string_view op) { return node && node->op && node->op->name == op; }

  void take_bias(Product& product) {
    const Node* sum = only_reader(product.result);
    if (!is(sum, "aten::add.Tensor") || graph_.values[sum->out[0]].count != graph_.values[product.result].count) return;
    const ValueId other = sum->in[sum->in[0] == product.result];
    ValueId bias = vector_of(other, sum->out[0], product.columns), result = sum->out[0];
    if (bias == kNone) return refuse(product, *sum, "adds no vector to its rows");
    const ltc_dtype dtype = graph_.values[result].dtype;
    if (is_half(product.operands)) {
      bias = widened_from(bias, product.operands);
      result = only_cast(result, product.operands);
      if (bias == kNone || result == kNone)
        return refuse(product, *sum, "the vector or the sum is not of the dtype of its operands");
    } else if (dtype != LTC_F32 || product.operands != LTC_F32) {
      return refuse(product, *sum, "the library adds vectors to products of F32 and halves");
    }
    if (graph_.values[bias].producer != kNone && !is_output_[bias]) {
      return refuse(product, *sum, "the vector would need a kernel of its own");
    }
    product.bias = bias;
    product.at = readers_[product.result][0];
    product.result = result;
    note(product, *sum, "a vector added to its rows");
    skip_reshapes(product.result);
  }

  // The buffer that is added to each row of a matrix with this many columns, by broadcasting; kNone: it is something else.
  ValueId vector_of(ValueId value, ValueId sum, int64_t columns) const {
    const Sizes &sizes = graph_.values[value].sizes, &full = graph_.values[sum].sizes;
    if (sizes.empty() || full.empty() || sizes.back() != columns || full.back() != columns) return kNone;
    ValueId from = value;
    if (graph_.values[from].count != columns) {
      const auto seen = strided_view(graph_, value);
      if (!seen || seen->offset != 0 || seen->strides.back() != 1) return kNone;
      for (size_t dim = 0; dim + 1 < sizes.size(); ++dim) {
        if (sizes[dim] != 1 && seen->strides[dim] != 0) return kNone;
      }
      from = seen->value;
    }
    while (graph_.values[from].producer != kNone && graph_.nodes[graph_.values[from].producer].kind == Kind::kReshape) {
      from = graph_.nodes[graph_.values[from].producer].in[0];
    }
    return graph_.values[from].count == columns && !graph_.is_scalar_param(from) ? from : kNone;
  }

  ValueId widened_from(ValueId value, ltc_dtype half) const {
    const NodeId producer = graph_.values[value].producer;
    if (producer == kNone || graph_.nodes[producer].kind != Kind::kCast) return kNone;
    const ValueId from = graph_.nodes[producer].in[0];
    return graph_.values[from].dtype == half && !graph_.is_scalar_param(from) ? from : kNone;
  }

  void take_activation(Product& product) {
    const ltc_dtype dtype = graph_.values[product.result].dtype;
    if (dtype != product.operands || (dtype != LTC_F32 && !is_half(dtype))) return;
    for (const Form& x : forms_of(product.result)) {
      if (graph_.values[x.value].dtype == LTC_F32 && (take_relu(product, x) || take_gelu(product, x))) return;
    }
  }

  // A value as functions read it: in other sizes, and widened.
  struct Form {
    ValueId value;
    bool is_only;  // nothing else is read of what it comes from
  };
  std::vector<Form> forms_of(ValueId value) const {
    std::vector<Form> forms{{value, true}};
    for (size_t i = 0; i < forms.size(); ++i) {
      const Form from = forms[i];
      for (const NodeId reader : readers_[from.value]) {
        const Node& node = graph_.nodes[reader];
        const bool widens = node.kind == Kind::kCast && graph_.values[node.out[0]].dtype == LTC_F32;
        if (widens || node.kind == Kind::kReshape) {
          forms.push_back({node.out[0], from.is_only && only_reader(from.value) != nullptr});
        }
      }
    }
    return forms;
  }

  bool take_relu(Product& product, const Form& x) {
    const Node* reader = only_reader(x.value);
    if (!is(reader, "aten::maximum") || !x.is_only) return false;
    if (constant(graph_, reader->in[reader->in[0] == x.value]) != 0.0) return false;
    return take_function(product, *reader, Activation::kRelu, "relu");
  }

  bool take_gelu(Product& product, const Form& x) {
    for (const NodeId first : readers_[x.value]) {
      for (const NodeId id : readers_[graph_.nodes[first].out[0]]) {
        const Node& last = graph_.nodes[id];
        if (!is(&last, "aten::mul.Tensor") || expression(graph_, last.out[0], x.value) != kGelu) continue;
        const ValueId input = product.result;
        const bool alone = x.is_only && !is_output_[x.value] && readers_[x.value].size() == kGeluReads;
        if (!alone && product.columns % kKeptColumns != 0) {
          refuse(product, last, "what gelu reads is kept, and its rows are no multiple of " + std::to_string(kKeptColumns));
          return true;
        }
        if (!take_function(product, last, Activation::kGelu, "gelu")) continue;
        if (!alone) product.kept = input;
        return true;
      }
    }
    return false;
  }

  // `last` gives what the function does.
  bool take_function(Product& product, const Node& last, Activation activation, const char* name) {
    const ValueId result = is_half(product.operands) ? only_cast(last.out[0], product.operands) : last.out[0];
    if (result == kNone) return false;
    product.activation = activation;
    product.result = result;
    note(product, last, name);
    skip_reshapes(product.result);
    return true;
  }

  // ---- what becomes of it

  // The nodes whose results the products give now are gone; those between have no readers left.
  void rebuild() {
    Graph made = graph_;
    made.nodes.clear();
    std::vector<bool> taken(graph_.values.size(), false);
    for (const Product& product : products_) {
      taken[product.result] = true;
      if (product.kept != kNone) taken[product.kept] = true;
    }
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) {
      const Node& node = graph_.nodes[id];
      const bool extended = std::ranges::count(products_, id, &Product::id) > 0;
      const auto product = std::ranges::find(products_, id, &Product::at);
      if (!extended && !(node.out[0] != kNone && taken[node.out[0]])) made.append(node);
      if (product != products_.end()) made.append(extended_node(*product));
    }
    graph_ = std::move(made);
  }

  Node extended_node(const Product& product) const {
    Node node = graph_.nodes[product.id];
    if (product.bias != kNone) node.in.push_back(product.bias);
    node.out = {product.result};
    if (product.kept != kNone) node.out.push_back(product.kept);
    node.also = product.also;
    node.attrs.push_back({kActivation, LTC_ATTR_INT, {static_cast<int64_t>(product.activation)}, {}});
    return node;
  }

  void note(Product& product, const Node& node, const std::string& what) {
    product.also.push_back(node.source);
    notes_.push_back("%" + std::to_string(node.out[0]) + " = " + op_name(node) + " is part of the product %" +
                     std::to_string(graph_.nodes[product.id].out[0]) + ": " + what);
  }
  void refuse(const Product& product, const Node& node, const std::string& why) {
    notes_.push_back("%" + std::to_string(node.out[0]) + " = " + op_name(node) + " is not part of the product %" +
                     std::to_string(graph_.nodes[product.id].out[0]) + ": " + why);
  }

  Graph& graph_;
  const Options& options_;
  std::vector<std::vector<NodeId>> readers_;  // by value; a node that reads it twice is there twice
  std::vector<bool> is_output_;
  std::vector<Product> products_;
  std::vector<std::string> notes_;
};

}  // namespace

Epilogue epilogue_of(const Node& node) {
  return {node.in.size() > 2, static_cast<Activation>(node.integer(kActivation, 0)), node.out.size() > 1};
}

std::vector<std::string> extend_products(Graph& graph, const Options& options) {
  if (!options.library_product) return {};
  return Extender(graph, options).extend();
}

}  // namespace ltc::kernels
