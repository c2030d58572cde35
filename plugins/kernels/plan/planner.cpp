#include "kernels/plan/planner.h"

#include <algorithm>

#include "kernels/fuse/import.h"
#include "kernels/fuse/products.h"
#include "kernels/fuse/scaled_product.h"
#include "kernels/fuse/split_reduce.h"
#include "kernels/graph/reads.h"
#include "kernels/plan/block_sort.h"
#include "kernels/plan/im2col_kernel.h"
#include "kernels/plan/in_place.h"
#include "kernels/plan/kernel_writer.h"
#include "kernels/plan/scatter.h"
#include "kernels/plan/sort.h"

namespace ltc::kernels {
namespace {

constexpr const char* kActivationLabels[] = {"", "+relu", "+gelu"};

class Planner {
 public:
  Planner(Plan& plan, const Options& options) : plan_(plan), graph_(plan.graph), options_(options) {}

  void plan() {
    for (const Cluster& cluster : plan_.fusion.clusters) {
      const size_t before = plan_.steps.size();
      if (cluster.form == Cluster::Form::kUnfusable) {
        plan_unfusable(cluster);
      } else if (!plan_windows(cluster)) {
        plan_cluster(cluster);
      }
      for (size_t i = before; i < plan_.steps.size(); ++i) explain(plan_.steps[i], cluster);
    }
  }

 private:
  void explain(Step& step, const Cluster& cluster) const {
    for (const NodeId id : cluster.nodes) {
      const Node& node = graph_.nodes[id];
      step.nodes.push_back(node.source);
      step.nodes.insert(step.nodes.end(), node.also.begin(), node.also.end());
    }
    std::ranges::sort(step.nodes);
    step.nodes.erase(std::ranges::unique(step.nodes).begin(), step.nodes.end());
    step.note = cluster.note;
  }

  // A pack of windows that does as much as is compiled for its sizes anyway.
  bool plan_windows(const Cluster& cluster) {
    if (cluster.form != Cluster::Form::kMap || cluster.stored.size() != 1) return false;
    const ValueId tiles = cluster.stored[0];
    const Node& pack = graph_.nodes[graph_.values[tiles].producer];
    if (pack.kind != Kind::kPack || graph_.values[tiles].count < kMuchWork || plan_.fusion.is_stored[pack.in[0]]) return false;
    auto windows = im2col_kernel(graph_, pack.in[0], tiles);
    if (!windows || !plan_.fusion.is_stored[windows->image]) return false;
    Step step{*windows, {}, {}, pack.source, "windows"};
    step.buffers = {{windows->image, windows->dtype, false}, {tiles, windows->dtype, true}};
    plan_.steps.push_back(std::move(step));
    return true;
  }

  void plan_cluster(const Cluster& cluster) {
    const bool empty = std::ranges::all_of(cluster.stored, [&](ValueId value) { return graph_.values[value].count == 0; });
    if (empty || cluster.items == 0) return;
    KernelWriter writer(plan_, options_, cluster, cluster.items);
    const bool rows = cluster.form == Cluster::Form::kRows;
    writer.kernel.loops_in_any_order = true;
    BlockId loop = kNone;  // over the elements of a row
    for (const ValueId value : cluster.stored) {
      const Value& type = graph_.values[value];
      if (type.count == 0) continue;
      const bool in_row = rows && type.count != cluster.items;
      if (in_row && loop == kNone) loop = writer.builder.open_loop(0, cluster.length);
      const Index r = in_row ? writer.builder.loop_index(loop) : Index{};
      const Positions positions = positions_of(graph_, cluster, writer.item(), r, writer.kernel.space);
      const Index& position = in_row ? positions.full : positions.row;
      writer.emitter.store(value, position, writer.at(value, position));
    }
    if (loop != kNone) writer.builder.close_loop(loop);
    const Node& last = graph_.nodes[graph_.values[cluster.members.back()].producer];
    writer.finish(last, label_of(cluster));
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

  void plan_unfusable(const Cluster& cluster) {
    const Node& node = graph_.nodes[cluster.rows_of];
    switch (node.kind) {
      case Kind::kScan: return plan_scan(cluster, node);
      case Kind::kScatter:
      case Kind::kScatterAdd:
      case Kind::kStridedScatter: return plan_scatter(plan_, options_, cluster);
      case Kind::kSort: return plan_sort(node);
      case Kind::kAttention: return plan_attention(node);
      case Kind::kLibraryConvolution: return plan_convolution(node);
      case Kind::kScaledProduct: return plan_scaled_product(node);
      case Kind::kCollective: return plan_collective(node);
      default: return plan_product(node);
    }
  }

  // A work item per row adds up and writes as it goes.
  void plan_scan(const Cluster& cluster, const Node& node) {
    const Value result = graph_.values[node.out[0]];
    if (result.count == 0) return;
    const int64_t length = row_length(graph_, node);
    KernelWriter writer(plan_, options_, cluster, result.count / length);
    const ltc_dtype in = writer.emitter.sum_dtype(result.dtype);
    const std::string_view both = formula(*node.op, result.dtype), initial = both.substr(0, both.find(';'));
    const Ref sum = writer.builder.add({.code = Code::kAccumulator, .dtype = in, .of = in, .formula = initial});
    const BlockId loop = writer.builder.open_loop(0, length);
    Sizes rows = result.sizes;
    for (const size_t dim : row_dims(graph_, node)) rows[dim] = 1;
    const Read read = row_element(graph_, node, writer.kernel.space.split(writer.item(), rows), writer.builder.loop_index(loop),
                                  writer.kernel.space);
    const Ref element = writer.emitter.cast(writer.emitter.at(read.operand, read.at), in);
    const Ref next = writer.builder.add_in(
        loop,
        {.code = Code::kFormula, .dtype = in, .args = {element, sum}, .of = in, .formula = both.substr(initial.size() + 1)});
    writer.kernel.scan = Scan{loop, sum, next};
    writer.builder.add_in(loop, {.code = Code::kAssign, .dtype = in, .args = {sum, next}});
    const Ref now = writer.builder.add_in(loop, {.code = Code::kFormula, .dtype = in, .args = {sum}, .of = in, .formula = "$0"});
    writer.emitter.store(node.out[0], writer.kernel.space.linear(read.at, result.sizes), writer.emitter.cast(now, result.dtype));
    writer.builder.close_loop(loop);
    writer.finish(node, std::string(node.op->name.substr(6)));
  }

  // Where the node writes a result, though nobody may want it.
  ValueId result(const Node& node, size_t i, ltc_dtype dtype, const Sizes& sizes) {
    const ValueId value = node.out[i];
    return value != kNone && plan_.fusion.is_stored[value] ? value : plan_.add_work(dtype, sizes);
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
    const ValueId sums = plan_.add_work(LTC_F32, per_row), dq = result(node, 0, dtype, q);
    add(AttentionPass::kQueryGradient, in, {sums, dq}, "attention_backward (query)");
    const ValueId dk = result(node, 1, dtype, k), dv = result(node, 2, dtype, v);
    add(AttentionPass::kKeyGradient, {in[0], in[1], in[2], in[3], sums, in[5]}, {dk, dv}, "attention_backward (key, value)");
  }

  void plan_sort(const Node& node) {
    // The operand may have another shape (scatter.h).
    const ltc_dtype dtype = graph_.values[node.in[0]].dtype;
    const Sizes sizes = graph_.values[node.out[node.out[0] == kNone]].sizes;
    const int64_t count = count_of(sizes);
    if (count == 0) return;
    const size_t dim = sizes.empty() ? 0 : dim_of(node, "dim", -1, sizes.size());
    const int64_t length = sizes.empty() ? 1 : sizes[dim], stride = sizes.empty() ? 1 : dense_strides(sizes)[dim];
    const ValueId values = result(node, 0, dtype, sizes), positions = result(node, 1, LTC_I64, sizes);
    const SortKernel sort{dtype, count / length, length, stride, node.integer("descending", 0) != 0};
    const KernelBuffer from{node.in[0], dtype, false};
    const std::vector<KernelBuffer> to{{values, dtype, true}, {positions, LTC_I64, true}};
    if (options_.block_sorts) return plan_sort_passes(node, sort, from, to);
    const ValueId order = plan_.add_work(LTC_I32, sizes), spare = plan_.add_work(LTC_I32, sizes);
    plan_.steps.push_back({sort, {from, to[0], to[1], {order, LTC_I32, true}, {spare, LTC_I32, true}}, {}, node.source, "sort"});
  }

  void plan_sort_passes(const Node& node, const SortKernel& sort, KernelBuffer from, const std::vector<KernelBuffer>& to) {
    std::vector<KernelBuffer> buffers{from};
    for (int64_t run = 0, next = kSortTile;; run = next, next *= 2) {
      const bool last = next >= sort.length;
      const Sizes rows{sort.rows, sort.length};
      const std::vector<KernelBuffer> made = last
                                                 ? to
                                                 : std::vector<KernelBuffer>{{plan_.add_work(sort.dtype, rows), sort.dtype, true},
                                                                             {plan_.add_work(LTC_I32, rows), LTC_I32, true}};
      buffers.insert(buffers.end(), made.begin(), made.end());
      plan_.steps.push_back({SortPass{sort, run, last}, std::move(buffers), {}, node.source, run ? "sort (merge)" : "sort"});
      if (last) return;
      buffers = made;
      for (KernelBuffer& buffer : buffers) buffer.written = false;
    }
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

  // Without elements too, where the other ranks may have some.
  void plan_collective(const Node& node) {
    const Collective work = collective(graph_, node);
    if (work.count == 0 && work.kind != CollectiveKind::kAllToAll) return;
    const ValueId made = result(node, 0, work.dtype, {result_count(work, node)}), token = result(node, 1, LTC_U8, {1});
    Step step{work, {}, {}, node.source, std::string(node.op->name.substr(node.op->name.find(':') + 2))};
    step.buffers = {{node.in[0], work.dtype, false}, {made, work.dtype, true}, {token, LTC_U8, true}};
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

  void plan_scaled_product(const Node& node) {
    const StridedMatrix a = scaled_operand(graph_, node, 0), b = scaled_operand(graph_, node, 1);
    const Sizes &rows = graph_.values[node.in[0]].sizes, &columns = graph_.values[node.in[1]].sizes;
    const bool with_bias = node.in.size() > 4, fast = node.integer("use_fast_accum", 0) != 0;
    Step step{Product{dtype(a.value),
                      1,
                      rows[0],
                      columns[0],
                      rows[1],
                      a,
                      {b.value, b.offset, 0, b.column, b.row},
                      dtype(node.out[0]),
                      fast,
                      {.bias = with_bias},
                      dtype(b.value)},
              {},
              {},
              node.source,
              std::string("scaled_mm") + (with_bias ? "+bias" : "")};
    step.buffers = {{a.value, dtype(a.value), false}, {b.value, dtype(b.value), false}, {node.out[0], dtype(node.out[0]), true}};
    for (size_t i = 2; i < node.in.size(); ++i) step.buffers.push_back({node.in[i], dtype(node.in[i]), false});
    plan_.steps.push_back(std::move(step));
  }

  ltc_dtype dtype(ValueId value) const { return graph_.values[value].dtype; }

  Plan& plan_;
  Graph& graph_;
  const Options& options_;
};

}  // namespace

Plan make_plan(const ltc_graph& graph, const Options& options) {
  Plan plan{import_graph(graph, options.extras, options.points_by_image), {}, {}, {}, {}};
  join_heads(plan.graph);
  split_reductions(plan.graph, options);
  sort_scatters(plan.graph, options);
  narrow_products(plan.graph, options);
  std::vector<std::string> notes = extend_products(plan.graph, options);
  pack_products(plan.graph, options);
  plan.fusion = fuse(plan.graph, options);
  plan.fusion.notes.insert(plan.fusion.notes.begin(), notes.begin(), notes.end());
  if (options.check_indices) plan.faults = {plan.add_work(LTC_I64, {1}), plan.add_work(LTC_I64, {})};
  Planner(plan, options).plan();
  find_in_place(plan);
  return plan;
}

Source render(const Step& step, const Dialect& dialect) {
  if (const auto* sort = std::get_if<SortKernel>(&step.work)) return render_sort(*sort, dialect);
  if (const auto* pass = std::get_if<SortPass>(&step.work)) return render_sort_pass(*pass, dialect);
  if (const auto* windows = std::get_if<Im2colKernel>(&step.work)) return render_im2col(*windows, dialect);
  if (const auto* attention = std::get_if<AttentionKernel>(&step.work)) return render_attention(*attention, dialect);
  return render(std::get<Kernel>(step.work), dialect);
}

}  // namespace ltc::kernels
