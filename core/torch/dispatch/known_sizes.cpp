// Ops whose results' sizes depend on values in general, where their arguments tell the sizes: those of a source, a sum that the
// caller knows, lengths that are on the host.
#include <ATen/ExpandUtils.h>
#include <ATen/ops/_ctc_loss.h>
#include <ATen/ops/_ctc_loss_backward.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <torch/library.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "core/run/device/capture.h"
#include "core/torch/dispatch/fallback.h"
#include "core/torch/tensor/assertions.h"
#include "core/torch/tensor/tensor.h"
#include "core/torch/tensor/transfer.h"

namespace ltc {
namespace {

// The gradient of masked_scatter's source: its elements went to where the mask holds, in order, and those left over nowhere.
at::Tensor masked_scatter_backward(const at::Tensor& gradient, const at::Tensor& mask, c10::SymIntArrayRef sizes) {
  const c10::IntArrayRef source = C10_AS_INTARRAYREF_SLOW(sizes);
  const int64_t count = c10::multiply_integers(source);
  const auto [given, holds] = at::expand_outplace(gradient, mask);
  const at::Tensor chosen = holds->reshape({-1});
  // Where it does not hold, behind the end.
  const at::Tensor places = at::where(chosen, chosen.cumsum(0).sub(1).clamp_max(count), count);
  return at::zeros({count + 1}, given->options())
      .scatter(0, places, given->reshape({-1}))
      .narrow(0, 0, count)
      .clone()
      .view(source);
}

// Indices, each as often as the count at it says.
void repeat_interleave(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const OpEntry& entry = OpEntry::of(op);
  const at::Tensor counts = torch::jit::peek(*stack, 0, 2).toTensor();
  const c10::IValue total = torch::jit::peek(*stack, 1, 2);
  const bool is_vector_of_counts = counts.dim() == 1 && counts.numel() > 0 && c10::isIntegralType(counts.scalar_type(), false);
  if (!total.isInt() || !is_vector_of_counts || t_capture)
    return run_eagerly(entry, *stack, "the size of its result depends on values");
  const at::Tensor ends = counts.cumsum(0);
  assert_later(counts.ge(0).all(), "repeats can not be negative");
  assert_later(ends.select(0, -1).eq(total.toInt()), "allocated size does not match required size");
  const at::Tensor places = at::arange(total.toInt(), ends.options());
  const at::Tensor indices = at::searchsorted(ends, places, /*out_int32=*/false, /*right=*/true).to(counts.scalar_type());
  torch::jit::drop(*stack, 2);
  stack->emplace_back(indices);
}

// ---- the loss of connectionist temporal classification, with its lengths as tensors: no part of a program

at::Tensor on_device(const at::Tensor& tensor, LazyDevice& device) { return is_lazy(tensor) ? tensor : to_lazy(device, tensor); }

struct Lengths {
  std::vector<int64_t> inputs, targets;
};

bool are_within(const std::vector<int64_t>& lengths, int64_t most) {
  return std::ranges::all_of(lengths, [&](int64_t length) { return length >= 0 && length <= most; });
}

// PyTorch's kernel checks the same, with messages of its own.
bool are_sound(const at::Tensor& log_probs, const at::Tensor& targets, const Lengths& lengths) {
  if (log_probs.dim() != 3 || log_probs.numel() == 0 || targets.numel() == 0) return false;
  const auto batch = static_cast<size_t>(log_probs.size(1));
  if (lengths.inputs.size() != batch || lengths.targets.size() != batch || !are_within(lengths.inputs, log_probs.size(0)))
    return false;
  if (targets.dim() == 2) return targets.size(0) == log_probs.size(1) && are_within(lengths.targets, targets.size(1));
  const bool fits = targets.dim() == 1 && are_within(lengths.targets, targets.size(0));
  return fits && std::accumulate(lengths.targets.begin(), lengths.targets.end(), int64_t{0}) == targets.size(0);
}

// Targets one behind the other, as rows.
at::Tensor in_rows(const at::Tensor& targets, const std::vector<int64_t>& lengths, LazyDevice& device) {
  const int64_t width = std::max<int64_t>(1, std::ranges::max(lengths));
  std::vector<int64_t> places;
  int64_t begin = 0;
  for (const int64_t length : lengths) {
    for (int64_t i = 0; i < width; ++i) places.push_back(std::min(begin + i, targets.size(0) - 1));
    begin += length;
  }
  return targets.index_select(0, to_lazy(device, at::tensor(places))).view({static_cast<int64_t>(lengths.size()), width});
}

using CtcLoss = std::tuple<at::Tensor, at::Tensor>;

void ctc_loss(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const auto arg = [&](size_t i) -> const c10::IValue& { return torch::jit::peek(*stack, i, 6); };
  const at::Tensor log_probs = arg(0).toTensor(), targets = arg(1).toTensor();
  const Lengths lengths{arg(2).toIntVector(), arg(3).toIntVector()};
  if (!is_lazy(log_probs) || !are_sound(log_probs, targets, lengths)) {
    return run_eagerly(OpEntry::of(op), *stack, "the size of its result depends on values");
  }
  LazyDevice& device = lazy_device(log_probs);
  const at::Tensor labels = on_device(targets, device);
  static const auto recorded =
      c10::Dispatcher::singleton()
          .findSchemaOrThrow("ltc::ctc_loss", "")
          .typed<CtcLoss(const at::Tensor&, const at::Tensor&, const at::Tensor&, const at::Tensor&, int64_t, bool)>();
  auto [loss, alpha] = recorded.call(log_probs, labels.dim() == 1 ? in_rows(labels, lengths.targets, device) : labels,
                                     to_lazy(device, at::tensor(lengths.inputs)), to_lazy(device, at::tensor(lengths.targets)),
                                     arg(4).toInt(), arg(5).toBool());
  torch::jit::drop(*stack, 6);
  torch::jit::push(*stack, std::move(loss), std::move(alpha));
}

at::Tensor ctc_loss_backward(const at::Tensor& gradient, const at::Tensor& log_probs, const at::Tensor& targets,
                             c10::IntArrayRef inputs, c10::IntArrayRef target_lengths, const at::Tensor& loss,
                             const at::Tensor& alpha, int64_t blank, bool zero_infinity) {
  LazyDevice& device = lazy_device(log_probs);
  return at::_ctc_loss_backward(gradient, log_probs, on_device(targets, device), to_lazy(device, at::tensor(inputs)),
                                to_lazy(device, at::tensor(target_lengths)), loss, alpha, blank, zero_infinity);
}

std::vector<int64_t> numbers_in(const at::Tensor& tensor) {
  const at::Tensor numbers = tensor.to(at::kLong).contiguous();
  return {numbers.const_data_ptr<int64_t>(), numbers.const_data_ptr<int64_t>() + numbers.numel()};
}

// Targets are rows here, and the second result is as wide as they allow, however long the longest target is.
CtcLoss ctc_loss_on_cpu(const at::Tensor& log_probs, const at::Tensor& targets, const at::Tensor& input_lengths,
                        const at::Tensor& target_lengths, int64_t blank, bool zero_infinity) {
  auto [loss, alpha] =
      at::_ctc_loss(log_probs, targets, numbers_in(input_lengths), numbers_in(target_lengths), blank, zero_infinity);
  const int64_t missing = 2 * targets.size(1) + 1 - alpha.size(2);
  return {std::move(loss), at::constant_pad_nd(alpha, {0, missing}, -std::numeric_limits<double>::infinity())};
}

TORCH_LIBRARY_FRAGMENT(ltc, m) {
  m.def(
      "ctc_loss(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank, bool zero_infinity) -> "
      "(Tensor neg_log_likelihood, Tensor log_alpha)");
}
TORCH_LIBRARY_IMPL(ltc, CPU, m) { m.impl("ctc_loss", ctc_loss_on_cpu); }

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("masked_scatter_backward", masked_scatter_backward);
  m.impl("repeat_interleave.Tensor", torch::CppFunction::makeFromBoxedFunction<&repeat_interleave>());
  m.impl("_ctc_loss", torch::CppFunction::makeFromBoxedFunction<&ctc_loss>());
  m.impl("_ctc_loss_backward", ctc_loss_backward);
}

}  // namespace
}  // namespace ltc
