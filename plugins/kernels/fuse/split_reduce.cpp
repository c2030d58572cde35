#include "kernels/fuse/split_reduce.h"

#include <algorithm>
#include <numeric>

#include "kernels/graph/dtype.h"
#include "kernels/graph/reads.h"

namespace ltc::kernels {
namespace {

// Lanes of a block (coop_reduce.h) for one row: if the elements of a row lie side by side, and if the first elements of
// neighbouring rows do. Then the number of elements that a lane should have.
constexpr int64_t kLanes = 256, kLanesOfColumns = 8, kElements = 8;
// Fewer chunks are not worth a second kernel.
constexpr int64_t kFewestChunks = 4;

Attr ints(std::string name, std::vector<int64_t> values) { return {std::move(name), LTC_ATTR_INTS, std::move(values), {}}; }

// The divisor of `length` that is nearest to `wanted`, at most four times as far; 1: none.
int64_t chunks_near(int64_t wanted, int64_t length) {
  for (int64_t more = wanted, less = wanted; less >= std::max(kFewestChunks, wanted / 4); ++more, --less) {
    if (length % less == 0) return less;
    if (length % more == 0 && more <= 4 * wanted) return more;
  }
  return 1;
}

class Splitter {
 public:
  Splitter(Graph& graph, const Options& options) : old_(graph), new_(graph), options_(options) { new_.nodes.clear(); }

  void split() {
    for (const Node& node : old_.nodes) {
      if (!split(node)) append(node);
    }
    old_ = std::move(new_);
  }

 private:
  void append(const Node& node) {
    for (const ValueId value : node.out) {
      if (value != kNone) new_.values[value].producer = static_cast<NodeId>(new_.nodes.size());
    }
    new_.nodes.push_back(node);
  }

  bool split(const Node& node) {
    if (node.kind != Kind::kReduce || old_.values[node.in[0]].count == 0) return false;
    const Sizes x = old_.values[node.in[0]].sizes;
    const auto rows = row_dims(old_, node);
    const int64_t length = row_length(old_, node), items = old_.values[node.out[0]].count;
    size_t last = x.size();
    while (last > 0 && x[last - 1] == 1) --last;
    const bool columns = last > 0 && !std::ranges::count(rows, last - 1);
    const int64_t lanes = columns ? kLanesOfColumns : kLanes;
    const int64_t wanted = std::min(options_.split_threads / (items * lanes), length / (lanes * kElements));
    const int64_t chunks = wanted < kFewestChunks ? 1 : chunks_near(wanted, length);
    if (chunks > 1) replace(node, rows, columns, items, length, chunks);
    return chunks > 1;
  }

  // Rows side by side become [items, chunks, chunk], others [chunks, chunk, items].
  void replace(const Node& node, const std::vector<size_t>& rows, bool columns, int64_t items, int64_t length, int64_t chunks) {
    const Value x = old_.values[node.in[0]], result = old_.values[node.out[0]];
    const bool adds = node.op->name == "aten::sum.dim_IntList" && is_float(result.dtype);
    const ltc_dtype wide = options_.abilities.fp64 ? ltc_dtype{LTC_F64} : ltc_dtype{LTC_F32}, in = adds ? wide : result.dtype;
    const auto add = [&](Kind kind, ValueId from, std::vector<Attr> attrs, Sizes sizes) {
      return new_.add_node(kind, {from}, std::move(attrs), in, std::move(sizes), node.source);
    };
    const auto reduce = [&](ValueId from, int64_t dim, Sizes sizes) {
      const ValueId value = add(node.kind, from, {ints("dim", {dim})}, std::move(sizes));
      new_.nodes.back().op = node.op;
      return value;
    };
    ValueId value = in == x.dtype ? node.in[0] : add(Kind::kCast, node.in[0], {}, x.sizes);
    std::vector<int64_t> order(x.sizes.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_partition(
        order, [&](int64_t dim) { return (std::ranges::count(rows, static_cast<size_t>(dim)) > 0) == columns; });
    Sizes permuted;
    for (const int64_t dim : order) permuted.push_back(x.sizes[static_cast<size_t>(dim)]);
    value = add(Kind::kPermute, value, {ints("dims", order)}, permuted);
    const int64_t chunk = length / chunks;
    value = add(Kind::kReshape, value, {}, columns ? Sizes{chunks, chunk, items} : Sizes{items, chunks, chunk});
    value = reduce(value, columns ? 1 : 2, columns ? Sizes{chunks, items} : Sizes{items, chunks});
    value = reduce(value, columns ? 0 : 1, {items});
    if (in != result.dtype) {
      value = new_.add_node(Kind::kCast, {value}, {}, result.dtype, {items}, node.source);
    }
    new_.add_node(Kind::kReshape, {value}, {}, result.dtype, result.sizes, node.source);
    new_.nodes.back().out[0] = node.out[0];
    new_.values[node.out[0]].producer = static_cast<NodeId>(new_.nodes.size() - 1);
  }

  Graph& old_;
  Graph new_;
  const Options& options_;
};

}  // namespace

void split_reductions(Graph& graph, const Options& options) {
  if (options.split_threads > 0) Splitter(graph, options).split();
}

}  // namespace ltc::kernels
