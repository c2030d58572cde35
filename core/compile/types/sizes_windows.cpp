// Convolutions, pooling and padding: windows over the last dims.
#include <algorithm>

#include "core/compile/types/rules.h"

namespace ltc::types {
namespace {

using Shapes = std::vector<Dims>;

constexpr int64_t kMost = 1 << 20;  // of a number that sizes are multiplied with: no product leaves 64 bits

// A number for each of `dims` dims, where one may stand for all; empty if there are others, or one is out of range.
Dims per_dim(const Arguments& call, std::string_view name, size_t dims, int64_t least) {
  Dims values = call.ints(name);
  if (values.size() == 1) values.resize(dims, values[0]);
  const auto fits = [&](int64_t value) { return value >= least && value <= kMost; };
  return values.size() == dims && std::ranges::all_of(values, fits) ? values : Dims();
}

int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0); }

// ---- convolution

std::optional<Dims> convolved(const Arguments& call) {
  const Dims &x = call.sizes("input"), &weight = call.sizes("weight");
  if (x.size() != weight.size() || x.size() < 3 || !are_moderate(x) || !are_moderate(weight)) return std::nullopt;
  const size_t dims = x.size() - 2;
  const Dims stride = per_dim(call, "stride", dims, 1), dilation = per_dim(call, "dilation", dims, 1);
  const Dims padding = per_dim(call, "padding", dims, 0), more = per_dim(call, "output_padding", dims, 0);
  const int64_t groups = call.integer("groups");
  const bool transposed = call.flag("transposed");
  if (stride.empty() || dilation.empty() || padding.empty() || more.empty() || groups < 1 || groups > kMost) return std::nullopt;
  if (transposed ? x[1] != weight[0] || x[1] % groups != 0
                 : x[1] % groups != 0 || x[1] / groups != weight[1] || weight[0] % groups != 0)
    return std::nullopt;
  Dims sizes{x[0], transposed ? weight[1] * groups : weight[0]};
  for (size_t i = 0; i < dims; ++i) {
    const int64_t size = x[i + 2], reach = dilation[i] * (weight[i + 2] - 1) + 1;
    if (weight[i + 2] < 1 || (transposed && more[i] >= std::max(stride[i], dilation[i]))) return std::nullopt;
    sizes.push_back(transposed ? (size - 1) * stride[i] - 2 * padding[i] + reach + more[i]
                               : floor_div(size + 2 * padding[i] - reach, stride[i]) + 1);
    if (sizes.back() < 0) return std::nullopt;
  }
  return sizes;
}

bool convolution(const Arguments& call, Shapes& shapes) {
  const auto sizes = convolved(call);
  if (!sizes || (call.tensor("bias") && call.sizes("bias") != Dims{(*sizes)[1]})) return false;
  return shapes.push_back(*sizes), true;
}

// The gradient that comes in, and that of the bias.
bool convolution_backward(const Arguments& call, Shapes& shapes) {
  const auto sizes = convolved(call);
  if (!sizes) return false;
  shapes = {*sizes, {(*sizes)[1]}};
  return true;
}

// ---- pooling

std::optional<Dims> pooled(const Arguments& call) {
  Dims sizes = call.sizes("self");
  const size_t dims = call.row().name.find("3d") != std::string_view::npos ? 3 : 2;
  if ((sizes.size() != dims + 1 && sizes.size() != dims + 2) || !are_moderate(sizes)) return std::nullopt;
  const Dims kernel = per_dim(call, "kernel_size", dims, 1), padding = per_dim(call, "padding", dims, 0);
  const Dims stride = call.ints("stride").empty() ? kernel : per_dim(call, "stride", dims, 1);
  const bool dilates = call.constant("dilation") != nullptr, ceil = call.flag("ceil_mode");
  const Dims dilation = dilates ? per_dim(call, "dilation", dims, 1) : Dims(dims, 1);
  if (kernel.empty() || padding.empty() || stride.empty() || dilation.empty()) return std::nullopt;
  if (call.given("divisor_override") && call.integer("divisor_override") == 0) return std::nullopt;
  for (size_t i = 0; i < dims; ++i) {
    int64_t& size = sizes[sizes.size() - dims + i];
    const int64_t reach = dilation[i] * (kernel[i] - 1) + 1;
    if (2 * padding[i] > reach) return std::nullopt;
    int64_t places = floor_div(size + 2 * padding[i] - reach + (ceil ? stride[i] - 1 : 0), stride[i]) + 1;
    if (ceil && (places - 1) * stride[i] >= size + padding[i]) --places;
    if (places < 1) return std::nullopt;
    size = places;
  }
  return sizes;
}

bool pool(const Arguments& call, Shapes& shapes) {
  const auto sizes = pooled(call);
  return sizes && (shapes.push_back(*sizes), true);
}

// ---- padding

std::optional<Dims> padded(const Arguments& call) {
  Dims sizes = call.sizes("self");
  const std::string_view op = call.row().name;
  const bool constant = op == "aten::constant_pad_nd", reflects = op.find("reflection") != op.npos;
  const Dims amounts = call.ints(constant ? "pad" : "padding");
  if (amounts.size() % 2 || amounts.size() > 2 * sizes.size() || !are_moderate(amounts) || !are_moderate(sizes))
    return std::nullopt;
  for (size_t i = 0; i < amounts.size(); i += 2) {
    int64_t& size = sizes[sizes.size() - 1 - i / 2];
    if (reflects && (amounts[i] >= size || amounts[i + 1] >= size)) return std::nullopt;
    if (!constant && size < 1) return std::nullopt;
    if (amounts[i] < -size || amounts[i + 1] < -size) return std::nullopt;
    size += amounts[i] + amounts[i + 1];
    if (size < 0) return std::nullopt;
  }
  return sizes;
}

bool pad(const Arguments& call, Shapes& shapes) {
  const auto sizes = padded(call);
  return sizes && (shapes.push_back(*sizes), true);
}

bool upsample_backward(const Arguments& call, Shapes& /*shapes*/) {
  const Dims input = call.ints("input_size"), &grad = call.sizes("grad_output");
  return input.size() == grad.size() && input.size() > 2 && input[0] == grad[0] && input[1] == grad[1];
}

}  // namespace

std::vector<NamedFunction> window_functions() {
  return {{"convolution", convolution}, {"convolution_backward", convolution_backward}, {"pool", pool}, {"pad", pad},
          {"pad_backward", pad},        {"upsample_backward", upsample_backward}};
}

}  // namespace ltc::types
