// The parts of torch.nn.SyncBatchNorm, which PyTorch has for its own devices only: statistics of a rank's batch, those of all
// ranks, and what follows from them. Dim 1 has the channels. Statistics of 16-bit inputs are float32.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/var.h>
#include <torch/library.h>

#include <tuple>
#include <vector>

namespace ltc {
namespace {

using at::Tensor;
using OptTensor = std::optional<Tensor>;

bool is_given(const OptTensor& tensor) { return tensor && tensor->defined(); }

Tensor widened(const Tensor& tensor) {
  const bool is_short = tensor.scalar_type() == at::kHalf || tensor.scalar_type() == at::kBFloat16;
  return is_short ? tensor.to(at::kFloat) : tensor;
}

std::vector<int64_t> all_but_channels(const Tensor& input) {
  std::vector<int64_t> dims = {0};
  for (int64_t dim = 2; dim < input.dim(); ++dim) dims.push_back(dim);
  return dims;
}

// A number of each channel, in the form of the input.
Tensor by_channel(const Tensor& numbers, const Tensor& input) {
  std::vector<int64_t> sizes(static_cast<size_t>(input.dim()), 1);
  sizes[1] = numbers.numel();
  return numbers.view(sizes);
}

std::tuple<Tensor, Tensor> stats(const Tensor& input, double eps) {
  const Tensor x = widened(input);
  const std::vector<int64_t> dims = all_but_channels(x);
  return {x.mean(dims), (x.var(dims, /*unbiased=*/false) + eps).rsqrt()};
}

// `mean` and `invstd`: a row for each rank, of `counts` elements a channel. Variances add up as Chan, Golub and LeVeque say
// (Updating formulae and a pairwise algorithm for computing sample variances, 1979).
std::tuple<Tensor, Tensor> gather_stats_with_counts(const Tensor&, const Tensor& mean, const Tensor& invstd,
                                                    const OptTensor& running_mean, const OptTensor& running_var, double momentum,
                                                    double eps, const Tensor& counts) {
  const Tensor weights = counts.to(mean.scalar_type()).view({-1, 1}), count = weights.sum();
  const Tensor whole = (mean * weights).sum(0) / count;
  const Tensor variances = invstd.pow(-2) - eps, squares = ((variances + (mean - whole).square()) * weights).sum(0);
  if (is_given(running_mean)) running_mean->mul_(1 - momentum).add_(whole * momentum);
  if (is_given(running_var)) running_var->mul_(1 - momentum).add_(squares / (count - 1) * momentum);
  return {whole, (squares / count + eps).rsqrt()};
}

Tensor elemt(const Tensor& input, const OptTensor& weight, const OptTensor& bias, const Tensor& mean, const Tensor& invstd,
             double) {
  Tensor result = (widened(input) - by_channel(mean, input)) * by_channel(invstd, input);
  if (is_given(weight)) result = result * by_channel(*weight, input);
  if (is_given(bias)) result = result + by_channel(*bias, input);
  return result.to(input.scalar_type());
}

std::tuple<Tensor, Tensor, Tensor, Tensor> backward_reduce(const Tensor& grad_out, const Tensor& input, const Tensor& mean,
                                                           const Tensor& invstd, const OptTensor&, bool wants_input,
                                                           bool wants_weight, bool wants_bias) {
  const Tensor gradient = widened(grad_out);
  const std::vector<int64_t> dims = all_but_channels(input);
  const Tensor sum = gradient.sum(dims), with_input = (gradient * (widened(input) - by_channel(mean, input))).sum(dims);
  return {wants_input ? sum : Tensor(), wants_input ? with_input : Tensor(), wants_weight ? with_input * invstd : Tensor(),
          wants_bias ? sum.clone() : Tensor()};
}

Tensor backward_elemt(const Tensor& grad_out, const Tensor& input, const Tensor& mean, const Tensor& invstd,
                      const OptTensor& weight, const Tensor& sum, const Tensor& with_input, const Tensor& counts) {
  const Tensor count = counts.sum().to(sum.scalar_type());
  const Tensor scale = is_given(weight) ? invstd * *weight : invstd;
  const Tensor of_mean = by_channel(sum / count, input), of_variance = by_channel(with_input / count * invstd.square(), input);
  const Tensor centred = widened(input) - by_channel(mean, input);
  return ((widened(grad_out) - of_mean - centred * of_variance) * by_channel(scale, input)).to(input.scalar_type());
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("batch_norm_stats", stats);
  m.impl("batch_norm_gather_stats_with_counts", gather_stats_with_counts);
  m.impl("batch_norm_elemt", elemt);
  m.impl("batch_norm_backward_reduce", backward_reduce);
  m.impl("batch_norm_backward_elemt", backward_elemt);
}

}  // namespace
}  // namespace ltc
