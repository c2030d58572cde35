#include "core/torch/dispatch/shape_rules.h"

#include <ATen/ExpandUtils.h>
#include <ATen/OpMathType.h>
#include <ATen/native/ConvUtils.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/WrapDimMinimal.h>

#include <algorithm>
#include <unordered_map>

#include "core/base/log.h"
#include "core/torch/dispatch/shape_rule_support.h"
#include "core/torch/tensor/why.h"

namespace ltc {
namespace {

using namespace shape_rules;

// ---- convolutions

// One of the lists of a convolution: a number for each dim of the picture, or one for all.
std::vector<int64_t> each_dim(const c10::IValue& list, int64_t dims) {
  std::vector<int64_t> result = list.toIntVector();
  if (result.size() == 1) result.resize(static_cast<size_t>(dims), result[0]);
  return result;
}

std::vector<c10::SymInt> symbolic(const c10::IValue& list) {
  const std::vector<int64_t> plain = list.toIntVector();
  return {plain.begin(), plain.end()};
}

// Rows of places, [batch, channels, places], as pictures of one row. All else as it is.
std::vector<int64_t> as_picture(c10::IntArrayRef sizes) {
  std::vector<int64_t> result = sizes.vec();
  if (sizes.size() == 3) result.insert(result.begin() + 2, 1);
  return result;
}

// The geometry of an operand of a convolution, over no memory: PyTorch computes rows as pictures, made contiguous.
at::Tensor dummy_picture(const at::Tensor& of) {
  alignas(64) static char nothing[64];
  const std::vector<int64_t> sizes = as_picture(of.sizes());
  return at::from_blob(nothing, sizes, of.dim() == 3 ? contiguous_strides(sizes) : of.strides().vec(),
                       of.options().device(at::kCPU));
}

// The geometry of a convolution by oneDNN or, of row-major pictures, by a product of matrices: its results are dense, in one
// format that PyTorch chooses.
struct Convolution {
  std::vector<int64_t> output_sizes;
  c10::MemoryFormat format;
  bool is_onednn;
  TypeId type(const at::Tensor& of, c10::IntArrayRef sizes) const {
    std::vector<int64_t> strides = dense_strides(as_picture(sizes), format);
    if (sizes.size() == 3) strides.erase(strides.begin() + 2);
    return intern_type(to_dtype(of.scalar_type()), as_span(sizes), strides);
  }
};

// `args`: stride, padding, dilation, transposed, output_padding, groups. Empty where another kernel computes it.
std::optional<Convolution> convolution_of(const at::Tensor& input, const at::Tensor& weight, const at::Tensor* bias,
                                          const c10::IValue* args, at::OptionalSymIntArrayRef bias_sizes) {
  const int64_t dims = input.dim() - 2;
  if (dims < 1 || dims > 3 || weight.dim() != input.dim() || args[3].toBool()) return std::nullopt;
  const auto stride = each_dim(args[0], dims), padding = each_dim(args[1], dims), dilation = each_dim(args[2], dims);
  const auto any_below = [](const std::vector<int64_t>& list, int64_t bound) { return std::ranges::min(list) < bound; };
  if (any_below(stride, 1) || any_below(padding, 0) || any_below(dilation, 1)) return std::nullopt;
  const auto of_picture = [&](std::vector<int64_t> list, int64_t of_row) {
    if (dims == 1) list.insert(list.begin(), of_row);
    return std::vector<c10::SymInt>(list.begin(), list.end());
  };
  const at::Tensor x = dummy_picture(input), w = dummy_picture(weight);
  const std::optional<at::Tensor> b = bias ? std::optional(dummy_picture(*bias)) : std::nullopt;
  const int64_t groups = args[5].toInt();
  const auto backend =
      at::native::select_conv_backend(x, w, b, of_picture(stride, 1), of_picture(padding, 0), of_picture(dilation, 1), false,
                                      of_picture(each_dim(args[4], dims), 0), groups, bias_sizes);
  const bool is_onednn = backend == at::native::ConvBackend::Mkldnn;
  const auto format = at::native::_determine_backend_memory_format(x, w, backend);
  const bool is_plain_product =
      backend == at::native::ConvBackend::Slow2d && groups == 1 && format == c10::MemoryFormat::Contiguous;
  if (!is_onednn && !is_plain_product) return std::nullopt;
  return Convolution{at::native::conv_output_size(input.sizes(), weight.sizes(), padding, stride, dilation), format, is_onednn};
}

// (input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)
std::optional<Types> convolution(const c10::IValue* args) {
  const at::Tensor &input = args[0].toTensor(), &weight = args[1].toTensor();
  const at::Tensor* bias = tensor(args[2]);
  if (!same_type(input, {&weight, bias})) return std::nullopt;
  const auto found = convolution_of(input, weight, bias, args + 3, std::nullopt);
  if (!found) return std::nullopt;
  return Types{found->type(input, found->output_sizes)};
}

// (grad_output, input, weight, bias_sizes, stride, padding, dilation, transposed, output_padding, groups, output_mask)
std::optional<Types> convolution_backward(const c10::IValue* args) {
  const at::Tensor &gradient = args[0].toTensor(), &input = args[1].toTensor(), &weight = args[2].toTensor();
  if (!same_type(input, {&gradient, &weight})) return std::nullopt;
  const std::vector<c10::SymInt> bias_sizes = args[3].isNone() ? std::vector<c10::SymInt>() : symbolic(args[3]);
  const auto found =
      convolution_of(input, weight, nullptr, args + 4, args[3].isNone() ? std::nullopt : at::OptionalSymIntArrayRef(bias_sizes));
  if (!found || gradient.sizes() != found->output_sizes) return std::nullopt;
  const auto mask = args[10].toBoolList();
  const bool gives_weight = mask[1] || (mask[2] && found->is_onednn);     // its kernel gives both
  if (gives_weight && !mask[1] && input.dim() == 3) return std::nullopt;  // as that of a picture
  return Types{mask[0] ? found->type(input, input.sizes()) : kNoType,
               gives_weight ? found->type(weight, weight.sizes()) : kNoType,
               mask[2] ? dense_type(weight, {weight.size(0)}) : kNoType};
}

// ---- element-wise, and batch norm

// Row-major, and in no other format as well: kernels may take a picture of one channel for channels-last.
bool is_plainly_contiguous(const at::Tensor& tensor) {
  return tensor.numel() > 0 && std::ranges::equal(tensor.strides(), contiguous_strides(as_span(tensor.sizes()))) &&
         tensor.suggest_memory_format() == c10::MemoryFormat::Contiguous;
}

bool is_vector_of(const at::Tensor* tensor, int64_t size) {
  return !tensor || (tensor->dim() == 1 && tensor->size(0) == size && tensor->is_contiguous());
}

// (self), which keep its type
std::optional<Types> relu_or_abs(const c10::IValue* args) {
  const at::Tensor& self = args[0].toTensor();
  if (self.is_complex() || self.scalar_type() == at::kBool || !is_plainly_contiguous(self)) return std::nullopt;
  return Types{dense_type(self, self.sizes())};
}

// Operands and result without dims of size 1: PyTorch looks at more than sizes to choose the strides of these.
bool has_no_ones(c10::IntArrayRef sizes) {
  return std::ranges::all_of(sizes, [](int64_t size) { return size > 1; });
}

// (condition, self, other)
std::optional<Types> where(const c10::IValue* args) {
  const at::Tensor& self = args[1].toTensor();
  if (args[0].toTensor().scalar_type() != at::kBool || !same_type(self, {&args[2].toTensor()})) return std::nullopt;
  std::vector<int64_t> sizes;
  for (int i = 0; i < 3; ++i) {
    if (!args[i].toTensor().is_contiguous()) return std::nullopt;
    sizes = at::infer_size(sizes, args[i].toTensor().sizes());
  }
  if (!has_no_ones(sizes)) return std::nullopt;
  return Types{dense_type(self, sizes)};
}

// (self, mask, value)
std::optional<Types> masked_fill(const c10::IValue* args) {
  const at::Tensor &self = args[0].toTensor(), &mask = args[1].toTensor();
  const at::Scalar value = args[2].toScalar();
  if (mask.scalar_type() != at::kBool || !c10::canCast(value.type(), self.scalar_type())) return std::nullopt;
  return Types{dense_type(self, at::infer_size(self.sizes(), mask.sizes()))};
}

// (self)
std::optional<Types> hardswish(const c10::IValue* args) {
  return args[0].toTensor().is_floating_point() ? relu_or_abs(args) : std::nullopt;
}

// (grad_output, self)
std::optional<Types> hardswish_backward(const c10::IValue* args) {
  const at::Tensor &gradient = args[0].toTensor(), &self = args[1].toTensor();
  if (!self.is_floating_point() || !same_type(self, {&gradient}) || gradient.sizes() != self.sizes()) return std::nullopt;
  if (!is_plainly_contiguous(self) || !is_plainly_contiguous(gradient)) return std::nullopt;
  return Types{dense_type(self, self.sizes())};
}

// (grad_output, self, target, reduction)
std::optional<Types> mse_loss_backward(const c10::IValue* args) {
  const at::Tensor &gradient = args[0].toTensor(), &self = args[1].toTensor(), &target = args[2].toTensor();
  if (!self.is_floating_point() || !same_type(self, {&gradient, &target}) || self.numel() == 0) return std::nullopt;
  if (self.sizes() != target.sizes() || (gradient.dim() > 0 && gradient.sizes() != self.sizes())) return std::nullopt;
  return Types{dense_type(self, self.sizes())};
}

// (self, dim, dtype)
std::optional<Types> safe_softmax(const c10::IValue* args) {
  const at::Tensor& self = args[0].toTensor();
  c10::maybe_wrap_dim(args[1].toInt(), self.dim(), /*wrap_scalar=*/false);  // throws where there is no such dim
  if (!args[2].isNone() || !self.is_floating_point()) return std::nullopt;
  if (!is_plainly_contiguous(self) || !has_no_ones(self.sizes())) return std::nullopt;
  return Types{dense_type(self, self.sizes())};
}

// Whether it is training on a plain input, with all else of its type: what mixed types give is for PyTorch to say.
bool covers_batch_norm(const at::Tensor& input, std::initializer_list<const at::Tensor*> by_channel, bool training) {
  return training && input.dim() > 1 && input.is_floating_point() && is_plainly_contiguous(input) &&
         same_type(input, by_channel) &&
         std::ranges::all_of(by_channel, [&](const at::Tensor* one) { return is_vector_of(one, input.size(1)); });
}

// (input, weight, bias, running_mean, running_var, training, momentum, eps)
std::optional<Types> batch_norm(const c10::IValue* args) {
  const at::Tensor& input = args[0].toTensor();
  const auto by_channel = {tensor(args[1]), tensor(args[2]), tensor(args[3]), tensor(args[4])};
  if (!covers_batch_norm(input, by_channel, args[5].toBool())) return std::nullopt;
  const TypeId channels = dense_type(input, {input.size(1)});
  return Types{dense_type(input, input.sizes()), channels, channels, channels, channels};
}

// (grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps, output_mask)
std::optional<Types> batch_norm_backward(const c10::IValue* args) {
  const at::Tensor &gradient = args[0].toTensor(), &input = args[1].toTensor();
  const auto by_channel = {tensor(args[2]), tensor(args[3]), tensor(args[4]), tensor(args[5]), tensor(args[6])};
  if (!covers_batch_norm(input, by_channel, args[7].toBool()) || !same_type(input, {&gradient})) return std::nullopt;
  if (gradient.sizes() != input.sizes() || !is_plainly_contiguous(gradient)) return std::nullopt;
  const auto mask = args[9].toBoolList();
  const TypeId channels = dense_type(input, {input.size(1)});
  return Types{mask[0] ? dense_type(input, input.sizes()) : kNoType, mask[1] ? channels : kNoType, mask[2] ? channels : kNoType};
}

// ---- layer norm

// The dims that are normalized, and parameters of just these: the rest is for PyTorch to say.
bool covers_layer_norm(const at::Tensor& input, const c10::IValue& normalized_shape,
                       std::initializer_list<const at::Tensor*> parameters) {
  const std::vector<int64_t> normalized = normalized_shape.toIntVector();
  const auto of = [&](const at::Tensor* one) { return !one || (one->sizes().vec() == normalized && one->is_contiguous()); };
  return input.is_floating_point() && is_plainly_contiguous(input) && same_type(input, parameters) && !normalized.empty() &&
         static_cast<int64_t>(normalized.size()) <= input.dim() &&
         std::ranges::equal(input.sizes().slice(input.dim() - normalized.size()), normalized) &&
         std::ranges::all_of(parameters, of);
}

// (input, normalized_shape, weight, bias, eps)
std::optional<Types> layer_norm(const c10::IValue* args) {
  const at::Tensor& input = args[0].toTensor();
  if (!covers_layer_norm(input, args[1], {tensor(args[2]), tensor(args[3])})) return std::nullopt;
  std::vector<int64_t> rows = input.sizes().vec();
  std::fill(rows.end() - static_cast<int64_t>(args[1].toListRef().size()), rows.end(), 1);
  const TypeId statistics = dense_type(input, rows);
  return Types{dense_type(input, input.sizes()), statistics, statistics};
}

// (grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask)
std::optional<Types> layer_norm_backward(const c10::IValue* args) {
  const at::Tensor &gradient = args[0].toTensor(), &input = args[1].toTensor();
  const at::Tensor *weight = tensor(args[5]), *bias = tensor(args[6]);
  const auto mask = args[7].toBoolList();
  if (!covers_layer_norm(input, args[2], {weight, bias}) || (mask[1] && !weight) || (mask[2] && !bias)) return std::nullopt;
  if (gradient.sizes() != input.sizes() || !same_type(input, {&gradient, tensor(args[3]), tensor(args[4])})) return std::nullopt;
  return Types{mask[0] ? dense_type(input, input.sizes()) : kNoType, mask[1] ? dense_type(*weight, weight->sizes()) : kNoType,
               mask[2] ? dense_type(*bias, bias->sizes()) : kNoType};
}

// ---- group norm

// Whether the numbers of images, channels and places are those of a plain input, with all else of its type.
bool covers_group_norm(const at::Tensor& input, const c10::IValue* counts, std::initializer_list<const at::Tensor*> others) {
  return input.dim() > 1 && input.is_floating_point() && is_plainly_contiguous(input) && same_type(input, others) &&
         input.size(0) == counts[0].toInt() && input.size(1) == counts[1].toInt() &&
         input.numel() / (input.size(0) * input.size(1)) == counts[2].toInt() && counts[3].toInt() > 0 &&
         input.size(1) % counts[3].toInt() == 0;
}

// (input, weight, bias, images, channels, places, groups, eps)
std::optional<Types> group_norm(const c10::IValue* args) {
  const at::Tensor& input = args[0].toTensor();
  const at::Tensor *weight = tensor(args[1]), *bias = tensor(args[2]);
  if (!covers_group_norm(input, args + 3, {weight, bias})) return std::nullopt;
  if (!is_vector_of(weight, input.size(1)) || !is_vector_of(bias, input.size(1))) return std::nullopt;
  const TypeId statistics = dense_type(input, {input.size(0), args[6].toInt()});
  return Types{dense_type(input, input.sizes()), statistics, statistics};
}

// (grad_out, input, mean, rstd, weight, images, channels, places, groups, output_mask)
std::optional<Types> group_norm_backward(const c10::IValue* args) {
  const at::Tensor &gradient = args[0].toTensor(), &input = args[1].toTensor();
  const at::Tensor *mean = tensor(args[2]), *rstd = tensor(args[3]), *weight = tensor(args[4]);
  const auto mask = args[9].toBoolList();
  if (!covers_group_norm(input, args + 5, {&gradient, mean, rstd, weight})) return std::nullopt;
  if (!is_plainly_contiguous(gradient) || gradient.sizes() != input.sizes() || !is_vector_of(weight, input.size(1)))
    return std::nullopt;
  const std::vector<int64_t> of_groups = {input.size(0), args[8].toInt()};
  if (!mean || !rstd || mean->sizes() != of_groups || rstd->sizes() != of_groups) return std::nullopt;
  if ((mask[1] || mask[2]) && !weight) return std::nullopt;
  const TypeId channels = dense_type(input, {input.size(1)});
  return Types{mask[0] ? dense_type(input, input.sizes()) : kNoType, mask[1] ? channels : kNoType, mask[2] ? channels : kNoType};
}

// ---- look-ups

// (weight, indices, padding_idx, ...)
std::optional<Types> embedding(const c10::IValue* args) {
  const at::Tensor &weight = args[0].toTensor(), &indices = args[1].toTensor();
  if (weight.dim() != 2 || (indices.scalar_type() != at::kLong && indices.scalar_type() != at::kInt)) return std::nullopt;
  std::vector<int64_t> sizes = indices.sizes().vec();
  sizes.push_back(weight.size(1));
  return Types{dense_type(weight, sizes)};
}

// (grad_output, indices, num_weights, padding_idx, scale_grad_by_freq)
std::optional<Types> embedding_backward(const c10::IValue* args) {
  const at::Tensor& gradient = args[0].toTensor();
  const at::Tensor& indices = args[1].toTensor();
  if (!gradient.is_floating_point() || gradient.dim() != indices.dim() + 1 ||
      gradient.sizes().slice(0, indices.dim()) != indices.sizes()) {
    return std::nullopt;
  }
  if (indices.scalar_type() != at::kLong && indices.scalar_type() != at::kInt) return std::nullopt;
  return Types{dense_type(gradient, {args[2].toInt(), gradient.size(-1)})};
}

// (self, dim, index)
std::optional<Types> index_select(const c10::IValue* args) {
  const at::Tensor &self = args[0].toTensor(), &index = args[2].toTensor();
  const int64_t dim = c10::maybe_wrap_dim(args[1].toInt(), self.dim(), /*wrap_scalar=*/false);
  if (self.numel() == 0 || index.dim() != 1) return std::nullopt;
  if (index.scalar_type() != at::kLong && index.scalar_type() != at::kInt) return std::nullopt;
  std::vector<int64_t> sizes = self.sizes().vec();
  sizes[static_cast<size_t>(dim)] = index.size(0);
  return Types{dense_type(self, sizes)};
}

// ---- joined, and with a border

// (tensors, dim)
std::optional<Types> stack(const c10::IValue* args) {
  const std::vector<at::Tensor> tensors = args[0].toTensorVector();
  for (const at::Tensor& one : tensors) {
    if (one.sizes() != tensors[0].sizes() || !same_type(tensors[0], {&one})) return std::nullopt;
    if (!is_plainly_contiguous(one) || !has_no_ones(one.sizes())) return std::nullopt;
  }
  if (tensors.size() < 2) return std::nullopt;
  std::vector<int64_t> sizes = tensors[0].sizes().vec();
  const int64_t dim = c10::maybe_wrap_dim(args[1].toInt(), tensors[0].dim() + 1);
  sizes.insert(sizes.begin() + dim, static_cast<int64_t>(tensors.size()));
  return Types{dense_type(tensors[0], sizes)};
}

// (self, pad, value)
std::optional<Types> constant_pad(const c10::IValue* args) {
  const at::Tensor& self = args[0].toTensor();
  const std::vector<int64_t> pad = args[1].toIntVector();
  const auto rank = static_cast<size_t>(self.dim());
  if (!is_plainly_contiguous(self) || pad.size() % 2 != 0 || pad.size() / 2 > rank || pad.empty()) return std::nullopt;
  if (std::ranges::min(pad) < 0 || std::ranges::max(pad) == 0) return std::nullopt;
  std::vector<int64_t> sizes = self.sizes().vec();
  for (size_t i = 0; i < pad.size(); ++i) sizes[rank - 1 - i / 2] += pad[i];
  return Types{dense_type(self, sizes)};
}

// ---- gradients of pieces

// (grad_output, input_sizes, ...): zeros of these sizes, with the gradient in them.
std::optional<Types> piece_backward(const c10::IValue* args) {
  return Types{dense_type(args[0].toTensor(), args[1].toIntVector())};
}

// ---- attention

// Whether the fused kernel takes them. Each has (batch, heads, positions, size of a head). `options`: dropout_p, is_causal,
// attn_mask.
bool covers_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, const c10::IValue* options) {
  const auto fits = [&](const at::Tensor& one) {
    return one.dim() == 4 && one.size(0) == query.size(0) && one.size(1) == query.size(1) && one.size(3) == query.size(3) &&
           one.stride(3) == 1 && one.numel() > 0;
  };
  const at::Tensor* mask = tensor(options[2]);
  const auto mask_fits_at = [&](int64_t dim, int64_t size) { return mask->size(dim) == size || mask->size(dim) == 1; };
  const bool mask_fits =
      !mask || ((mask->dim() == 2 || (mask->dim() == 4 && mask_fits_at(0, query.size(0)) && mask_fits_at(1, query.size(1)))) &&
                mask_fits_at(-2, query.size(2)) && mask_fits_at(-1, key.size(2)));
  return options[0].toDouble() == 0 && query.is_floating_point() && same_type(query, {&key, &value, mask}) && fits(query) &&
         fits(key) && fits(value) && key.size(2) == value.size(2) && mask_fits;
}

// As the kernels make (batch, positions, heads, ...) and give it with both in the middle swapped.
TypeId swapped_type(const at::Tensor& of, c10::ScalarType dtype, size_t rank) {
  std::vector<int64_t> sizes = of.sizes().slice(0, rank).vec(), swapped = sizes;
  std::swap(swapped[1], swapped[2]);
  std::vector<int64_t> strides = contiguous_strides(swapped);
  std::swap(strides[1], strides[2]);
  return intern_type(to_dtype(dtype), sizes, strides);
}

// As at::empty_like makes it.
TypeId type_like(const at::Tensor& of) {
  const std::vector<int64_t> strides =
      of.is_non_overlapping_and_dense() ? of.strides().vec() : at::infer_dense_strides(of.sizes(), of.strides());
  return intern_type(to_dtype(of.scalar_type()), as_span(of.sizes()), strides);
}

// (query, key, value, dropout_p, is_causal, attn_mask, scale)
std::optional<Types> attention(const c10::IValue* args) {
  const at::Tensor& query = args[0].toTensor();
  if (!covers_attention(query, args[1].toTensor(), args[2].toTensor(), args + 3)) return std::nullopt;
  return Types{type_like(query), swapped_type(query, at::toOpMathType(query.scalar_type()), 3)};
}

// (grad_out, query, key, value, out, logsumexp, dropout_p, is_causal, attn_mask, scale)
std::optional<Types> attention_backward(const c10::IValue* args) {
  const at::Tensor &gradient = args[0].toTensor(), &query = args[1].toTensor();
  if (!covers_attention(query, args[2].toTensor(), args[3].toTensor(), args + 6)) return std::nullopt;
  if (gradient.sizes() != query.sizes() || !same_type(query, {&gradient, &args[4].toTensor()})) return std::nullopt;
  Types types;
  for (int i = 1; i <= 3; ++i) types.push_back(swapped_type(args[i].toTensor(), query.scalar_type(), 4));
  return types;
}

// ---- optimizers' steps

TypeId type_as_given(const at::Tensor& tensor) {
  if (!tensor.is_non_overlapping_and_dense()) return dense_type(tensor, tensor.sizes());
  return intern_type(to_dtype(tensor.scalar_type()), as_span(tensor.sizes()), as_span(tensor.strides()));
}

// (parameters, gradients, lists of state, ...): all that is written. A list is empty, or as the first one.
template <int kLists>
std::optional<Types> written_lists(const c10::IValue* args) {
  const std::vector<at::Tensor> parameters = args[0].toTensorVector();
  Types types;
  for (int list = 0; list < kLists; ++list) {
    const std::vector<at::Tensor> tensors = args[list].toTensorVector();
    if (!tensors.empty() && tensors.size() != parameters.size()) return std::nullopt;
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (tensors[i].sizes() != parameters[i].sizes() || !same_type(parameters[i], {&tensors[i]})) return std::nullopt;
      types.push_back(type_as_given(tensors[i]));
    }
  }
  return types;
}

// This overload declares that it writes the steps too.
std::optional<Types> adagrad(const c10::IValue* args) {
  std::optional<Types> types = written_lists<3>(args);
  const std::vector<at::Tensor> steps = args[3].toTensorVector();
  if (!types || steps.size() * 3 != types->size()) return std::nullopt;
  for (const at::Tensor& step : steps) types->push_back(type_as_given(step));
  return types;
}

const std::unordered_map<std::string, Rule>& rules() {
  static const auto rules = [] {
    std::unordered_map<std::string, Rule> all = {
        {"aten::convolution", convolution},
        {"aten::convolution_backward", convolution_backward},
        {"aten::relu", relu_or_abs},
        {"aten::abs", relu_or_abs},
        {"aten::hardswish", hardswish},
        {"aten::hardswish_backward", hardswish_backward},
        {"aten::where.self", where},
        {"aten::masked_fill.Scalar", masked_fill},
        {"aten::mse_loss_backward", mse_loss_backward},
        {"aten::_safe_softmax", safe_softmax},
        {"aten::stack", stack},
        {"aten::constant_pad_nd", constant_pad},
        {"aten::_native_batch_norm_legit_functional", batch_norm},
        {"aten::native_batch_norm_backward", batch_norm_backward},
        {"aten::native_layer_norm", layer_norm},
        {"aten::native_layer_norm_backward", layer_norm_backward},
        {"aten::native_group_norm", group_norm},
        {"aten::native_group_norm_backward", group_norm_backward},
        {"aten::embedding", embedding},
        {"aten::embedding_dense_backward", embedding_backward},
        {"aten::index_select", index_select},
        {"aten::select_backward", piece_backward},
        {"aten::slice_backward", piece_backward},
        {"aten::_scaled_dot_product_flash_attention_for_cpu", attention},
        {"aten::_scaled_dot_product_flash_attention_for_cpu_backward", attention_backward},
        {"aten::_fused_adam_", written_lists<5>},
        {"aten::_fused_adam_.tensor_lr", written_lists<5>},
        {"aten::_fused_adamw_", written_lists<5>},
        {"aten::_fused_adamw_.tensor_lr", written_lists<5>},
        {"aten::_fused_sgd_", written_lists<3>},
        {"aten::_fused_sgd_.tensor_lr", written_lists<3>},
        {"aten::_fused_adagrad_", adagrad},
        {"aten::_fused_adagrad_.tensor_lr", written_lists<3>},
    };
    for (const NamedRule& one : recurrent()) all.emplace(one.op, one.rule);
    return all;
  }();
  return rules;
}

}  // namespace

std::optional<Types> apply_shape_rule(const OpEntry& entry, const c10::IValue* args) {
  const c10::OperatorName& name = entry.recorded->operator_name();
  const auto rule = rules().find(toString(name));
  if (rule == rules().end()) return std::nullopt;
  try {
    return rule->second(args);
  } catch (const std::exception& error) {  // the kernel will say it better
    log::debug("the shape rule of ", c10::toString(name), " has no answer: ", why(error));
    return std::nullopt;
  }
}

}  // namespace ltc
