// Ops of sparse tensors that are recorded: as gathers and scatters of their parts, so that no value is needed to record them and
// programs are known by the number of elements. All others run on the CPU (register.cpp).
#include <ATen/WrapDimUtils.h>
#include <ATen/ops/_embedding_bag_sparse_backward.h>
#include <ATen/ops/add.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/embedding_sparse_backward_native.h>
#include <ATen/ops/index.h>
#include <ATen/ops/index_put.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/result_type.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/transpose_native.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <torch/library.h>

#include <numeric>

#include "core/torch/dispatch/boxed_kernel.h"
#include "core/torch/dispatch/op_entry.h"
#include "core/torch/dispatch/sparse_fallback.h"
#include "core/torch/tensor/sparse.h"

namespace ltc {
namespace {

using at::Tensor;

// The whole call, where nothing below records it.
template <typename... Args>
Tensor on_host(std::string_view name, const Args&... args) {
  torch::jit::Stack stack = {c10::IValue(args)...};
  run_sparse_on_host(OpEntry::named(name).called, &stack);
  return std::move(stack[0]).toTensor();
}

bool is_dense(const Tensor& tensor) { return tensor.defined() && !is_sparse(tensor); }
bool is_number(const Tensor& tensor) { return is_dense(tensor) && tensor.dim() == 0; }

void check_device(const Tensor& a, const Tensor& b) {
  TORCH_CHECK(a.device() == b.device(), "Expected all tensors to be on the same device, but found at least two devices, ",
              a.device(), " and ", b.device(), "!");
}

// With indices of its own, as ops in place write them.
Tensor with_values(const Tensor& sparse, const Tensor& values) {
  const SparseParts parts = parts_of(sparse);
  return sparse_like(sparse, {parts.indices.clone(), parts.plain.defined() ? parts.plain.clone() : Tensor(), values});
}

// ---- products of matrices

// A row and a column for each value.
struct Elements {
  Tensor rows, columns, values;
};

// By compressed indices, which say how many elements lie before each row: the row of each element.
Tensor uncompressed(const Tensor& compressed, int64_t count) {
  const int64_t rows = compressed.size(0) - 1;
  const Tensor ends = compressed.narrow(0, 1, std::max<int64_t>(rows - 1, 0));
  const Tensor steps = at::zeros({count + 1}, compressed.options()).index_add(0, ends, at::ones_like(ends));
  return steps.narrow(0, 0, count).cumsum(0, compressed.scalar_type());
}

Elements elements_of(const Tensor& matrix) {
  const SparseParts parts = parts_of(matrix);
  if (is_coo(matrix)) return {parts.indices.select(0, 0), parts.indices.select(0, 1), parts.values};
  const Tensor outer = uncompressed(parts.indices, parts.values.size(0));
  return is_csr(matrix) ? Elements{outer, parts.plain, parts.values} : Elements{parts.plain, outer, parts.values};
}

bool is_matrix(const Tensor& tensor) {
  if (tensor.dim() != 2) return false;
  if (is_coo(tensor)) return coo_impl(tensor).sparse_dim() == 2;
  return is_dense(tensor) || ((is_csr(tensor) || is_csc(tensor)) && compressed_impl(tensor).values().dim() == 1);
}

// A product of a sparse matrix and a dense one, in any order.
bool is_recorded_product(const Tensor& a, const Tensor& b) {
  return is_matrix(a) && is_matrix(b) && is_sparse(a) != is_sparse(b) && is_lazy(a) && is_lazy(b) && a.size(1) == b.size(0) &&
         a.scalar_type() == b.scalar_type() && a.scalar_type() != at::kBool;
}

// Half types are added in float, as matrix products add them.
c10::ScalarType sum_type(c10::ScalarType type) { return type == at::kHalf || type == at::kBFloat16 ? at::kFloat : type; }

Tensor product(const Tensor& a, const Tensor& b) {
  check_device(a, b);
  const bool sparse_first = is_sparse(a);
  const auto [rows, columns, values] = elements_of(sparse_first ? a : b);
  const Tensor& dense = sparse_first ? b : a;
  const c10::ScalarType type = sum_type(a.scalar_type());
  const int64_t dim = sparse_first ? 0 : 1;
  const Tensor read = dense.index_select(dim, sparse_first ? columns : rows).to(type);
  const Tensor terms = read.mul(values.to(type).unsqueeze(1 - dim));
  const Tensor zeros = at::zeros({a.size(0), b.size(1)}, dense.options().dtype(type));
  return zeros.index_add(dim, sparse_first ? rows : columns, terms).to(a.scalar_type());
}

Tensor mm(const Tensor& a, const Tensor& b) { return is_recorded_product(a, b) ? product(a, b) : on_host("mm", a, b); }

Tensor addmm(const Tensor& self, const Tensor& a, const Tensor& b, const at::Scalar& beta, const at::Scalar& alpha) {
  const bool is_recorded = is_dense(self) && is_lazy(self) && is_recorded_product(a, b) && self.scalar_type() == a.scalar_type();
  if (!is_recorded) return on_host("addmm", self, a, b, beta, alpha);
  check_device(self, a);
  Tensor result = product(a, b);
  if (!alpha.equal(1)) result = result.mul(alpha);
  const Tensor added = self.expand_as(result);
  if (beta.equal(0)) return result;
  return beta.equal(1) ? added.add(result) : added.mul(beta).add(result);
}

Tensor mv_compressed(const Tensor& matrix, const Tensor& vector) {
  TORCH_CHECK(matrix.dim() == 2 && vector.dim() == 1, "mv: expected a matrix and a vector, got tensors of ", matrix.dim(),
              " and of ", vector.dim(), " dims");
  return at::mm(matrix, vector.unsqueeze(1)).squeeze(1);
}

// ---- places of a COO tensor's elements in a dense tensor

Tensor gather_at(const Tensor& dense, const at::SparseTensorImpl& places) {
  if (places.sparse_dim() == 1) return dense.index_select(0, places.indices().select(0, 0));
  c10::List<std::optional<Tensor>> indices;
  for (int64_t dim = 0; dim < places.sparse_dim(); ++dim) indices.push_back(places.indices().select(0, dim));
  return at::index(dense, indices);
}

// In place; elements of one place are added.
void add_at(Tensor& dense, const at::SparseTensorImpl& sparse, const at::Scalar& alpha) {
  const Tensor values = sparse.values().to(dense.scalar_type());
  if (sparse.sparse_dim() == 1) {
    dense.index_add_(0, sparse.indices().select(0, 0), values, alpha);
    return;
  }
  c10::List<std::optional<Tensor>> indices;
  for (int64_t dim = 0; dim < sparse.sparse_dim(); ++dim) indices.push_back(sparse.indices().select(0, dim));
  at::index_put_(dense, indices, alpha.equal(1) ? values : values.mul(alpha), /*accumulate=*/true);
}

bool has_places(const Tensor& sparse, const Tensor& dense) {
  return is_coo(sparse) && is_dense(dense) && is_lazy(sparse) && is_lazy(dense) && sparse.sizes() == dense.sizes() &&
         coo_impl(sparse).sparse_dim() > 0;
}

Tensor sparse_mask(const Tensor& self, const Tensor& mask) {
  if (!has_places(mask, self)) return on_host("sparse_mask", self, mask);
  check_device(self, mask);
  return with_values(mask, gather_at(self, coo_impl(mask)));
}

// ---- sums

// Whether a product with the number is of that dtype.
bool can_scale(c10::ScalarType dtype, const at::Scalar& number) {
  return dtype != at::kBool && !number.isComplex() && (number.isIntegral(true) || !c10::isIntegralType(dtype, true));
}

// Whether the elements of both make up the sum. Where both are coalesced, the CPU gives a coalesced one.
bool can_be_joined(const Tensor& a, const Tensor& b, const at::Scalar& alpha) {
  if (!is_coo(a) || !is_coo(b) || !is_lazy(a) || !is_lazy(b) || a.sizes() != b.sizes()) return false;
  const at::SparseTensorImpl &one = coo_impl(a), &other = coo_impl(b);
  return one.sparse_dim() == other.sparse_dim() && a.scalar_type() == b.scalar_type() && can_scale(a.scalar_type(), alpha) &&
         !(one.coalesced() && other.coalesced());
}

Tensor joined(const Tensor& a, const Tensor& b, const at::Scalar& alpha) {
  check_device(a, b);
  const SparseParts one = parts_of(a), other = parts_of(b);
  const Tensor scaled = alpha.equal(1) ? other.values : other.values.mul(alpha);
  const Tensor result = sparse_like(a, {at::cat({one.indices, other.indices}, 1), {}, at::cat({one.values, scaled}, 0)});
  coo_impl(result).set_coalesced(false);
  return result;
}

// A tensor that each step adds to, as a momentum, takes no more memory than a dense one.
Tensor bounded(const Tensor& sum) {
  const c10::IntArrayRef places = sum.sizes().slice(0, static_cast<size_t>(coo_impl(sum).sparse_dim()));
  return coo_impl(sum).nnz() > c10::multiply_integers(places) ? sum.coalesce() : sum;
}

bool adds_recorded(const Tensor& self, const Tensor& other, const at::Scalar& alpha) {
  return has_places(other, self) && c10::canCast(other.scalar_type(), self.scalar_type()) && can_scale(self.scalar_type(), alpha);
}

Tensor add_scaled(const char* name, const Tensor& self, const Tensor& other, const at::Scalar& alpha, const at::Scalar& factor) {
  if (can_be_joined(self, other, factor)) return joined(self, other, factor);
  const c10::ScalarType type = at::result_type(self, other);
  if (!adds_recorded(self, other, factor)) return on_host(name, self, other, alpha);
  check_device(self, other);
  Tensor sum = self.to(type, /*non_blocking=*/false, /*copy=*/true, at::MemoryFormat::Contiguous);
  add_at(sum, coo_impl(other), factor);
  return sum;
}

Tensor& add_scaled_(const char* name, Tensor& self, const Tensor& other, const at::Scalar& alpha, const at::Scalar& factor) {
  if (can_be_joined(self, other, factor)) {
    assign_sparse(self, bounded(joined(self, other, factor)));
  } else if (adds_recorded(self, other, factor)) {
    check_device(self, other);
    add_at(self, coo_impl(other), factor);
  } else {
    on_host(name, self, other, alpha);
  }
  return self;
}

Tensor add(const Tensor& self, const Tensor& other, const at::Scalar& alpha) {
  return add_scaled("add.Tensor", self, other, alpha, alpha);
}
Tensor sub(const Tensor& self, const Tensor& other, const at::Scalar& alpha) {
  return add_scaled("sub.Tensor", self, other, alpha, -alpha);
}
Tensor& add_(Tensor& self, const Tensor& other, const at::Scalar& alpha) {
  return add_scaled_("add_.Tensor", self, other, alpha, alpha);
}
Tensor& sub_(Tensor& self, const Tensor& other, const at::Scalar& alpha) {
  return add_scaled_("sub_.Tensor", self, other, alpha, -alpha);
}

// ---- element by element

// By a number or a tensor of one.
bool is_scaled(const Tensor& tensor, const Tensor& by) { return is_sparse(tensor) && is_lazy(tensor) && is_number(by); }

Tensor mul(const Tensor& a, const Tensor& b) {
  if (is_scaled(a, b)) return with_values(a, parts_of(a).values.mul(b));
  if (is_scaled(b, a)) return with_values(b, a.mul(parts_of(b).values));
  const bool sparse_first = is_coo(a);
  const Tensor &sparse = sparse_first ? a : b, &dense = sparse_first ? b : a;
  if (!has_places(sparse, dense) || !coo_impl(sparse).coalesced()) return on_host("mul.Tensor", a, b);
  check_device(a, b);
  return with_values(sparse, coo_impl(sparse).values().mul(gather_at(dense, coo_impl(sparse))));
}

Tensor mul_number(const Tensor& self, const at::Scalar& number) { return with_values(self, parts_of(self).values.mul(number)); }

Tensor& mul_number_(Tensor& self, const at::Scalar& number) {
  parts_of(self).values.mul_(number);
  return self;
}

Tensor div(const Tensor& self, const Tensor& other) {
  return is_scaled(self, other) ? with_values(self, parts_of(self).values.div(other)) : on_host("div.Tensor", self, other);
}

Tensor& mul_(Tensor& self, const Tensor& other) {
  is_scaled(self, other) ? parts_of(self).values.mul_(other) : on_host("mul_.Tensor", self, other);
  return self;
}
Tensor& div_(Tensor& self, const Tensor& other) {
  is_scaled(self, other) ? parts_of(self).values.div_(other) : on_host("div_.Tensor", self, other);
  return self;
}

// Functions that leave zero where it is: of the values. Elements of one place are added first, but where the order is the same.
constexpr const char* kOfValues[] = {"abs",   "asin",  "asinh", "atan",  "atanh", "ceil",    "deg2rad", "erf",   "erfinv",
                                     "expm1", "floor", "frac",  "log1p", "neg",   "rad2deg", "relu",    "round", "sgn",
                                     "sign",  "sin",   "sinh",  "sqrt",  "tan",   "tanh",    "trunc"};

void apply_to_values(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const Tensor self = torch::jit::peek(*stack, 0, op.schema().arguments().size()).toTensor();
  if (is_coo(self) && !coo_impl(self).coalesced() && op.schema().name() != "aten::neg") return run_sparse_on_host(op, stack);
  torch::jit::peek(*stack, 0, op.schema().arguments().size()) = parts_of(self).values;
  op.callBoxed(stack);
  stack->back() = with_values(self, stack->back().toTensor());
}

// ---- geometry

// With its sparse dims in another order. `order` has all dims, the dense ones in their places.
Tensor reordered(const Tensor& self, c10::IntArrayRef order) {
  at::SparseTensorImpl& impl = coo_impl(self);
  std::vector<Tensor> rows;
  c10::DimVector sizes;
  for (const int64_t dim : order) sizes.push_back(self.size(dim));
  for (int64_t dim = 0; dim < impl.sparse_dim(); ++dim) rows.push_back(impl.indices().select(0, order[static_cast<size_t>(dim)]));
  const Tensor result = sparse_like(self, {impl.indices(), {}, impl.values().clone()});
  coo_impl(result).raw_resize_(impl.sparse_dim(), impl.dense_dim(), sizes);
  coo_impl(result).set_indices_and_values_unsafe(at::stack(rows), coo_impl(result).values());
  coo_impl(result).set_coalesced(false);
  return result;
}

Tensor transpose(const Tensor& self, int64_t dim0, int64_t dim1) {
  const int64_t first = c10::maybe_wrap_dim(dim0, self.dim()), second = c10::maybe_wrap_dim(dim1, self.dim());
  if (first == second || std::max(first, second) >= coo_impl(self).sparse_dim()) return at::native::transpose(self, dim0, dim1);
  c10::DimVector order(static_cast<size_t>(self.dim()));
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[static_cast<size_t>(first)], order[static_cast<size_t>(second)]);
  return reordered(self, order);
}

Tensor permute(const Tensor& self, c10::IntArrayRef dims) {
  const bool is_transposed = self.dim() == 2 && dims.size() == 2 && coo_impl(self).sparse_dim() == 2 &&
                             c10::maybe_wrap_dim(dims[0], 2) == 1 && c10::maybe_wrap_dim(dims[1], 2) == 0;
  return is_transposed ? reordered(self, {1, 0}) : on_host("permute", self, dims.vec());
}

// ---- gradients of tables

// Rows of zeros stand for those of the padding, so that their number needs no value. Also above autograd, which sees what it is
// made of.
Tensor embedding_sparse_backward(const Tensor& grad, const Tensor& indices, int64_t rows, int64_t padding, bool by_frequency) {
  if (padding == -1) return at::native::embedding_sparse_backward(grad, indices, rows, padding, by_frequency);
  const Tensor kept = at::where(indices.ne(padding).unsqueeze(-1), grad, 0);
  return at::native::embedding_sparse_backward(kept, indices, rows, -1, by_frequency);
}

// The bag of each index, where the forward has not kept it.
Tensor bag_of_each(const Tensor& indices, const Tensor& offsets) {
  return at::searchsorted(offsets, at::arange(indices.numel(), offsets.options()), /*out_int32=*/false, /*right=*/true).sub(1);
}

// A gradient of rows: the rows that the bags read. Else a dense one is recorded.
void embedding_bag_backward(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const auto arg = [&](size_t i) -> const c10::IValue& { return torch::jit::peek(*stack, i, 12); };
  if (!arg(9).toBool()) return record_any(op, stack);
  const Tensor indices = arg(1).toTensor(), offsets = arg(2).toTensor(), bags = arg(3).toTensor();
  Tensor result = at::_embedding_bag_sparse_backward(
      arg(0).toTensor(), indices, offsets, bags.numel() == 0 ? bag_of_each(indices, offsets) : bags, arg(4).toTensor(),
      arg(6).toInt(), arg(7).toBool(), arg(8).toInt(), arg(10).toOptional<Tensor>(), arg(11).toInt());
  torch::jit::drop(*stack, 12);
  stack->emplace_back(std::move(result));
}

void add_common(torch::Library& m) {
  m.impl("mm", mm);
  m.impl("addmm", addmm);
  m.impl("add.Tensor", add);
  m.impl("add_.Tensor", add_);
  m.impl("sub.Tensor", sub);
  m.impl("sub_.Tensor", sub_);
  m.impl("mul.Tensor", mul);
  m.impl("mul_.Tensor", mul_);
  m.impl("mul.Scalar", mul_number);
  m.impl("mul_.Scalar", mul_number_);
  m.impl("div.Tensor", div);
  m.impl("div_.Tensor", div_);
  for (const char* name : kOfValues) m.impl(name, torch::CppFunction::makeFromBoxedFunction<&apply_to_values>());
}
TORCH_LIBRARY_IMPL(aten, SparsePrivateUse1, m) {
  add_common(m);
  m.impl("sparse_mask", sparse_mask);
  m.impl("transpose.int", transpose);
  m.impl("permute", permute);
}
TORCH_LIBRARY_IMPL(aten, SparseCsrPrivateUse1, m) {
  add_common(m);
  m.impl("mv", mv_compressed);
}
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_embedding_bag_backward", torch::CppFunction::makeFromBoxedFunction<&embedding_bag_backward>());
  m.impl("embedding_sparse_backward", embedding_sparse_backward);
}
TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, m) { m.impl("embedding_sparse_backward", embedding_sparse_backward); }

}  // namespace
}  // namespace ltc
