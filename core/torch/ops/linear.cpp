// torch.nn.Linear in one step, forward and backward. PyTorch takes it apart into views and products, and autograd remembers each:
// the products are recorded here as they would be then, without tensors for the views and without gradient nodes for them.
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/linear_native.h>
#include <torch/library.h>

#include "core/torch/dispatch/boxed_kernel.h"
#include "core/torch/dispatch/hot_gradients.h"
#include "core/torch/dispatch/recording.h"
#include "core/torch/tensor/geometry.h"
#include "core/torch/tensor/thread_state.h"

namespace ltc {
namespace {

using at::Tensor;
using OptTensor = std::optional<Tensor>;
using Gradients = std::tuple<Tensor, Tensor, Tensor>;

bool is_given(const OptTensor& tensor) { return tensor && tensor->defined(); }

bool is_plain(const Tensor& tensor) { return is_lazy(tensor) && !has_lazy_bits(tensor.unsafeGetTensorImpl()); }

// A matrix, or several stacked without gaps. Gradients of complex ones need conjugates, those of one in the order of columns
// have its strides.
bool is_rows(const Tensor& tensor) {
  if (!is_plain(tensor) || tensor.is_complex()) return false;
  if (tensor.dim() != 2) return tensor.dim() > 2 && tensor.is_contiguous();
  return tensor.stride(0) != 1 || tensor.stride(1) != tensor.size(0);
}

bool is_weight(const Tensor& tensor) { return is_plain(tensor) && tensor.dim() == 2 && tensor.is_contiguous(); }

// Whether PyTorch would compute it as one product of matrices.
bool is_one_product(const Tensor& input, const Tensor& weight, const OptTensor& bias) {
  if (!is_rows(input) || !is_weight(weight)) return false;
  return !is_given(bias) || (is_plain(*bias) && bias->dim() == 1 && bias->is_contiguous());
}

int64_t rows_of(const Tensor& tensor) { return c10::multiply_integers(tensor.sizes().slice(0, tensor.dim() - 1)); }

// A tensor's elements as a matrix: its rows, or those as columns.
struct Matrix {
  Matrix(const Tensor& of, bool transposed) : tensor(of.unsafeGetTensorImpl()) {
    const int64_t columns = of.size(-1), last = of.stride(-1);
    int64_t sizes[] = {of.dim() == 2 ? of.size(0) : rows_of(of), columns};
    int64_t strides[] = {of.dim() == 2 ? of.stride(0) : columns, last};
    if (transposed) std::swap(sizes[0], sizes[1]), std::swap(strides[0], strides[1]);
    geometry = intern_type(to_dtype(of.scalar_type()), sizes, strides);
  }

  const c10::TensorImpl* tensor;
  TypeId geometry = kNoType;
};

// One op of matrices. All that belong together are looked up before the first is recorded: if one is not known yet, none is, and
// PyTorch's way records the same in the same order.
class Product {
 public:
  explicit Product(const OpEntry& op) : recording_(op) {}

  Recording& operands() { return recording_; }
  void add(const Matrix& matrix) { recording_.add_view(matrix.tensor, matrix.geometry); }
  bool find(const Recorder& recorder) { return (signature_ = recording_.find_signature(recorder)) != nullptr; }
  Tensor emit(Recorder& recorder) const {
    return recording_.bind_fresh(recorder, recording_.emit(recorder, *signature_), signature_->outputs[0]);
  }

 private:
  Recording recording_;
  const Signature* signature_ = nullptr;
};

// A fresh matrix as the rows of a tensor that is to have the leading sizes of `like`.
Tensor stacked(Tensor matrix, const Tensor& like) {
  if (like.dim() == 2) return matrix;
  std::vector<int64_t> sizes = like.sizes().vec();
  sizes.back() = matrix.size(1);
  matrix.unsafeGetTensorImpl()->set_sizes_contiguous(sizes);
  return matrix;
}

// Undefined for what was not met before.
Tensor record_linear(const Tensor& input, const Tensor& weight, const OptTensor& bias) {
  static const OpEntry &addmm = OpEntry::named("addmm"), &mm = OpEntry::named("mm");
  Product product(is_given(bias) ? addmm : mm);
  if (is_given(bias)) product.operands().add_tensor(bias->unsafeGetTensorImpl());
  product.add(Matrix(input, false));
  product.add(Matrix(weight, true));
  if (is_given(bias)) product.operands().add_absent(), product.operands().add_absent();  // beta and alpha are 1
  Recorder recorder(lazy_device(input));
  if (recorder.may_end() || !product.find(recorder)) return {};
  return stacked(product.emit(recorder), input);
}

Tensor linear_kernel(const Tensor& input, const Tensor& weight, const OptTensor& bias) {
  if (is_one_product(input, weight, bias)) {
    Tensor result = record_linear(input, weight, bias);
    if (result.defined()) return result;
  }
  return at::native::linear(input, weight, bias);
}

Tensor linear_autograd(c10::DispatchKeySet keys, const Tensor& input, const Tensor& weight, const OptTensor& bias) {
  const auto has_forward = [](const Tensor& tensor) { return has_forward_gradient(tensor); };
  const bool is_seen =
      !reaches_device(keys) || has_forward(input) || has_forward(weight) || (is_given(bias) && has_forward(*bias));
  if (is_seen || !is_one_product(input, weight, bias)) return at::native::linear(input, weight, bias);
  using torch::autograd::SavedVariable;
  decltype(make_node<torch::autograd::generated::LinearBackward0>()) node;
  if (torch::autograd::compute_requires_grad(input, weight, bias)) {
    node = make_node<torch::autograd::generated::LinearBackward0>();
    node->set_next_edges(gradients::next_edges(input, weight, bias));
    node->input_ = SavedVariable(input, /*is_output=*/false);
    node->weight_ = SavedVariable(weight, /*is_output=*/false);
  }
  Tensor result;
  {
    at::AutoDispatchBelowADInplaceOrView below_autograd;
    result = linear_kernel(input, weight, bias);
  }
  if (node) torch::autograd::set_history(result, node);
  return result;
}

// Gradients by PyTorch's own ops, which can be differentiated again.
Gradients compose_backward(const Tensor& input, const Tensor& grad, const Tensor& weight, std::array<bool, 3> wanted) {
  const auto matrix = [](const Tensor& tensor) { return tensor.reshape({rows_of(tensor), tensor.size(-1)}); };
  const Tensor rows = matrix(grad);
  Gradients result;
  if (wanted[0]) std::get<0>(result) = rows.mm(weight.conj()).view_symint(input.sym_sizes());
  if (wanted[1]) std::get<1>(result) = rows.t().mm(matrix(input).conj());
  if (wanted[2]) std::get<2>(result) = rows.sum(0);
  return result;
}

// False for what was not met before.
bool record_backward(const Tensor& input, const Tensor& grad, const Tensor& weight, std::array<bool, 3> wanted,
                     Gradients& result) {
  static const OpEntry &mm = OpEntry::named("mm"), &sum = OpEntry::named("sum.dim_IntList");
  static const c10::IValue first_dim(std::vector<int64_t>{0}), no(false);
  const Matrix grad_rows(grad, false);
  Product of_input(mm), of_weight(mm), of_bias(sum);
  of_input.add(grad_rows);
  of_input.add(Matrix(weight, false));
  of_weight.add(Matrix(grad, true));
  of_weight.add(Matrix(input, false));
  of_bias.add(grad_rows);
  of_bias.operands().add_constant(first_dim);
  of_bias.operands().add_constant(no);  // keepdim
  of_bias.operands().add_absent();      // dtype
  Recorder recorder(lazy_device(grad));
  if (recorder.may_end()) return false;
  if (wanted[0] && !of_input.find(recorder)) return false;
  if (wanted[1] && !of_weight.find(recorder)) return false;
  if (wanted[2] && !of_bias.find(recorder)) return false;
  if (wanted[0]) std::get<0>(result) = stacked(of_input.emit(recorder), input);
  if (wanted[1]) std::get<1>(result) = of_weight.emit(recorder);
  if (wanted[2]) std::get<2>(result) = of_bias.emit(recorder);
  return true;
}

Gradients backward_kernel(const Tensor& input, const Tensor& grad, const Tensor& weight, std::array<bool, 3> wanted) {
  Gradients result;
  const bool takes_fast_path = is_rows(input) && is_plain(grad) && (grad.dim() == 2 || grad.is_contiguous()) && is_weight(weight);
  if (takes_fast_path && record_backward(input, grad, weight, wanted, result)) return result;
  return compose_backward(input, grad, weight, wanted);
}

Gradients backward_autograd(c10::DispatchKeySet keys, const Tensor& input, const Tensor& grad, const Tensor& weight,
                            std::array<bool, 3> wanted) {
  const bool grad_mode = autograd_state().get_grad_mode();
  const auto is_constant = [&](const Tensor& tensor) { return needs_no_gradient(tensor, grad_mode); };
  if (!reaches_device(keys) || !is_constant(input) || !is_constant(grad) || !is_constant(weight)) {
    return compose_backward(input, grad, weight, wanted);
  }
  at::AutoDispatchBelowADInplaceOrView below_autograd;
  return backward_kernel(input, grad, weight, wanted);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("linear", linear_kernel);
  m.impl("linear_backward", backward_kernel);
}
TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, m) {
  m.impl("linear", linear_autograd);
  m.impl("linear_backward", backward_autograd);
}

}  // namespace
}  // namespace ltc
