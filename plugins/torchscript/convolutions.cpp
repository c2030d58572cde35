#include "convolutions.h"

#include <ATen/ops/convolution.h>
#include <ATen/ops/empty.h>

#include "execute.h"
#include "lower.h"
#include "threads.h"

namespace ltc::torchscript {
namespace {

constexpr int64_t kLargestResult = 1 << 20;  // bytes; it stays in the cache until it is joined

at::Tensor convolve(const at::Tensor& images, const std::vector<c10::IValue>& operands) {
  return at::convolution(images, operands[1].toTensor(), operands[2].toOptional<at::Tensor>(), operands[3].toIntVector(),
                         operands[4].toIntVector(), operands[5].toIntVector(), operands[6].toBool(), operands[7].toIntVector(),
                         operands[8].toInt());
}

at::Tensor convolve_divided(const std::vector<c10::IValue>& operands) {
  const at::Tensor& images = operands[0].toTensor();
  const int64_t count = images.size(0), pieces = std::min<int64_t>(most_threads(), count);
  if (pieces <= 1) return convolve(images, operands);
  const auto first = [&](int64_t piece) { return count * piece / pieces; };
  std::vector<at::Tensor> parts(static_cast<size_t>(pieces));
  divide_pieces(pieces, [&](int64_t i) {
    const QuietDispatch quiet;
    parts[static_cast<size_t>(i)] = convolve(images.narrow(0, first(i), first(i + 1) - first(i)), operands);
  });
  std::vector<int64_t> sizes = parts[0].sizes().vec();
  sizes[0] = count;
  at::Tensor result = at::empty(sizes, parts[0].options(), parts[0].suggest_memory_format());
  divide_pieces(pieces, [&](int64_t i) {
    const QuietDispatch quiet;
    result.narrow(0, first(i), first(i + 1) - first(i)).copy_(parts[static_cast<size_t>(i)]);
  });
  return result;
}

}  // namespace

Product find_divided_convolution(const torch::jit::Node& node) {
  if (std::string_view(node.kind().toQualString()) != "aten::convolution") return nullptr;
  const TensorSpec images = spec_of(*node.input(0)), result = spec_of(*node.output());
  const auto size_bytes = c10::multiply_integers(result.sizes) * static_cast<int64_t>(c10::elementSize(result.dtype));
  return images.sizes.size() == 4 && images.sizes[0] > 1 && size_bytes <= kLargestResult ? &convolve_divided : nullptr;
}

}  // namespace ltc::torchscript
