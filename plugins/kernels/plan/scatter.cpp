#include "kernels/plan/scatter.h"

#include <algorithm>
#include <cmath>

#include "kernels/graph/dtype.h"
#include "kernels/graph/reads.h"
#include "kernels/plan/kernel_writer.h"

namespace ltc::kernels {
namespace {

// Shorter lines are walked before their index is sorted; so many lines keep a device busy as they are.
constexpr int64_t kLongLine = 128, kManyLines = 1 << 16;
// To sort an element is taken to cost a thousandth of a step along a line. An index that is the same for all lines is sorted
// once.
constexpr int64_t kMostSorts = 256;

constexpr std::string_view kSelect = "$0 ? $1 : $2";

// ---- sorting the index

class Sorter {
 public:
  explicit Sorter(Graph& graph) : old_(graph), new_(graph) { new_.nodes.clear(); }

  void sort() {
    for (const Node& node : old_.nodes) new_.append(sorted(node));
    old_ = std::move(new_);
  }

 private:
  // The operand of the value, if such a node makes it.
  ValueId behind(ValueId value, Kind kind) const {
    const NodeId producer = new_.values[value].producer;
    return producer != kNone && new_.nodes[producer].kind == kind ? new_.nodes[producer].in[0] : value;
  }

  Node sorted(Node node) {
    if (node.kind != Kind::kScatter && node.kind != Kind::kScatterAdd) return node;
    const Sizes wide = new_.values[node.in[1]].sizes;
    const int64_t count = count_of(wide);
    if (wide.empty() || count == 0) return node;
    const size_t dim = dim_of(node, "dim", 0, wide.size());
    const int64_t length = wide[dim];
    if (length < kLongLine || count / length >= kManyLines) return node;
    // Without the dims along which it only repeats.
    ValueId index = behind(node.in[1], Kind::kExpand);
    Sizes sizes(wide.size(), 1);
    std::ranges::copy_backward(new_.values[index].sizes, sizes.end());
    if (sizes[dim] != length) index = node.in[1], sizes = wide;
    if (count_of(sizes) / length > kMostSorts) return node;
    // A single line lies as it does whatever its shape, so it is read where it was made.
    Sizes lies = sizes;
    if (count_of(sizes) == length) {
      lies = {length};
      while (behind(index, Kind::kReshape) != index) index = behind(index, Kind::kReshape);
    }
    const ValueId keys = new_.add_value(LTC_I64, lies), places = new_.add_value(LTC_I64, lies);
    const auto along = static_cast<int64_t>(lies.size() == 1 ? 0 : dim);
    new_.append(
        {find_op("aten::sort.stable"), Kind::kSort, {index}, {keys, places}, {{"dim", LTC_ATTR_INT, {along}, {}}}, node.source});
    const auto widened = [&](ValueId value) {
      if (lies != sizes) value = new_.add_node(Kind::kReshape, {value}, {}, LTC_I64, sizes, node.source);
      return sizes == wide ? value : new_.add_node(Kind::kExpand, {value}, {}, LTC_I64, wide, node.source);
    };
    node.in[1] = widened(keys);
    node.in.push_back(widened(places));
    return node;
  }

  Graph& old_;
  Graph new_;
};

// ---- kernels

class Scatter {
 public:
  Scatter(Plan& plan, const Options& options, const Cluster& cluster)
      : plan_(plan), graph_(plan.graph), options_(options), cluster_(cluster), node_(graph_.nodes[cluster.rows_of]) {}

  void plan() {
    if (!copy_first()) return;
    if (node_.kind == Kind::kStridedScatter) return strided();
    index_ = graph_.values[node_.in[1]].sizes;
    if (count_of(index_) == 0) return;
    rank_0_ = index_.empty();
    dim_ = rank_0_ ? 0 : dim_of(node_, "dim", 0, index_.size());
    length_ = rank_0_ ? 1 : index_[dim_];
    const bool is_sorted = node_.in.size() == 4;
    if (!is_sorted) return along_lines();
    if (node_.kind == Kind::kScatter) return last_of_runs();
    add_runs();
  }

 private:
  KernelWriter writer_of(int64_t items) { return {plan_, options_, cluster_, items}; }
  Sizes lines_with(int64_t size) const {
    Sizes lines = index_;
    if (!rank_0_) lines[dim_] = size;
    return lines;
  }
  ltc_dtype dtype() const { return graph_.values[node_.out[0]].dtype; }
  // The bound of the index's elements.
  int64_t extent() const { return rank_0_ ? 1 : graph_.values[node_.out[0]].sizes[dim_]; }

  // The result begins as a copy of the first operand.
  bool copy_first() {
    const int64_t count = graph_.values[node_.out[0]].count;
    if (count == 0) return false;
    KernelWriter writer = writer_of(count);
    writer.emitter.store(node_.out[0], writer.item(), writer.at(node_.in[0], writer.item()));
    writer.finish(node_, "copy");
    return true;
  }

  // Where an element of the index says, and whether there is such a place.
  struct Target {
    Index position;
    Ref allowed;
  };
  Target target(KernelWriter& writer, Coords at, Ref picked) const {
    const Sizes& sizes = graph_.values[node_.out[0]].sizes;
    const Index place = writer.builder.data_index(picked, extent());
    if (!rank_0_) at[dim_] = place;
    return {writer.kernel.space.linear(at, sizes), writer.emitter.names_place(picked, extent())};
  }

  void store_in(KernelWriter& writer, BlockId block, const Index& position, Ref element, Ref guard) {
    const uint32_t slot = writer.builder.buffer(node_.out[0], dtype(), true);
    Inst inst{.code = Code::kStore, .dtype = dtype(), .args = {element}, .index = position, .slot = slot};
    if (guard != kNoRef) inst.args.push_back(guard);
    writer.builder.add_in(block, std::move(inst));
  }

  Ref old_in(KernelWriter& writer, BlockId block, const Index& position, Ref guard) {
    const uint32_t slot = writer.builder.buffer(node_.out[0], dtype(), true);
    Inst inst{.code = Code::kLoad, .dtype = dtype(), .index = position, .slot = slot, .of = dtype()};
    if (guard != kNoRef) inst.args = {guard};
    return writer.builder.add_in(block, std::move(inst));
  }

  void along_lines() {
    KernelWriter writer = writer_of(count_of(index_) / length_);
    const BlockId loop = writer.builder.open_loop(0, length_);
    Coords at = writer.kernel.space.split(writer.item(), lines_with(1));
    if (!rank_0_) at[dim_] = writer.builder.loop_index(loop);
    const Ref picked = writer.emitter.at(node_.in[1], at);
    const Target to = target(writer, at, picked);
    writer.emitter.check_index(node_, to.allowed, extent(), kNoRef);
    Ref element = writer.emitter.at(node_.in[2], at);
    if (node_.kind == Kind::kScatterAdd) {
      const Ref old = old_in(writer, loop, to.position, kNoRef);
      element = writer.apply_in(loop, formula(*node_.op, dtype()), dtype(), dtype(), {old, element});
    }
    store_in(writer, loop, to.position, element, to.allowed);
    writer.builder.close_loop(loop);
    writer.finish(node_, std::string(node_.op->name.substr(6)));
  }

  // Where elements of the geometry overlap, one work item writes all, in order.
  void strided() {
    const Value& source = graph_.values[node_.in[1]];
    if (source.count == 0) return;
    const auto& strides = node_.integers("stride");
    const bool serial = may_overlap(source.sizes, strides);
    KernelWriter writer = writer_of(serial ? 1 : source.count);
    const BlockId loop = serial ? writer.builder.open_loop(0, source.count) : 0;
    const Index from = serial ? writer.builder.loop_index(loop) : writer.item();
    const Coords at = writer.kernel.space.split(from, source.sizes);
    Index target{node_.integer("storage_offset", 0), {}};
    for (size_t dim = 0; dim < at.size(); ++dim)
      target = writer.kernel.space.sum(target, writer.kernel.space.scaled(at[dim], strides[dim]));
    store_in(writer, loop, target, writer.emitter.at(node_.in[1], at), kNoRef);
    if (serial) writer.builder.close_loop(loop);
    writer.finish(node_, "as_strided_scatter");
  }

  // Whether two elements of a geometry may be one: false if each stride steps over all that smaller ones reach.
  static bool may_overlap(const Sizes& sizes, const std::vector<int64_t>& strides) {
    std::vector<std::pair<int64_t, int64_t>> dims;
    for (size_t dim = 0; dim < sizes.size(); ++dim) {
      if (sizes[dim] > 1) dims.emplace_back(strides[dim], sizes[dim]);
    }
    std::ranges::sort(dims);
    int64_t reach = 0;
    for (const auto& [stride, size] : dims) {
      if (stride <= reach) return true;
      reach += stride * (size - 1);
    }
    return false;
  }

  // ---- by a sorted index

  static Ref both(KernelWriter& writer, Ref a, Ref b) {
    if (a == kNoRef || b == kNoRef) return a == kNoRef ? b : a;
    return writer.emitter.apply("(T)($0 & $1)", LTC_BOOL, LTC_BOOL, {a, b});
  }

  // An element of the sorted index, or of where its elements came from; 0 outside of the line.
  Ref entry(KernelWriter& writer, ValueId value, Coords at, const Index& place) const {
    const Ref exists = writer.emitter.inside(place, length_);
    at[dim_] = writer.kernel.space.within(place, length_);
    return writer.emitter.at(value, at, exists);
  }
  // Whether the line has such a place, and its key is this one.
  Ref has_key(KernelWriter& writer, const Coords& at, const Index& place, Ref key) const {
    const Ref other = entry(writer, node_.in[1], at, place);
    const Ref same = writer.emitter.apply("$0 == $1", LTC_I64, LTC_BOOL, {other, key});
    return both(writer, same, writer.emitter.inside(place, length_));
  }
  static Ref not_(KernelWriter& writer, Ref x) { return writer.emitter.apply("(T)!$0", LTC_BOOL, LTC_BOOL, {x}); }

  // The element that goes to the place of a sorted index.
  Ref source(KernelWriter& writer, Coords at, const Index& place) const {
    const Ref from = entry(writer, node_.in[3], at, place);
    at[dim_] = writer.builder.data_index(from, length_);
    return writer.emitter.at(node_.in[2], at, writer.emitter.inside(place, length_));
  }

  void last_of_runs() {
    KernelWriter writer = writer_of(count_of(index_));
    const Coords at = writer.kernel.space.split(writer.item(), index_);
    const Index place = at[dim_], next = writer.kernel.space.shifted(place, 1);
    const Ref key = entry(writer, node_.in[1], at, place);
    const Target to = target(writer, at, key);
    writer.emitter.check_index(node_, to.allowed, extent(), kNoRef);
    const Ref is_last = not_(writer, has_key(writer, at, next, key));
    store_in(writer, 0, to.position, source(writer, at, place), both(writer, to.allowed, is_last));
    writer.finish(node_, "scatter (sorted)");
  }

  // The result's old element and a sum become its new one.
  void add_to_result(KernelWriter& writer, BlockId loop, const Target& to, Ref sum, Ref guard) {
    const ltc_dtype in = writer.kernel.insts[sum].dtype;
    const Ref written = both(writer, to.allowed, guard),
              old = writer.emitter.cast(old_in(writer, loop, to.position, written), in);
    const Ref all = writer.apply_in(loop, formula(*node_.op, in), in, in, {old, sum});
    store_in(writer, loop, to.position, writer.emitter.cast(all, dtype()), written);
  }

  static Ref accumulator(KernelWriter& writer, ltc_dtype dtype) {
    return writer.builder.add({.code = Code::kAccumulator, .dtype = dtype, .of = dtype, .formula = "0"});
  }
  static void assign(KernelWriter& writer, BlockId loop, Ref to, Ref value) {
    writer.builder.add_in(loop, {.code = Code::kAssign, .dtype = writer.kernel.insts[to].dtype, .args = {to, value}});
  }

  void add_runs() {
    const auto chunk = static_cast<int64_t>(std::ceil(std::sqrt(static_cast<double>(length_))));
    const int64_t chunks = (length_ + chunk - 1) / chunk;
    const bool wide = is_float(dtype());
    const ltc_dtype in = !wide ? dtype() : options_.abilities.fp64 ? ltc_dtype{LTC_F64} : ltc_dtype{LTC_F32};
    // For each chunk: the sum that it adds to the run that it ends; the sum of the run that goes on behind it.
    const ValueId ends = plan_.add_work(in, lines_with(chunks)), goes_on = plan_.add_work(in, lines_with(chunks));
    add_chunks(chunk, chunks, in, ends, goes_on);
    join_chunks(chunk, chunks, in, ends, goes_on);
  }

  // A work item adds up a chunk of a line, and writes runs that lie within it.
  void add_chunks(int64_t chunk, int64_t chunks, ltc_dtype in, ValueId ends, ValueId goes_on) {
    KernelWriter writer = writer_of(count_of(lines_with(chunks)));
    IndexSpace& space = writer.kernel.space;
    const Coords at = space.split(writer.item(), lines_with(chunks));
    const Ref sum = accumulator(writer, in), state = accumulator(writer, LTC_I64);
    const BlockId loop = writer.builder.open_loop(0, chunk);
    const Index place = space.sum(space.scaled(at[dim_], chunk), writer.builder.loop_index(loop));
    const Ref exists = writer.emitter.inside(place, length_), key = entry(writer, node_.in[1], at, place);
    const Target to = target(writer, at, key);
    writer.emitter.check_index(node_, to.allowed, extent(), exists);
    const Ref goes_back = has_key(writer, at, space.shifted(place, -1), key);
    const Ref is_last = both(writer, exists, not_(writer, has_key(writer, at, space.shifted(place, 1), key)));
    // 0: no element yet; then whether the run began 1: before the chunk, 2: in it.
    const Ref is_first = writer.apply_in(loop, "!$0 || $1 == 0", LTC_I64, LTC_BOOL, {goes_back, state});
    const Ref now = writer.apply_in(loop, "!$0 ? 2 : $1 == 0 ? 1 : $1", LTC_I64, LTC_I64, {goes_back, state});
    const Ref element = writer.emitter.cast(source(writer, at, place), in);
    const Ref more = writer.apply_in(loop, formula(*node_.op, in), in, in, {sum, element});
    const Ref next = writer.apply_in(loop, kSelect, in, in, {is_first, element, more});
    const Ref began_here = writer.emitter.apply("$0 == 2", LTC_I64, LTC_BOOL, {now});
    add_to_result(writer, loop, to, next, both(writer, is_last, began_here));
    writer.emitter.store(ends, writer.item(), next, both(writer, is_last, not_(writer, began_here)));
    assign(writer, loop, sum, next);
    assign(writer, loop, state, now);
    writer.builder.close_loop(loop);
    writer.emitter.store(goes_on, writer.item(), writer.emitter.apply("$0", in, in, {sum}));
    writer.finish(node_, "scatter_add (chunks)");
  }

  // A work item per line adds up the runs that lie in several chunks.
  void join_chunks(int64_t chunk, int64_t chunks, ltc_dtype in, ValueId ends, ValueId goes_on) {
    KernelWriter writer = writer_of(count_of(index_) / length_);
    IndexSpace& space = writer.kernel.space;
    Coords at = space.split(writer.item(), lines_with(1));
    const Ref sum = accumulator(writer, in);
    const BlockId loop = writer.builder.open_loop(0, chunks);
    const Index part = writer.builder.loop_index(loop), begin = space.scaled(part, chunk), end = space.shifted(begin, chunk);
    const Ref first = entry(writer, node_.in[1], at, begin), last = entry(writer, node_.in[1], at, space.shifted(end, -1));
    const Ref goes_back = has_key(writer, at, space.shifted(begin, -1), first), goes_far = has_key(writer, at, end, last);
    const Ref one_run = writer.emitter.apply("$0 == $1", LTC_I64, LTC_BOOL, {first, last});
    const Ref passes = both(writer, both(writer, goes_back, goes_far), one_run);
    const Ref is_end = both(writer, goes_back, not_(writer, passes));
    const Target to = target(writer, at, first);
    at[dim_] = part;
    const Index position = space.linear(at, lines_with(chunks));
    const auto with_sum = [&](ValueId value, Ref guard) {
      const Ref element = writer.emitter.load(value, in, position, guard);
      return std::pair{element, writer.apply_in(loop, formula(*node_.op, in), in, in, {sum, element})};
    };
    add_to_result(writer, loop, to, with_sum(ends, is_end).second, is_end);
    const auto [own, more] = with_sum(goes_on, goes_far);
    assign(writer, loop, sum, writer.apply_in(loop, kSelect, in, in, {passes, more, own}));
    writer.builder.close_loop(loop);
    writer.finish(node_, "scatter_add (runs)");
  }

  Plan& plan_;
  Graph& graph_;
  const Options& options_;
  const Cluster& cluster_;
  const Node node_;  // copied, since values for work are added
  Sizes index_;
  bool rank_0_ = false;
  size_t dim_ = 0;
  int64_t length_ = 1;
};

}  // namespace

void sort_scatters(Graph& graph, const Options& options) {
  if (options.block_sorts) Sorter(graph).sort();
}

void plan_scatter(Plan& plan, const Options& options, const Cluster& cluster) { Scatter(plan, options, cluster).plan(); }

}  // namespace ltc::kernels
