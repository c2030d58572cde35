#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "core/compile/passes/geometry.h"
#include "core/compile/passes/passes.h"
#include "core/ir/substitution.h"

namespace ltc {
namespace {

// The ops that this pass knows, interned once.
struct Ops {
  OpId as_strided = intern_op("aten::as_strided");
  OpId as_strided_scatter = intern_op("aten::as_strided_scatter");
  OpId reshape = intern_op("aten::reshape");
  OpId permute = intern_op("aten::permute");
  OpId expand = intern_op("aten::expand");
  OpId slice = intern_op("aten::slice.Tensor");
};

Geometry geometry_of(const Node& node) {
  const AttrList& attrs = attrs_of(node.attrs);
  const Attr* offset = find_attr(attrs, "storage_offset");
  return {find_attr(attrs, "size")->ints, find_attr(attrs, "stride")->ints,
          offset && offset->kind == AttrKind::kInt ? offset->ints[0] : 0};
}

struct ChainedOp {
  OpId op;
  AttrsId attrs;
  TypeId type;  // of its result
};
using Chain = std::optional<std::vector<ChainedOp>>;  // none: no view ops do it

Chain find_chain(const Type& source, const Node& read) {
  const auto ops = decompose(source.sizes, geometry_of(read));
  if (!ops) return std::nullopt;
  Chain chain(std::in_place);
  for (const ViewOp& op : *ops)
    chain->push_back({intern_op(op.op), intern_attrs(op.attrs), intern_contiguous(source.dtype, op.sizes)});
  return chain;
}

// The chain of a read from a value of that type. It is kept: layers of one form read alike, and so do programs that differ in a
// size.
const Chain& chain_of(TypeId source, const Node& read) {
  constexpr size_t kMostChains = 4096;
  thread_local std::map<std::pair<TypeId, AttrsId>, Chain> chains;
  if (chains.size() >= kMostChains) chains.clear();
  const auto [at, is_new] = chains.try_emplace({source, read.attrs});
  if (is_new) at->second = find_chain(type_of(source), read);
  return at->second;
}

// Walks the nodes in order and writes them anew.
class Rewriter {
 public:
  explicit Rewriter(Graph& graph) : graph_(graph), substitute_(graph) {}

  void run() {
    std::vector<Node> nodes = std::move(graph_.nodes);
    graph_.nodes.clear();
    for (Node& node : nodes) {
      substitute_.apply(node.inputs);
      rewrite(std::move(node));
    }
    substitute_.apply(graph_.outputs);
  }

 private:
  void rewrite(Node node) {
    if (node.op == ops_.as_strided) return rewrite_read(std::move(node));
    if (node.op == ops_.as_strided_scatter) return rewrite_write(std::move(node));
    folds(node.op) ? fold(std::move(node)) : emit(std::move(node));
  }

  // Ops of one result, so that the result of such a node is wanted. Any other node may lack its first result or its operands.
  bool folds(OpId op) const { return op == ops_.reshape || op == ops_.expand || op == ops_.permute || op == ops_.slice; }

  void rewrite_read(Node node) {
    const Chain& chain = chain_of(graph_.types.at(node.inputs[0]), node);
    if (!chain) return emit(std::move(node));
    if (chain->empty()) return fold(reshape(node, node.inputs[0]));
    ValueId value = node.inputs[0];
    for (const ChainedOp& step : *chain) {
      const ValueId result = &step == &chain->back() ? node.outputs[0] : graph_.add_value(step.type);
      fold({step.op, step.attrs, {substitute_(value)}, {result}, node.location});
      value = result;
    }
  }

  // A write that covers everything keeps nothing of what was there; one of no elements keeps it all.
  void rewrite_write(Node node) {
    const Type &whole = graph_.type(node.inputs[0]), &piece = graph_.type(node.inputs[1]);
    if (piece.element_count == 0) return fold(reshape(node, node.inputs[0]));
    const bool covers = piece.dtype == whole.dtype && is_row_major(geometry_of(node), whole.element_count);
    covers ? fold(reshape(node, node.inputs[1])) : emit(std::move(node));
  }

  // `node`'s result as a reshape of `input`.
  Node reshape(const Node& node, ValueId input) const {
    const ValueId output = node.outputs[0];
    return {ops_.reshape, intern_attrs({Attr::of_ints("shape", graph_.type(output).sizes)}), {input}, {output}, node.location};
  }

  // Joins the node with the one that makes its input, and drops it if it changes nothing.
  void fold(Node node) {
    const Node* before = producer(node.inputs[0]);
    if (before && before->op == node.op) join(*before, node);
    const bool idle = changes_nothing(node) && substitute_.allowed(node.outputs[0], node.inputs[0]);
    idle ? substitute_.replace(node.outputs[0], node.inputs[0]) : emit(std::move(node));
  }

  void join(const Node& before, Node& node) const {
    const std::vector<int64_t>& sizes = graph_.type(node.outputs[0]).sizes;
    if (node.op == ops_.reshape) {
      node.attrs = intern_attrs({Attr::of_ints("shape", sizes)});
    } else if (node.op == ops_.expand) {
      node.attrs = intern_attrs({Attr::of_ints("size", sizes), {"implicit", AttrKind::kBool, {0}}});
    } else if (node.op == ops_.permute) {
      node.attrs = intern_attrs({Attr::of_ints("dims", composed(dims_of(before), dims_of(node)))});
    } else {
      return;
    }
    node.inputs[0] = before.inputs[0];
  }

  static const std::vector<int64_t>& dims_of(const Node& node) { return find_attr(attrs_of(node.attrs), "dims")->ints; }

  static int64_t wrapped(int64_t dim, size_t rank) { return dim < 0 ? dim + static_cast<int64_t>(rank) : dim; }

  static std::vector<int64_t> composed(const std::vector<int64_t>& first, const std::vector<int64_t>& second) {
    std::vector<int64_t> dims;
    for (const int64_t dim : second) dims.push_back(wrapped(first[wrapped(dim, first.size())], first.size()));
    return dims;
  }

  bool changes_nothing(const Node& node) const {
    if (node.op == ops_.permute) {
      const std::vector<int64_t>& dims = dims_of(node);
      for (size_t i = 0; i < dims.size(); ++i) {
        if (wrapped(dims[i], dims.size()) != static_cast<int64_t>(i)) return false;
      }
      return true;
    }
    return same_shape(graph_.type(node.inputs[0]), graph_.type(node.outputs[0]));
  }

  void emit(Node node) {
    producer_.resize(graph_.types.size(), kNone);
    for (const ValueId output : node.outputs) {
      if (output != kNone) producer_[output] = static_cast<uint32_t>(graph_.nodes.size());
    }
    graph_.nodes.push_back(std::move(node));
  }

  const Node* producer(ValueId value) const {
    return value < producer_.size() && producer_[value] != kNone ? &graph_.nodes[producer_[value]] : nullptr;
  }

  Graph& graph_;
  const Ops ops_;
  Substitution substitute_;
  std::vector<uint32_t> producer_;  // by value: index of its node
};

}  // namespace

void views(Graph& graph) { Rewriter(graph).run(); }

}  // namespace ltc
