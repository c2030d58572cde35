#include "products.h"

#include <ATen/EmptyTensor.h>
#include <ATen/ops/addmm_cpu_dispatch.h>
#include <ATen/ops/mm_cpu_dispatch.h>

#include <algorithm>

#include "execute.h"
#include "threads.h"

namespace ltc::torchscript {
namespace {

constexpr int64_t kPieceWork = 1 << 21;  // multiplications worth being a piece
constexpr int64_t kPieceStep = 16;       // rows or columns; a vector and a cache line of them

// Calls product(dim, first, count) for all pieces of the rows (dim 0) or columns (dim 1) of the result.
template <typename Compute>
void in_pieces(int64_t rows, int64_t columns, int64_t inner, Compute compute) {
  const int64_t dim = columns > rows, size = std::max(rows, columns);
  const int64_t most = std::max<int64_t>(1, rows * columns * inner / kPieceWork);
  const int64_t pieces = std::min<int64_t>(most, kPiecesEach * most_threads());
  const int64_t width = ((size + pieces - 1) / pieces + kPieceStep - 1) / kPieceStep * kPieceStep;
  divide_pieces((size + width - 1) / width, [&](int64_t i) { compute(dim, i * width, std::min(width, size - i * width)); });
}

// As the kernels behind the dispatcher want it.
at::Tensor plain(const c10::IValue& operand) {
  const at::Tensor& tensor = operand.toTensor();
  return tensor.is_conj() || tensor.is_neg() ? tensor.resolve_conj().resolve_neg() : tensor;
}

bool is_cut(const at::Tensor& a, const at::Tensor& b) {
  return most_threads() > 1 && a.scalar_type() == at::kFloat && b.scalar_type() == at::kFloat && a.dim() == 2 && b.dim() == 2 &&
         a.size(1) == b.size(0) && a.numel() > 0 && b.numel() > 0;
}

// The part of what is added that belongs to a piece of the result.
at::Tensor addend(const at::Tensor& self, int64_t dim, int64_t first, int64_t count) {
  const int64_t own = self.dim() - 2 + dim;
  return own < 0 || self.size(own) == 1 ? self : self.narrow(own, first, count);
}

}  // namespace

at::Tensor multiply_matrices(const at::Tensor& a, const at::Tensor& b) {
  if (!is_cut(a, b)) return at::cpu::mm(a, b);
  at::Tensor out(at::detail::empty_cpu({a.size(0), b.size(1)}, at::kFloat));
  in_pieces(a.size(0), b.size(1), a.size(1), [&](int64_t dim, int64_t first, int64_t count) {
    at::Tensor piece = out.narrow(dim, first, count);
    dim == 0 ? at::cpu::mm_out(piece, a.narrow(0, first, count), b) : at::cpu::mm_out(piece, a, b.narrow(1, first, count));
  });
  return out;
}

namespace {

at::Tensor multiply_and_add(const at::Tensor& self, const at::Tensor& a, const at::Tensor& b, const at::Scalar& beta,
                            const at::Scalar& alpha) {
  if (!is_cut(a, b) || self.scalar_type() != at::kFloat) return at::cpu::addmm(self, a, b, beta, alpha);
  at::Tensor out(at::detail::empty_cpu({a.size(0), b.size(1)}, at::kFloat));
  in_pieces(a.size(0), b.size(1), a.size(1), [&](int64_t dim, int64_t first, int64_t count) {
    at::Tensor piece = out.narrow(dim, first, count);
    const at::Tensor added = addend(self, dim, first, count);
    dim == 0 ? at::cpu::addmm_out(piece, added, a.narrow(0, first, count), b, beta, alpha)
             : at::cpu::addmm_out(piece, added, a, b.narrow(1, first, count), beta, alpha);
  });
  return out;
}

at::Tensor mm(const std::vector<c10::IValue>& operands) { return multiply_matrices(plain(operands[0]), plain(operands[1])); }

at::Tensor addmm(const std::vector<c10::IValue>& operands) {
  return multiply_and_add(plain(operands[0]), plain(operands[1]), plain(operands[2]), operands[3].toScalar(),
                          operands[4].toScalar());
}

}  // namespace

Product find_product(const c10::OperatorHandle& op) {
  const c10::OperatorName& name = op.operator_name();
  if (!name.overload_name.empty()) return nullptr;
  return name.name == "aten::mm" ? &mm : name.name == "aten::addmm" ? &addmm : nullptr;
}

}  // namespace ltc::torchscript
