#include "plan.h"

#include <algorithm>

#include "emit.h"
#include "in_place.h"
#include "reads.h"
#include "sort.h"
#include "split.h"
#include "windows.h"

namespace ltc::kernels {
namespace {

constexpr const char* kActivationLabels[] = {"", "+relu", "+gelu"};

class Planner {
 public:
  Planner(Plan& plan, const Options& options) : plan_(plan), graph_(plan.graph), options_(options) {}

  void plan() {
    for (const Cluster& cluster : plan_.fusion.clusters) {
      if (cluster.form == Cluster::Form::kAlone) {
        plan_alone(cluster);
      } else if (!plan_windows(cluster)) {
        plan_cluster(cluster);
      }
    }
  }

 private:
  // What writes a kernel: the kernel, its builder, its emitter.
  struct Workshop {
    Workshop(const Planner& planner, const Cluster& cluster, int64_t items)
        : builder(kernel, items),
          emitter(
              planner.graph_, kernel, builder,
              [&planner, &cluster](ValueId value) {
                return planner.plan_.fusion.is_stored[value] && !std::ranges::count(cluster.members, value);
              },
              planner.options_.abilities) {}
    Index item() const { return kernel.space.of_var(kernel.item); }
    // The element of a value whose position this is.
    Ref at(const Planner& planner, ValueId value, const Index& position) {
      return emitter.at(value, kernel.space.split(position, planner.graph_.values[value].sizes));
    }

    Kernel kernel;
    Builder builder;
    Emitter emitter;
  };

  void finish(Workshop& shop, const Node& node, std::string label) {
    Step step{std::move(shop.kernel), {}, {}, node.source, std::move(label)};
    step.buffers = std::get<Kernel>(step.work).buffers;
    step.scalars = std::get<Kernel>(step.work).scalars;
    plan_.steps.push_back(std::move(step));
  }

  // A pack of windows that does as much as is compiled for its sizes anyway.
  bool plan_windows(const Cluster& cluster) {
    if (cluster.form != Cluster::Form::kMap || cluster.stored.size() != 1) return false;
    const ValueId tiles = cluster.stored[0];
    const Node& pack = graph_.nodes[graph_.values[tiles].producer];
    if (pack.kind != Kind::kPack || graph_.values[tiles].count < kMuchWork || plan_.fusion.is_stored[pack.in[0]]) return false;
    auto windows = packed_windows(graph_, pack.in[0], tiles);
    if (!windows || !plan_.fusion.is_stored[windows->image]) return false;
    Step step{*windows, {}, {}, pack.source, "windows"};
    step.buffers = {{windows->image, windows->dtype, false}, {tiles, windows->dtype, true}};
    plan_.steps.push_back(std::move(step));
    return true;
  }

  void plan_cluster(const Cluster& cluster) {
    const bool empty = std::ranges::all_of(cluster.stored, [&](ValueId value) { return graph_.values[value].count == 0; });
    if (empty || cluster.items == 0) return;
    Workshop shop(*this, cluster, cluster.items);
    const bool rows = cluster.form == Cluster::Form::kRows;
    shop.kernel.loops_in_any_order = true;
    BlockId loop = kNone;  // over the elements of a row
    for (const ValueId value : cluster.stored) {
      const Value& type = graph_.values[value];
      if (type.count == 0) continue;
      const bool in_row = rows && type.count != cluster.items;
      if (in_row && loop == kNone) loop = shop.builder.open_loop(0, cluster.length);
      const Index r = in_row ? shop.builder.loop_index(loop) : Index{};
      const Positions positions = positions_of(graph_, cluster, shop.item(), r, shop.kernel.space);
      const Index& position = in_row ? positions.full : positions.row;
      shop.emitter.store(value, position, shop.at(*this, value, position));
    }
    if (loop != kNone) shop.builder.close_loop(loop);
    const Node& last = graph_.nodes[graph_.values[cluster.members.back()].producer];
    finish(shop, last, label_of(cluster));
  }

  std::string label_of(const Cluster& cluster) const {
    std::string label;
    for (const ValueId value : cluster.members) {
      if (label.size() > 100) return label + "+...";
      const std::string name = op_name(graph_.nodes[graph_.values[value].producer]);
      label += (label.empty() ? "" : "+") + name.substr(name.find(':') + 2);
    }
    return label;
  }

  // ---- kernels of one node

  void plan_alone(const Cluster& cluster) {
    const Node& node = graph_.nodes[cluster.rows_of];
    switch (node.kind) {
      case Kind::kScan: return plan_scan(cluster, node);
      case Kind::kScatter:
      case Kind::kScatterAdd: return plan_scatter(cluster, node);
      case Kind::kStridedScatter: return plan_strided_scatter(cluster, node);
      case Kind::kSort: return plan_sort(node);
      case Kind::kAttention: return plan_attention(node);
      case Kind::kLibraryConvolution: return plan_convolution(node);
      default: return plan_product(node);
    }
  }

  // A work item per row adds up and writes as it goes.
  void plan_scan(const Cluster& cluster, const Node& node) {
    const Value result = graph_.values[node.out[0]];
    if (result.count == 0) return;
    const int64_t length = row_length(graph_, node);
    Workshop shop(*this, cluster, result.count / length);
    const ltc_dtype in = shop.emitter.sum_dtype(result.dtype);
    const std::string_view both = formula(*node.op, result.dtype), initial = both.substr(0, both.find(';'));
    const Ref sum = shop.builder.add({.code = Code::kAccumulator, .dtype = in, .of = in, .formula = initial});
    const BlockId loop = shop.builder.open_loop(0, length);
    Sizes rows = result.sizes;
    for (const size_t dim : row_dims(graph_, node)) rows[dim] = 1;
    const Read read =
        row_element(graph_, node, shop.kernel.space.split(shop.item(), rows), shop.builder.loop_index(loop), shop.kernel.space);
    const Ref element = shop.emitter.cast(shop.emitter.at(read.operand, read.at), in);
    const Ref next = shop.builder.add_in(
        loop,
        {.code = Code::kFormula, .dtype = in, .args = {element, sum}, .of = in, .formula = both.substr(initial.size() + 1)});
    shop.kernel.scan = Scan{loop, sum, next};
    shop.builder.add_in(loop, {.code = Code::kAssign, .dtype = in, .args = {sum, next}});
    const Ref now = shop.builder.add_in(loop, {.code = Code::kFormula, .dtype = in, .args = {sum}, .of = in, .formula = "$0"});
    shop.emitter.store(node.out[0], shop.kernel.space.linear(read.at, result.sizes), shop.emitter.cast(now, result.dtype));
    shop.builder.close_loop(loop);
    finish(shop, node, std::string(node.op->name.substr(6)));
  }

  // The result begins as a copy of the first operand.
  bool copy_first(const Cluster& cluster, const Node& node) {
    const Value& result = graph_.values[node.out[0]];
    if (result.count == 0) return false;
    Workshop shop(*this, cluster, result.count);
    shop.emitter.store(node.out[0], shop.item(), shop.at(*this, node.in[0], shop.item()));
    finish(shop, node, "copy");
    return true;
  }

  // A work item per line of the index walks along it, so two of a line never write at once, and lines never meet.
  void plan_scatter(const Cluster& cluster, const Node& node) {
    const Value result = graph_.values[node.out[0]], index = graph_.values[node.in[1]];
    if (!copy_first(cluster, node) || index.count == 0) return;
    const bool rank_0 = index.sizes.empty();
    const size_t dim = rank_0 ? 0 : dim_of(node, "dim", 0, index.sizes.size());
    const int64_t length = rank_0 ? 1 : index.sizes[dim], extent = rank_0 ? 1 : result.sizes[dim];
    Sizes lines = index.sizes;
    if (!rank_0) lines[dim] = 1;
    Workshop shop(*this, cluster, index.count / length);
    const BlockId loop = shop.builder.open_loop(0, length);
    Coords at = shop.kernel.space.split(shop.item(), lines);
    if (!rank_0) at[dim] = shop.builder.loop_index(loop);
    const Ref picked = shop.emitter.at(node.in[1], at);
    const Index place = shop.builder.data_index(picked, extent);
    const Ref allowed =
        shop.emitter.apply("$0 >= 0 && $0 < $1", LTC_I64, LTC_BOOL,
                           {picked, shop.builder.add({.code = Code::kIndex, .dtype = LTC_I64, .index = {extent, {}}})});
    Ref element = shop.emitter.at(node.in[2], at);
    if (!rank_0) at[dim] = place;
    const Index target = shop.kernel.space.linear(at, result.sizes);
    if (node.kind == Kind::kScatterAdd) {
      const uint32_t slot = shop.builder.buffer(node.out[0], result.dtype, true);
      const Ref old = shop.builder.add_in(
          loop, {.code = Code::kLoad, .dtype = result.dtype, .index = target, .slot = slot, .of = result.dtype});
      element = shop.builder.add_in(loop, {.code = Code::kFormula,
                                           .dtype = result.dtype,
                                           .args = {old, element},
                                           .of = result.dtype,
                                           .formula = formula(*node.op, result.dtype)});
    }
    store_in(shop, loop, node.out[0], target, element, allowed);
    shop.builder.close_loop(loop);
    finish(shop, node, std::string(node.op->name.substr(6)));
  }

  void store_in(Workshop& shop, BlockId loop, ValueId value, const Index& position, Ref element, Ref guard) {
    const uint32_t slot = shop.builder.buffer(value, graph_.values[value].dtype, true);
    Inst inst{.code = Code::kStore, .dtype = graph_.values[value].dtype, .args = {element}, .index = position, .slot = slot};
    if (guard != kNoRef) inst.args.push_back(guard);
    shop.builder.add_in(loop, std::move(inst));
  }

  // Where elements of the geometry overlap, one work item writes all, in order.
  void plan_strided_scatter(const Cluster& cluster, const Node& node) {
    const Value& source = graph_.values[node.in[1]];
    if (!copy_first(cluster, node) || source.count == 0) return;
    const auto& strides = node.integers("stride");
    const bool serial = may_overlap(source.sizes, strides);
    Workshop shop(*this, cluster, serial ? 1 : source.count);
    const BlockId loop = serial ? shop.builder.open_loop(0, source.count) : 0;
    const Index from = serial ? shop.builder.loop_index(loop) : shop.item();
    const Coords at = shop.kernel.space.split(from, source.sizes);
    Index target{node.integer("storage_offset", 0), {}};
    for (size_t dim = 0; dim < at.size(); ++dim)
      target = shop.kernel.space.sum(target, shop.kernel.space.scaled(at[dim], strides[dim]));
    store_in(shop, loop, node.out[0], target, shop.emitter.at(node.in[1], at), kNoRef);
    if (serial) shop.builder.close_loop(loop);
    finish(shop, node, "as_strided_scatter");
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

  ValueId work_value(ltc_dtype dtype, const Sizes& sizes) {
    plan_.fusion.is_stored.push_back(true);
    return graph_.add_value(dtype, sizes);
  }

  // Where the node writes a result, though nobody may want it.
  ValueId result(const Node& node, size_t i, ltc_dtype dtype, const Sizes& sizes) {
    const ValueId value = node.out[i];
    return value != kNone && plan_.fusion.is_stored[value] ? value : work_value(dtype, sizes);
  }

  void plan_attention(const Node& node) {
    const bool backward = node.op->name.ends_with("_backward");
    const size_t count = backward ? 6 : 3, query = backward ? 1 : 0;
    std::vector<ValueId> in;
    for (size_t i = 0; i < count; ++i) in.push_back(attention_operand(graph_, node, i).value);
    const bool masked = node.in.size() > count && node.in[count] != kNone;
    const ValueId mask = masked ? attention_operand(graph_, node, count).value : kNone;
    const auto add = [&](AttentionPass pass, std::vector<ValueId> from, std::vector<ValueId> to, const char* label) {
      Step step{attention_of(graph_, node, pass, options_.extras.attention_mma), {}, {}, node.source, label};
      if (mask != kNone) from.push_back(mask);
      for (const ValueId value : from) step.buffers.push_back({value, graph_.values[value].dtype, false});
      for (const ValueId value : to) step.buffers.push_back({value, graph_.values[value].dtype, true});
      plan_.steps.push_back(std::move(step));
    };
    const Sizes q = graph_.values[node.in[query]].sizes, k = graph_.values[node.in[query + 1]].sizes,
                v = graph_.values[node.in[query + 2]].sizes;
    const ltc_dtype dtype = graph_.values[in[query]].dtype;
    const Sizes per_row{q[0], q[1], q[2]};
    if (!backward) {
      const ValueId output = result(node, 0, dtype, {q[0], q[1], q[2], v[3]}), logs = result(node, 1, LTC_F32, per_row);
      return add(AttentionPass::kForward, in, {output, logs}, "attention");
    }
    const ValueId sums = work_value(LTC_F32, per_row), dq = result(node, 0, dtype, q);
    add(AttentionPass::kQueryGradient, in, {sums, dq}, "attention_backward (query)");
    const ValueId dk = result(node, 1, dtype, k), dv = result(node, 2, dtype, v);
    add(AttentionPass::kKeyGradient, {in[0], in[1], in[2], in[3], sums, in[5]}, {dk, dv}, "attention_backward (key, value)");
  }

  void plan_sort(const Node& node) {
    const Value x = graph_.values[node.in[0]];
    if (x.count == 0) return;
    const size_t dim = x.sizes.empty() ? 0 : dim_of(node, "dim", -1, x.sizes.size());
    const int64_t length = x.sizes.empty() ? 1 : x.sizes[dim], stride = x.sizes.empty() ? 1 : dense_strides(x.sizes)[dim];
    const ValueId values = result(node, 0, x.dtype, x.sizes), positions = result(node, 1, LTC_I64, x.sizes);
    const ValueId order = work_value(LTC_I32, x.sizes), spare = work_value(LTC_I32, x.sizes);
    Step step{
        SortKernel{x.dtype, x.count / length, length, stride, node.integer("descending", 0) != 0}, {}, {}, node.source, "sort"};
    step.buffers = {{node.in[0], x.dtype, false},
                    {values, x.dtype, true},
                    {positions, LTC_I64, true},
                    {order, LTC_I32, true},
                    {spare, LTC_I32, true}};
    plan_.steps.push_back(std::move(step));
  }

  void plan_convolution(const Node& node) {
    LibraryConvolution convolution = library_convolution(graph_, node);
    convolution.rounds = convolution.dtype == LTC_F32 && options_.rounding.convolutions_in_tf32;
    Step step{std::move(convolution), {}, {}, node.source, "convolution"};
    for (const ValueId value : {node.in[0], node.in[1], node.out[0]}) {
      step.buffers.push_back({value, graph_.values[value].dtype, value == node.out[0]});
    }
    plan_.steps.push_back(std::move(step));
  }

  StridedMatrix matrix(ValueId value) const {
    const Sizes strides = dense_strides(graph_.values[value].sizes);
    return strided_matrix(graph_, value, options_).value_or(StridedMatrix{value, 0, strides[0], strides[1], strides[2]});
  }

  bool may_round(ltc_dtype dtype) const {
    const auto& rounding = options_.rounding;
    switch (dtype) {
      case LTC_F32: return rounding.products_in_tf32;
      case LTC_F16: return rounding.sums_in_f16;
      case LTC_BF16: return rounding.sums_in_bf16;
      default: return false;
    }
  }

  void plan_product(const Node& node) {
    const Value &a = graph_.values[node.in[0]], &c = graph_.values[node.out[0]];
    if (c.count == 0) return;
    const Epilogue epilogue = epilogue_of(node);
    const StridedMatrix left = matrix(node.in[0]);
    const StridedMatrix right = options_.tile_columns ? StridedMatrix{node.in[1], 0, 0, 0, 0} : matrix(node.in[1]);
    Step step{Product{a.dtype, a.sizes[0], a.sizes[1], product_columns(graph_, node), a.sizes[2], left, right, c.dtype,
                      may_round(a.dtype), epilogue},
              {},
              {},
              node.source,
              std::string("bmm") + (epilogue.bias ? "+bias" : "") + kActivationLabels[static_cast<size_t>(epilogue.activation)]};
    step.buffers = {{left.value, a.dtype, false}, {right.value, a.dtype, false}, {node.out[0], c.dtype, true}};
    if (epilogue.bias) step.buffers.push_back({node.in[2], c.dtype, false});
    if (epilogue.keeps_input) step.buffers.push_back({node.out[1], c.dtype, true});
    plan_.steps.push_back(std::move(step));
  }

  Plan& plan_;
  Graph& graph_;
  const Options& options_;
};

}  // namespace

Plan make_plan(const ltc_graph& graph, const Options& options) {
  Plan plan{import_graph(graph, options.extras, options.points_by_image), {}, {}, {}};
  join_heads(plan.graph);
  split_reductions(plan.graph, options);
  narrow_products(plan.graph, options);
  std::vector<std::string> notes = extend_products(plan.graph, options);
  pack_products(plan.graph, options);
  plan.fusion = fuse(plan.graph, options);
  plan.fusion.notes.insert(plan.fusion.notes.begin(), notes.begin(), notes.end());
  Planner(plan, options).plan();
  find_in_place(plan);
  return plan;
}

Source render(const Step& step, const Dialect& dialect) {
  if (const auto* sort = std::get_if<SortKernel>(&step.work)) return render_sort(*sort, dialect);
  if (const auto* windows = std::get_if<WindowsKernel>(&step.work)) return render_windows(*windows, dialect);
  if (const auto* attention = std::get_if<AttentionKernel>(&step.work)) return render_attention(*attention, dialect);
  return render(std::get<Kernel>(step.work), dialect);
}

}  // namespace ltc::kernels
