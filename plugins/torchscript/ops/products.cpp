#include "torchscript/ops/products.h"

#include <ATen/EmptyTensor.h>
#include <ATen/ops/addmm_cpu_dispatch.h>
#include <ATen/ops/mm_cpu_dispatch.h>

#include <algorithm>
#include <utility>

#include "torchscript/ops/gemm.h"
#include "torchscript/threads/threads.h"

namespace ltc::torchscript {
namespace {

constexpr int64_t kChunkWork = 1 << 21;   // multiplications worth being a chunk
constexpr int64_t kChunkMoved = 1 << 19;  // the same of a skinny product, in elements read or written
constexpr int64_t kChunkStep = 16;        // rows or columns; a vector and a cache line of them

// Products are divided by columns where an operand lies by columns, unless there are few: a left one, as in gradients of weights,
// by rows makes oneDNN take twice its time in one chunk (512 x 512 x 128: 324 us whole, 645 in halves by rows, 367 by columns), a
// right one, as weights, is laid out anew for each chunk of rows by MKL (4 chunks of rows of 512 x 128 x 384: 1.13 to 1.19 of the
// time in one, of columns 1.04).
constexpr int64_t kManyColumns = 128;

// As the kernels behind the dispatcher want it.
at::Tensor plain(const c10::IValue& operand) {
  const at::Tensor& tensor = operand.toTensor();
  return tensor.is_conj() || tensor.is_neg() ? tensor.resolve_conj().resolve_neg() : tensor;
}

// The others are ATen's, with their errors.
bool is_ours(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == at::kFloat && b.scalar_type() == at::kFloat && a.dim() == 2 && b.dim() == 2 &&
         a.size(1) == b.size(0) && a.numel() > 0 && b.numel() > 0;
}

// The rows (dim 0) or columns (dim 1) of a result that are one chunk.
struct Part {
  int64_t dim, first, count;
  at::Tensor of(const at::Tensor& whole) const { return whole.size(dim) == count ? whole : whole.narrow(dim, first, count); }
};

// The part of the addend, which broadcasts to the result.
at::Tensor addend(const at::Tensor& self, Part part) {
  part.dim += self.dim() - 2;
  return part.dim < 0 || self.size(part.dim) == 1 ? self : part.of(self);
}

// A result of the form of a b: compute(gemm, out, a, b, part) makes each of its parts.
template <typename Compute>
at::Tensor in_parts(const at::Tensor& a, const at::Tensor& b, Compute compute) {
  at::Tensor out(at::detail::empty_cpu({a.size(0), b.size(1)}, at::kFloat));
  const int64_t rows = a.size(0), columns = b.size(1);
  const int64_t dim = columns > rows || (columns >= kManyColumns && (b.stride(0) == 1 || a.stride(1) != 1));
  const int64_t size = dim == 0 ? rows : columns;
  const std::optional<Gemm> skinny = skinny_gemm_for(a, b);
  const int64_t most = std::max<int64_t>(
      1, skinny ? (a.numel() + b.numel() + out.numel()) / kChunkMoved : rows * columns * a.size(1) / kChunkWork);
  // Each chunk of a large product costs some: of oneDNN's, four take 1.1 to 1.4 of one's time, two 1.04 to 1.15.
  const int64_t chunks = most_threads() == 1 ? 1 : std::min<int64_t>(most, (skinny ? kChunksPerThread : 1) * most_threads());
  const int64_t width = ((size + chunks - 1) / chunks + kChunkStep - 1) / kChunkStep * kChunkStep;
  const auto operands = [&](Part part) { return dim == 0 ? std::pair(part.of(a), b) : std::pair(a, part.of(b)); };
  const auto [first_a, first_b] = operands({dim, 0, std::min(width, size)});
  const Gemm gemm = skinny ? *skinny : gemm_for(first_a, first_b);
  for_each_chunk((size + width - 1) / width, [&](int64_t i) {
    const Part part{dim, i * width, std::min(width, size - i * width)};
    const auto [part_a, part_b] = operands(part);
    at::Tensor chunk = part.of(out);
    compute(gemm, chunk, part_a, part_b, part);
  });
  return out;
}

}  // namespace

at::Tensor multiply_matrices(const at::Tensor& a, const at::Tensor& b) {
  if (!is_ours(a, b)) return at::cpu::mm(a, b);
  return in_parts(a, b,
                  [](Gemm gemm, at::Tensor& out, const at::Tensor& a, const at::Tensor& b, Part) { multiply(gemm, out, a, b); });
}

namespace {

at::Tensor multiply_and_add(const at::Tensor& self, const at::Tensor& a, const at::Tensor& b, const at::Scalar& beta,
                            const at::Scalar& alpha) {
  if (!is_ours(a, b) || self.scalar_type() != at::kFloat) return at::cpu::addmm(self, a, b, beta, alpha);
  return in_parts(a, b, [&](Gemm gemm, at::Tensor& out, const at::Tensor& a, const at::Tensor& b, Part part) {
    multiply_and_add(gemm, out, addend(self, part), a, b, beta, alpha);
  });
}

}  // namespace

at::Tensor mm(const std::vector<c10::IValue>& operands) { return multiply_matrices(plain(operands[0]), plain(operands[1])); }

at::Tensor addmm(const std::vector<c10::IValue>& operands) {
  return multiply_and_add(plain(operands[0]), plain(operands[1]), plain(operands[2]), operands[3].toScalar(),
                          operands[4].toScalar());
}

}  // namespace ltc::torchscript
