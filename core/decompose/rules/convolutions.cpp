// Convolution with bias and its gradients, which are convolutions again.
#include "core/decompose/rules/families.h"

namespace ltc::decompose {
namespace {

Convolution settings(const Call& call) {
  // One number stands for all dims.
  const size_t dims = static_cast<size_t>(call.tensor("weight").rank()) - 2;
  const auto per_dim = [&](const char* name) {
    Ints values = call.ints(name);
    if (values.size() == 1) values.resize(dims, values[0]);
    return values;
  };
  Convolution how{per_dim("stride"), per_dim("padding"), per_dim("dilation"), call.flag("transposed")};
  how.output_padding = per_dim("output_padding");
  how.groups = call.integer("groups");
  return how;
}

Results convolve(const Call& call) {
  const Val x = call.tensor("input"), bias = call.math("bias");
  const Convolution how = settings(call);
  const bool written_out = how.stride == call.ints("stride") && how.padding == call.ints("padding") &&
                           how.dilation == call.ints("dilation") && how.output_padding == call.ints("output_padding");
  if (!bias && x.dtype() == math_dtype(x.dtype()) && written_out) return nothing();
  Val y = convolution(call.math("input"), call.math("weight"), how);
  if (!bias) return y;
  Ints per_channel(static_cast<size_t>(y.rank()), 1);
  per_channel[1] = bias.count();
  return y + reshape(bias, per_channel);
}

// The gradient for the input of an ordinary convolution: the transposed one, as large as the input was.
Val ordinary_input_gradient(Val g, Val weight, const Ints& input_sizes, Convolution how) {
  how.transposed = true;
  for (size_t i = 0; i < how.stride.size(); ++i) {
    const auto dim = static_cast<int64_t>(i + 2);
    const int64_t reached = (g.size(dim) - 1) * how.stride[i] - 2 * how.padding[i] + how.dilation[i] * (weight.size(dim) - 1) + 1;
    how.output_padding[i] = input_sizes[i + 2] - reached;
  }
  return convolution(g, weight, how);
}

// The gradient for the weight of an ordinary convolution from x to y: x convolved with the gradient of y, batch and channels
// having changed places and stride and dilation too.
Val ordinary_weight_gradient(Val x, Val g, const Ints& weight_sizes, Convolution how) {
  const int64_t n = x.size(0), groups = how.groups, channels = x.size(1) / groups;
  const Ints space(x.sizes().begin() + 2, x.sizes().end());
  const auto with_space = [&](Ints sizes) { return sizes.insert(sizes.end(), space.begin(), space.end()), sizes; };
  Ints order = {2, 1, 0};
  for (size_t i = 0; i < space.size(); ++i) order.push_back(static_cast<int64_t>(i + 3));
  const Val input = reshape(permute(reshape(x, with_space({n, groups, channels})), order), with_space({channels, groups * n}));
  std::swap(how.stride, how.dilation);
  how.transposed = false;
  Val result = convolution(input, transpose(g, 0, 1), how);
  for (size_t i = 0; i < space.size(); ++i) result = slice(result, static_cast<int64_t>(i + 2), 0, weight_sizes[i + 2]);
  return transpose(result, 0, 1);
}

Results convolve_backward(const Call& call) {
  const Val g = call.math("grad_output"), x = call.math("input"), weight = call.math("weight");
  if (x.count() == 0 || g.count() == 0) return nothing();
  const Convolution how = settings(call);
  Convolution ordinary = how;
  ordinary.transposed = false;
  ordinary.output_padding.assign(how.stride.size(), 0);
  Val dx, dweight, dbias;
  if (call.wants(0)) {
    dx = how.transposed ? convolution(g, weight, ordinary) : ordinary_input_gradient(g, weight, x.sizes(), ordinary);
    // An output padding of a whole stride and more makes one window too many.
    for (int64_t dim = 2; dim < x.rank(); ++dim) dx = slice(dx, dim, 0, x.size(dim));
  }
  if (call.wants(1)) {
    dweight = how.transposed ? ordinary_weight_gradient(g, x, weight.sizes(), ordinary)
                             : ordinary_weight_gradient(x, g, weight.sizes(), ordinary);
  }
  if (call.wants(2)) dbias = sum(g, dims_but(g, 1));
  return {dx, dweight, dbias};
}

constexpr Decomposition kRules[] = {
    {"aten::convolution", convolve},
    {"aten::convolution_backward", convolve_backward},
};

}  // namespace

std::span<const Decomposition> convolutions() { return kRules; }

}  // namespace ltc::decompose
