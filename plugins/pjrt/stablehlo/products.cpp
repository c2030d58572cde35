// Matrix product and convolution.
#include "pjrt/stablehlo/ops.h"

namespace ltc::pjrt {
namespace {

// Devices with units of lower precision would use them otherwise.
constexpr std::string_view kHighest = "precision_config = [#stablehlo<precision HIGHEST>, #stablehlo<precision HIGHEST>]";

Values bmm(Call& call) {
  return {call.module.op("dot_general", call.inputs, call.type(),
                         "dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], "
                         "lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]>, " +
                             std::string(kHighest))};
}

// One number per dim of space, where there is one for all.
Sizes per_dim(const Call& call, std::string_view name, size_t dims) {
  Sizes numbers = call.integers(name);
  if (numbers.size() == 1) numbers.resize(dims, numbers[0]);
  if (numbers.size() != dims) numbers.assign(dims, name == "padding" ? 0 : 1);
  return numbers;
}

// Weights (C, O / groups, ...) of a transposed convolution as those (O, C / groups, ...) of a plain one.
Value transposed_weights(Module& m, const Value& weights, int64_t groups) {
  const Sizes& sizes = weights.type.sizes;
  const Sizes space(sizes.begin() + 2, sizes.end());
  Sizes split{groups, sizes[0] / groups, sizes[1]}, swapped{groups, sizes[1], sizes[0] / groups};
  Sizes joined{groups * sizes[1], sizes[0] / groups}, order{0, 2, 1}, reversed;
  for (size_t i = 0; i < space.size(); ++i) {
    for (Sizes* each : {&split, &swapped, &joined}) each->push_back(space[i]);
    order.push_back(static_cast<int64_t>(i) + 3);
    reversed.push_back(static_cast<int64_t>(i) + 2);
  }
  const Value turned = m.op("reverse", {weights}, "dimensions = " + array(reversed));
  const Value moved =
      m.op("transpose", {m.reshape(turned, split)}, {weights.type.dtype, swapped}, "permutation = " + array(order));
  return m.reshape(moved, joined);
}

Values convolution(Call& call) {
  Module& m = call.module;
  const Value& x = call.inputs[0];
  Value weights = call.inputs[1];
  const size_t dims = x.type.sizes.size() - 2;
  const Sizes stride = per_dim(call, "stride", dims), padding = per_dim(call, "padding", dims),
              dilation = per_dim(call, "dilation", dims);
  const bool transposed = call.integer("transposed", 0) != 0;
  const int64_t groups = call.integer("groups", 1);
  std::string pads, space;
  for (size_t i = 0; i < dims; ++i) {
    int64_t low = padding[i], high = padding[i];
    if (transposed) {  // the input is spread by the stride; the window begins outside it
      const int64_t reach = dilation[i] * (weights.type.sizes[i + 2] - 1), spread = (x.type.sizes[i + 2] - 1) * stride[i] + 1;
      low = reach - padding[i];
      high = call.type().sizes[i + 2] + reach - spread - low;
    }
    pads += (i ? ", [" : "[") + std::to_string(low) + ", " + std::to_string(high) + "]";
    space += ", " + std::to_string(i);
  }
  if (transposed) weights = transposed_weights(m, weights, groups);
  const Sizes ones(dims, 1);
  return {m.op("convolution", {x, weights}, call.type(),
               "window_strides = " + array(transposed ? ones : stride) + ", padding = dense<[" + pads + "]> : tensor<" +
                   std::to_string(dims) + "x2xi64>, lhs_dilation = " + array(transposed ? stride : ones) +
                   ", rhs_dilation = " + array(dilation) + ", dimension_numbers = #stablehlo.conv<[b, f" + space + "]x[o, i" +
                   space + "]->[b, f" + space + "]>, feature_group_count = " + std::to_string(groups) +
                   " : i64, batch_group_count = 1 : i64, " + std::string(kHighest))};
}

constexpr Row kRows[] = {
    {"aten::bmm", "TT:T", "fi", "", bmm},
    {"aten::convolution", "TT-:T", "fi", "stride:I padding:I dilation:I transposed:b output_padding:I? groups:i", convolution},
};

}  // namespace

std::span<const Row> product_ops() { return kRows; }

}  // namespace ltc::pjrt
