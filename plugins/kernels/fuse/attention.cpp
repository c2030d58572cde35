#include "kernels/fuse/attention.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "kernels/fuse/attention_fragments_text.h"
#include "kernels/fuse/attention_mma_text.h"
#include "kernels/fuse/attention_text.h"
#include "kernels/graph/dtype.h"
#include "kernels/print/formula.h"

namespace ltc::kernels {
namespace {

constexpr int64_t kWidest = 128;
constexpr int64_t kNarrow = 64;  // a width up to which a tile has more rows or columns
constexpr int64_t kThreads = 128;

struct Operands {
  size_t query, count;  // its place, those without the mask
};
Operands operands_of(bool backward) { return backward ? Operands{1, 6} : Operands{0, 3}; }

bool is_backward(const Node& node) { return node.op->name.ends_with("_backward"); }

bool is_held(ltc_dtype dtype) { return dtype == LTC_F32 || is_half(dtype); }

// The sizes that the kernel goes by agree, and it has room for them.
bool sizes_fit(const ltc_type& q, const ltc_type& k, const ltc_type& v) {
  if (q.rank != 4 || k.rank != 4 || v.rank != 4) return false;
  const bool agree = q.sizes[0] == k.sizes[0] && q.sizes[0] == v.sizes[0] && k.sizes[1] == v.sizes[1] &&
                     k.sizes[2] == v.sizes[2] && q.sizes[3] == k.sizes[3];
  const bool full = count_of({q.sizes, q.sizes + 4}) > 0 && count_of({k.sizes, k.sizes + 4}) > 0 && v.sizes[3] > 0;
  return agree && full && q.sizes[1] % k.sizes[1] == 0 && std::max(q.sizes[3], v.sizes[3]) <= kWidest;
}

bool mask_fits(const ltc_type& mask, const ltc_type& q, const ltc_type& k) {
  const int64_t whole[] = {q.sizes[0], q.sizes[1], q.sizes[2], k.sizes[2]};
  if (mask.rank > 4 || (mask.dtype != LTC_BOOL && !is_held(mask.dtype))) return false;
  for (size_t dim = 0; dim < mask.rank; ++dim) {
    const int64_t size = mask.sizes[mask.rank - 1 - dim];
    if (size != 1 && size != whole[3 - dim]) return false;
  }
  return true;
}

// Rows and columns of a tile.
struct Tile {
  int64_t rows, columns;
};

// Four warps share the rows, or the keys, whose sums they keep in registers: 16 each, or 32, which halve what a warp reads of the
// other side for each product, need twice the registers (with a mask more than there are), and enough rows to keep a device busy.
Tile mma_tile_of(const AttentionKernel& attention, bool narrow) {
  constexpr int64_t kBusyBlocks = 256;
  if (attention.dtype == LTC_F32) {  // twice the bytes: half the columns or rows of the other side
    if (attention.pass == AttentionPass::kForward) return {64, narrow ? 64 : 32};
    return attention.pass == AttentionPass::kQueryGradient ? Tile{64, 32} : Tile{32, 64};
  }
  const bool tall = narrow && !attention.mask && attention.batch * attention.heads * (attention.rows / 128) >= kBusyBlocks;
  switch (attention.pass) {
    case AttentionPass::kForward: return {tall ? 128 : 64, 64};
    case AttentionPass::kQueryGradient: return {64, narrow ? 64 : 32};
    default: return {narrow ? 64 : 32, 64};
  }
}

Tile tile_of(const AttentionKernel& attention) {
  const bool narrow = std::max(attention.width, attention.value_width) <= kNarrow;
  if (attention.mma) return mma_tile_of(attention, narrow);
  if (attention.pass == AttentionPass::kForward) return {narrow ? 64 : 32, 32};
  return narrow ? Tile{32, 32} : Tile{16, 16};
}

std::string widened(ltc_dtype dtype) {
  return dtype == LTC_F16 ? "ltc_f16_to_f32(x)" : dtype == LTC_BF16 ? "ltc_bf16_to_f32(x)" : "(f32)(x)";
}

std::string constants(const AttentionKernel& attention) {
  const Tile tile = tile_of(attention);
  const auto integer = [](const char* name, int64_t value) {
    return "  constexpr i32 " + std::string(name) + " = " + std::to_string(value) + ";\n";
  };
  const bool by_key = attention.pass == AttentionPass::kKeyGradient;
  const std::string forms = attention.mma
                                ? integer("kBf16", attention.dtype == LTC_BF16) + integer("kMasked", attention.mask != 0) +
                                      integer("kByKey", by_key) + integer("kTall", (by_key ? tile.columns : tile.rows) / 64)
                                : "";
  return integer("kRows", tile.rows) + integer("kColumns", tile.columns) + integer("kWidth", attention.width) +
         integer("kValueWidth", attention.value_width) + integer("kCausal", attention.causal) + forms +
         "  const f32 scale = " + real_text(static_cast<float>(attention.scale), LTC_F32) + ";\n";
}

// Whether a score counts, and what is added to it.
std::string mask_text(const AttentionKernel& attention) {
  const std::string at = "mask[mask_offset + batch * mask_batch + head * mask_head + row * mask_row + column * mask_column]";
  const std::string none = "    return kCausal && column > row ? -INFINITY : s;\n";
  std::string text =
      "  const auto masked = [&](f32 s, i64 batch, i64 head, i64 row, i64 column) -> f32 {\n"
      "    if (row >= rows || column >= columns) return -INFINITY;\n";
  if (attention.mask == LTC_BOOL) text += "    if (!" + at + ") return -INFINITY;\n";
  if (is_held(attention.mask)) text += "    { const auto x = " + at + "; s += " + widened(attention.mask) + "; }\n";
  return text + none + "  };\n";
}

enum class BufferKind : uint8_t { kMatrix, kNumbers, kResult, kNumbersResult };  // numbers: F32, one for each row of the query

bool is_matrix(BufferKind kind) { return kind == BufferKind::kMatrix || kind == BufferKind::kResult; }

struct Buffer {
  const char* name;
  BufferKind kind;
};

// Those that a pass reads, before the mask, and those that it writes, behind it.
std::span<const Buffer> buffers_of(AttentionPass pass) {
  using enum BufferKind;
  static constexpr Buffer kForward[] = {
      {"q", kMatrix}, {"k", kMatrix}, {"v", kMatrix}, {"out", kResult}, {"logs", kNumbersResult}};
  static constexpr Buffer kQuery[] = {{"g", kMatrix},   {"q", kMatrix},     {"k", kMatrix},           {"v", kMatrix},
                                      {"out", kMatrix}, {"logs", kNumbers}, {"sums", kNumbersResult}, {"dq", kResult}};
  static constexpr Buffer kKey[] = {{"g", kMatrix},     {"q", kMatrix},     {"k", kMatrix},  {"v", kMatrix},
                                    {"sums", kNumbers}, {"logs", kNumbers}, {"dk", kResult}, {"dv", kResult}};
  return pass == AttentionPass::kForward         ? kForward
         : pass == AttentionPass::kQueryGradient ? std::span<const Buffer>(kQuery)
                                                 : kKey;
}

struct Integer {
  std::string name;
  int64_t value;
};

std::vector<Integer> integers_of(const AttentionKernel& attention, int64_t items) {
  std::vector<Integer> all{{"items", items},
                           {"heads", attention.heads},
                           {"key_heads", attention.key_heads},
                           {"rows", attention.rows},
                           {"columns", attention.columns}};
  const auto add = [&](const std::string& name, const StridedView& view, std::span<const char* const> dims) {
    all.push_back({name + "_offset", view.offset});
    for (size_t i = 0; i < dims.size(); ++i) all.push_back({name + dims[i], view.strides[i]});
  };
  constexpr const char* kDims[] = {"_batch", "_head", "_row", "_column"};
  auto next = attention.views.begin();
  for (const auto& [name, kind] : buffers_of(attention.pass)) {
    if (is_matrix(kind)) add(name, *next++, std::span(kDims).first(3));
  }
  if (attention.mask) add("mask", attention.mask_view, kDims);
  return all;
}

std::string parameters(const AttentionKernel& attention, std::span<const Integer> integers) {
  const auto pointer = [](bool reads, std::string_view type, std::string_view name) {
    return (reads ? "const " : "") + std::string(type) + "* __restrict__ " + std::string(name) + ", ";
  };
  std::string read, written, numbers;
  for (const auto& [name, kind] : buffers_of(attention.pass)) {
    const bool reads = kind == BufferKind::kMatrix || kind == BufferKind::kNumbers;
    const bool is_float = kind == BufferKind::kNumbers || kind == BufferKind::kNumbersResult;
    (reads ? read : written) += pointer(reads, is_float ? "f32" : facts(attention.dtype).name, name);
  }
  if (attention.mask) read += pointer(true, facts(attention.mask).name, "mask");
  for (const Integer& integer : integers) numbers += (numbers.empty() ? "const ix " : ", const ix ") + integer.name;
  return read + written + numbers;
}

// at_q(batch, head) and the like: where the rows of a head begin, which are q_row apart.
std::string places(const AttentionKernel& attention) {
  std::string text;
  for (const auto& [name, kind] : buffers_of(attention.pass)) {
    if (!is_matrix(kind)) continue;
    const std::string n(name);
    text += "  const auto at_" + n + " = [&](i64 batch, i64 head) { return " + n + " + (" + n + "_offset + batch * " + n +
            "_batch + head * " + n + "_head); };\n";
  }
  return text;
}

}  // namespace

bool is_attention(const plugin::Node& node) {
  const bool backward = node.name().ends_with("_backward");
  const auto [query, count] = operands_of(backward);
  const std::span<const uint32_t> inputs = node.inputs();
  if (inputs.size() < count || inputs.size() > count + 1) return false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool is_mask = i == count;
    if (inputs[i] == LTC_NONE ? !is_mask : node.graph.is_scalar(inputs[i])) return false;
  }
  const ltc_type &q = node.input(query), &k = node.input(query + 1), &v = node.input(query + 2);
  if (!is_held(q.dtype) || k.dtype != q.dtype || v.dtype != q.dtype || !sizes_fit(q, k, v)) return false;
  if (backward && (node.input(0).dtype != q.dtype || node.input(4).dtype != q.dtype || node.input(5).dtype != LTC_F32))
    return false;
  if (node.has_input(count) && !mask_fits(node.input(count), q, k)) return false;
  if (node.get<double>("dropout_p", 0) != 0) return false;
  return backward || node.outputs()[1] == LTC_NONE || node.output(1).dtype == LTC_F32;
}

StridedView attention_operand(const Graph& graph, const Node& node, size_t i) {
  const Value& operand = graph.values[node.in[i]];
  const StridedView itself{node.in[i], 0, dense_strides(operand.sizes)};
  const bool is_mask = i == operands_of(is_backward(node)).count;
  if (!is_mask && operand.sizes.size() != 4) return itself;
  StridedView view = strided_view(graph, node.in[i]).value_or(itself);
  for (size_t dim = 0; dim < operand.sizes.size(); ++dim) {
    if (operand.sizes[dim] == 1) view.strides[dim] = 0;
  }
  if (is_mask) return view;
  // Tensor cores get 16 bytes at once.
  const int64_t at_once = is_half(operand.dtype) ? 8 : 4, pack = operand.sizes[3] % at_once == 0 ? at_once : 1;
  const auto is_aligned = [&](int64_t stride) { return stride % pack == 0; };
  const bool fits = (view.strides[3] == 1 || operand.sizes[3] == 1) && is_aligned(view.offset) &&
                    std::all_of(view.strides.begin(), view.strides.end() - 1, is_aligned);
  return fits ? view : itself;
}

namespace {

constexpr const char* kJoined = "joined";  // an attribute: the results whose heads are

// How a result lies in its buffer, by its name in the kernel.
StridedView result_view(const Node& node, std::string_view name, const AttentionKernel& attention) {
  const bool of_keys = name == "dk" || name == "dv";
  const int64_t heads = of_keys ? attention.key_heads : attention.heads, rows = of_keys ? attention.columns : attention.rows;
  const int64_t width = name == "out" || name == "dv" ? attention.value_width : attention.width;
  const int64_t place = name == "dk" ? 1 : name == "dv" ? 2 : 0;
  const bool joined = std::ranges::count(node.integers(kJoined), place) > 0;
  return {kNone, 0, {heads * rows * width, joined ? width : rows * width, joined ? heads * width : width, 1}};
}

}  // namespace

void join_heads(Graph& graph) {
  const auto is_output = [&](ValueId value) { return std::ranges::count(graph.outputs, value) > 0; };
  for (Node& node : std::exchange(graph.nodes, {})) {
    std::vector<Node> views;
    Attr joined{kJoined, LTC_ATTR_INTS, {}, {}};
    for (size_t i = 0; i < node.out.size() && node.kind == Kind::kAttention; ++i) {
      const ValueId value = node.out[i];
      if (value == kNone || is_output(value) || graph.values[value].sizes.size() != 4) continue;
      const Sizes sizes = graph.values[value].sizes;
      node.out[i] = graph.add_value(graph.values[value].dtype, {sizes[0], sizes[2], sizes[1], sizes[3]});
      joined.ints.push_back(static_cast<int64_t>(i));
      const Attr dims{"dims", LTC_ATTR_INTS, {0, 2, 1, 3}, {}};
      views.push_back({find_op("aten::permute"), Kind::kPermute, {node.out[i]}, {value}, {dims}, node.source});
    }
    if (!views.empty()) node.attrs.push_back(std::move(joined));
    graph.append(std::move(node));
    for (Node& made : views) graph.append(std::move(made));
  }
}

AttentionKernel attention_of(const Graph& graph, const Node& node, AttentionPass pass, bool mma) {
  const auto [query, count] = operands_of(is_backward(node));
  const Value& value = graph.values[node.in[query + 2]];
  const Sizes &q = graph.values[node.in[query]].sizes, &k = graph.values[node.in[query + 1]].sizes, &v = value.sizes;
  const Attr* scale = node.find("scale");
  const double given = !scale                  ? 1 / std::sqrt(static_cast<double>(q[3]))
                       : scale->floats.empty() ? static_cast<double>(scale->ints[0])
                                               : scale->floats[0];
  const bool in_registers = is_half(value.dtype) || pass == AttentionPass::kForward || std::max(q[3], v[3]) <= kNarrow;
  const bool by_mma = mma && in_registers && q[3] % 16 == 0 && v[3] % 16 == 0;
  const bool causal = node.integer("is_causal", 0) != 0;
  AttentionKernel made{pass, value.dtype, q[0], q[1], k[1], q[2], k[2], q[3], v[3], causal, given, by_mma, {}, 0, {}};
  const auto buffers = buffers_of(pass);
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (buffers[i].kind == BufferKind::kMatrix) made.views.push_back(attention_operand(graph, node, i));
    if (buffers[i].kind == BufferKind::kResult) made.views.push_back(result_view(node, buffers[i].name, made));
  }
  if (node.in.size() <= count || node.in[count] == kNone) return made;
  made.mask = graph.values[node.in[count]].dtype;
  made.mask_view = attention_operand(graph, node, count);
  made.mask_view.strides.insert(made.mask_view.strides.begin(), 4 - made.mask_view.strides.size(), 0);
  return made;
}

namespace {

struct Bodies {
  const char *common, *forward, *query_gradient, *key_gradient;
};
constexpr Bodies kBodies{kAttentionCommon, kAttentionForward, kAttentionQueryGradient, kAttentionKeyGradient};
constexpr Bodies kMmaBodies{kMmaCommon, kMmaForward, kMmaQueryGradient, kMmaKeyGradient};

std::string fragments_of(const AttentionKernel& attention) {
  if (!attention.mma) return "";
  const bool is_f32 = attention.dtype == LTC_F32;
  return std::string(is_f32 ? kF32Types : kHalfTypes) + kMmaLane + (is_f32 ? kF32Fragments : kHalfFragments);
}

}  // namespace

Source render_attention(const AttentionKernel& attention, const Dialect& dialect) {
  const Tile tile = tile_of(attention);
  const bool by_key = attention.pass == AttentionPass::kKeyGradient;
  const std::string half = "  const auto widen = [](auto x) -> f32 { return " + widened(attention.dtype) + "; };\n" +
                           "  const auto narrow = [](f32 x) { return " +
                           (attention.dtype == LTC_F16    ? "ltc_f32_to_f16(x)"
                            : attention.dtype == LTC_BF16 ? "ltc_f32_to_bf16(x)"
                                                          : "x") +
                           "; };\n";
  const Bodies& bodies = attention.mma ? kMmaBodies : kBodies;
  const std::string body = constants(attention) + half + places(attention) + mask_text(attention) + fragments_of(attention) +
                           bodies.common +
                           (attention.pass == AttentionPass::kForward ? bodies.forward
                            : by_key                                  ? bodies.key_gradient
                                                                      : bodies.query_gradient);
  Dialect frame = dialect;
  frame.body = ") {\n";
  const int64_t tiles = by_key ? attention.key_heads * ((attention.columns + tile.columns - 1) / tile.columns)
                               : attention.heads * ((attention.rows + tile.rows - 1) / tile.rows);
  const std::vector<Integer> integers = integers_of(attention, attention.batch * tiles * kThreads);
  std::vector<int64_t> values;
  for (const Integer& integer : integers) values.push_back(integer.value);
  return {framed(parameters(attention, integers), body, true, frame), std::move(values), true, kThreads};
}

}  // namespace ltc::kernels
