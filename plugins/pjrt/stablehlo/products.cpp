// Matrix product and convolution.
#include "pjrt/stablehlo/ops.h"

namespace ltc::pjrt {
namespace {

// Devices with units of lower precision would use them otherwise.
constexpr const char* kHighest = ", precision_config = [#stablehlo<precision HIGHEST>, #stablehlo<precision HIGHEST>]";

Values bmm(Call& call) {
  const std::string dims =
      "dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], "
      "lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]>";
  return {call.m.op("dot_general", call.inputs, call.type(), dims + kHighest)};
}

// One number per dim of space, where there is one for all.
Sizes per_dim(const Call& call, std::string_view name, size_t dims, int64_t otherwise) {
  const Sizes numbers = call.integers(name);
  return numbers.size() == dims ? numbers : Sizes(dims, numbers.empty() ? otherwise : numbers[0]);
}

// Weights (C, O / groups, ...) of a transposed convolution as those (O, C / groups, ...) of a plain one.
Value plain_weights(Module& m, const Value& weights, int64_t groups) {
  const Sizes& sizes = weights.type.sizes;
  Sizes split{groups, sizes[0] / groups, sizes[1]}, swapped{groups, sizes[1], sizes[0] / groups};
  Sizes plain{groups * sizes[1], sizes[0] / groups}, order{0, 2, 1}, space;
  for (size_t i = 2; i < sizes.size(); ++i) {
    for (Sizes* each : {&split, &swapped, &plain}) each->push_back(sizes[i]);
    order.push_back(static_cast<int64_t>(i) + 1);
    space.push_back(static_cast<int64_t>(i));
  }
  const Value turned = m.reshape(m.op("reverse", {weights}, weights.type, "dimensions = " + array(space)), split);
  return m.reshape(m.op("transpose", {turned}, {weights.type.dtype, swapped}, "permutation = " + array(order)), plain);
}

Values convolution(Call& call) {
  const Value& x = call.in(0);
  Value weights = call.in(1);
  const size_t dims = x.type.sizes.size() - 2;
  const Sizes stride = per_dim(call, "stride", dims, 1), padding = per_dim(call, "padding", dims, 0),
              dilation = per_dim(call, "dilation", dims, 1), ones(dims, 1);
  const bool transposed = call.node.get<bool>("transposed", false);
  std::string pads, space;
  for (size_t i = 0; i < dims; ++i) {
    int64_t low = padding[i], high = padding[i];
    if (transposed) {  // the stride spreads the input, and the window begins outside it
      const int64_t reach = dilation[i] * (weights.type.sizes[i + 2] - 1), spread = (x.type.sizes[i + 2] - 1) * stride[i] + 1;
      low = reach - padding[i];
      high = call.type().sizes[i + 2] + reach - spread - low;
    }
    pads += (i ? ", [" : "[") + std::to_string(low) + ", " + std::to_string(high) + "]";
    space += ", " + std::to_string(i);
  }
  const int64_t groups = call.node.get<int64_t>("groups", 1);
  if (transposed) weights = plain_weights(call.m, weights, groups);
  return {call.m.op("convolution", {x, weights}, call.type(),
                    "window_strides = " + array(transposed ? ones : stride) +
                        ", lhs_dilation = " + array(transposed ? stride : ones) + ", rhs_dilation = " + array(dilation) +
                        ", padding = dense<[" + pads + "]> : tensor<" + std::to_string(dims) +
                        "x2xi64>, dimension_numbers = #stablehlo.conv<[b, f" + space + "]x[o, i" + space + "]->[b, f" + space +
                        "]>, " + axis("feature_group_count", groups) + ", " + axis("batch_group_count", 1) + kHighest)};
}

constexpr Row kRows[] = {{"aten::bmm", "TT:T", "fi", {}, bmm}, {"aten::convolution", "TT-:T", "fi", {}, convolution}};

}  // namespace

std::span<const Row> product_ops() { return kRows; }

}  // namespace ltc::pjrt
