// Attention in one pass over the keys, and its gradients, for devices whose threads meet in blocks: no scores in memory.
#pragma once
#include <cstdint>
#include <vector>

#include "kernels/graph/graph.h"
#include "kernels/graph/strided.h"
#include "kernels/print/dialect.h"
#include "kernels/print/render.h"
#include "ltc/graph.hpp"

namespace ltc::kernels {

// Which of an attention's kernels. A mask, where there is one, stands behind the other operands.
enum class AttentionPass : uint8_t {
  kForward,        // query, key, value -> output, logarithm of the sum of exponentials
  kQueryGradient,  // gradient, query, key, value, output, logarithm -> sums (F32, as many as rows), query's gradient
  kKeyGradient,    // gradient, query, key, value, sums, logarithm -> key's gradient, value's gradient
};

// Operands are [batch, heads, rows, width] and [batch, key_heads, columns, width].
struct AttentionKernel {
  AttentionPass pass;
  ltc_dtype dtype;
  int64_t batch, heads, key_heads, rows, columns, width, value_width;
  bool causal;
  double scale;
  bool mma;  // on tensor cores: of widths that are multiples of 16; F32's gradients of widths up to 64
  // How operands and results that are matrices lie, in their order; the elements of a row lie side by side.
  std::vector<StridedView> views;
  ltc_dtype mask;         // 0: none
  StridedView mask_view;  // four strides, 0 where it is one for all
};

// Whether a node of the ABI is such an attention, of a size and type that the kernels take.
bool is_attention(const plugin::Node& node);

// Where the kernels read input i of the node: there, or where it is a view of something that strides can say.
StridedView attention_operand(const Graph& graph, const Node& node, size_t i);

// Results that are no outputs become [batch, rows, heads, width], of which what was there is a view: a program joins the heads.
void join_heads(Graph& graph);

// mma: on tensor cores where they take it.
AttentionKernel attention_of(const Graph& graph, const Node& node, AttentionPass pass, bool mma);
Source render_attention(const AttentionKernel& attention, const Dialect& dialect);

}  // namespace ltc::kernels
