#include "torchscript/ops/ops.h"

#include <ATen/EmptyTensor.h>
#include <ATen/ScalarOps.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/view_as_complex.h>
#include <torch/library.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "cpu_kernels/philox.h"
#include "torchscript/graph/target.h"
#include "torchscript/ops/attention.h"
#include "torchscript/ops/convolutions.h"
#include "torchscript/ops/encoder_layer.h"
#include "torchscript/ops/image_layout.h"
#include "torchscript/ops/max_pool.h"
#include "torchscript/ops/packed_convolutions.h"
#include "torchscript/ops/random_layouts.h"
#include "torchscript/ops/rows.h"
#include "torchscript/ops/views.h"
#include "torchscript/ops/winograd.h"
#include "torchscript/threads/threads.h"

namespace ltc::torchscript {
namespace {

constexpr int64_t kQuadsGrain = 1 << 15;

void fill_random(const cpu::Philox& generator, at::Tensor& out) {
  // Ranges start at multiples of 4 elements: a whole number of blocks for every type.
  const int64_t count = out.numel(), quads = (count + 3) / 4;
  const auto fill = [&](auto&& write) {
    divide(quads, kQuadsGrain, [&](int64_t begin, int64_t end) { write(4 * begin, std::min(4 * end, count)); });
  };
  switch (out.scalar_type()) {
    case at::kFloat: {
      auto* data = out.mutable_data_ptr<float>();
      fill([&](int64_t first, int64_t last) { generator.uniform(data + first, first, last); });
      return;
    }
    case at::kDouble: {
      auto* data = out.mutable_data_ptr<double>();
      fill([&](int64_t first, int64_t last) { generator.uniform(data + first, first, last); });
      return;
    }
    case at::kInt: {
      auto* data = out.mutable_data_ptr<int32_t>();
      fill([&](int64_t first, int64_t last) { generator.bits(data + first, first, last); });
      return;
    }
    case at::kLong: {
      auto* data = out.mutable_data_ptr<int64_t>();
      fill([&](int64_t first, int64_t last) { generator.bits(data + first, first, last); });
      return;
    }
    default: break;
  }
  TORCH_CHECK_NOT_IMPLEMENTED(false, "philox makes float32, float64, int32 and int64, not ", out.scalar_type());
}

// The bits are the host's everywhere: a device's memory is filled from pinned memory, in the order of its queue.
at::Tensor philox(const at::Scalar& seed, const at::Scalar& offset, at::IntArrayRef size, at::ScalarType dtype,
                  std::optional<at::Device> device) {
  const bool on_host = !device || device->is_cpu();
  at::Tensor out = on_host ? at::Tensor(at::detail::empty_cpu(size, dtype)) : pinned(size, dtype, device->type());
  fill_random({static_cast<uint64_t>(seed.toLong()), static_cast<uint64_t>(offset.toLong())}, out);
  return on_host ? out : out.to(*device, /*non_blocking=*/true);
}

// ATen checks a strided view against its storage, of which a row-major operand may be only a part.
void check_bounds(const at::Tensor& self, at::IntArrayRef size, at::IntArrayRef stride, int64_t offset) {
  TORCH_CHECK(size.size() == stride.size(), "as_strided: ", size.size(), " sizes but ", stride.size(), " strides");
  int64_t last = offset;
  bool overflow = false, empty = false;
  for (size_t i = 0; i < size.size(); ++i) {
    TORCH_CHECK(size[i] >= 0 && stride[i] >= 0, "as_strided: negative size or stride in ", size, ", ", stride);
    empty |= size[i] == 0;
    int64_t extent = 0;
    overflow |= __builtin_mul_overflow(size[i] - 1, stride[i], &extent) || __builtin_add_overflow(last, extent, &last);
  }
  if (empty) return;
  TORCH_CHECK_INDEX(!overflow && offset >= 0 && last < self.numel(), "as_strided: sizes ", size, ", strides ", stride,
                    " and offset ", offset, " leave the ", self.numel(), " elements of the operand");
}

at::Tensor strided_view(const at::Tensor& row_major, at::IntArrayRef size, at::IntArrayRef stride, int64_t offset) {
  return row_major.as_strided(size, stride, row_major.storage_offset() + offset);
}

at::Tensor as_strided(const at::Tensor& self, at::IntArrayRef size, at::IntArrayRef stride, std::optional<int64_t> offset) {
  check_bounds(self, size, stride, offset.value_or(0));
  return strided_view(self.contiguous(), size, stride, offset.value_or(0));
}

at::Tensor& as_strided_scatter_(at::Tensor& self, const at::Tensor& src, at::IntArrayRef size, at::IntArrayRef stride,
                                std::optional<int64_t> offset) {
  check_bounds(self, size, stride, offset.value_or(0));
  if (self.is_contiguous()) {
    strided_view(self, size, stride, offset.value_or(0)).copy_(src);
    return self;
  }
  at::Tensor row_major = self.contiguous();
  strided_view(row_major, size, stride, offset.value_or(0)).copy_(src);
  return self.copy_(row_major);
}

at::Tensor as_strided_scatter(const at::Tensor& self, const at::Tensor& src, at::IntArrayRef size, at::IntArrayRef stride,
                              std::optional<int64_t> offset) {
  at::Tensor out = self.clone(at::MemoryFormat::Contiguous);
  as_strided_scatter_(out, src, size, stride, offset);
  return out;
}

// The same with an offset that enters the program by value.
at::Tensor as_strided_at(const at::Tensor& self, at::IntArrayRef size, at::IntArrayRef stride, const at::Scalar& offset) {
  return torchscript::as_strided(self, size, stride, offset.toLong());
}

at::Tensor& as_strided_scatter_at_(at::Tensor& self, const at::Tensor& src, at::IntArrayRef size, at::IntArrayRef stride,
                                   const at::Scalar& offset) {
  return as_strided_scatter_(self, src, size, stride, offset.toLong());
}

at::Tensor as_strided_scatter_at(const at::Tensor& self, const at::Tensor& src, at::IntArrayRef size, at::IntArrayRef stride,
                                 const at::Scalar& offset) {
  return torchscript::as_strided_scatter(self, src, size, stride, offset.toLong());
}

// So that `count` elements side by side can be one: ATen then looks at the offset, and at the strides of dims of one element too.
at::Tensor joinable(const at::Tensor& self, int64_t count) {
  bool fits = self.storage_offset() % count == 0;
  int64_t wanted = 1;
  for (int64_t i = self.dim() - 1; i >= 0; wanted *= std::max<int64_t>(self.size(i), 1), --i) fits &= self.stride(i) == wanted;
  return fits ? self : self.clone(at::MemoryFormat::Contiguous);
}

at::Tensor view_dtype(const at::Tensor& self, at::ScalarType dtype) {
  const auto from = self.element_size(), to = static_cast<int64_t>(at::elementSize(dtype));
  return (from == to ? self : joinable(self, std::max<int64_t>(to / from, 1))).view(dtype);
}

at::Tensor view_as_complex(const at::Tensor& self) { return at::view_as_complex(joinable(self, 2)); }

at::Tensor image_in_format(const at::Tensor& self, int64_t format) {
  return in_format(self, static_cast<at::MemoryFormat>(format));
}

double to_float(const at::Scalar& value) { return value.toDouble(); }

class Registration {
 public:
  Registration() : library_(torch::Library::FRAGMENT, "ltc_torchscript", std::nullopt, __FILE__, __LINE__) {
    add("number(Scalar value, *, ScalarType? dtype=None) -> Tensor", &make_number);
    add("to_float(Scalar value) -> float", &to_float);
    add("philox(Scalar seed, Scalar offset, int[] size, *, ScalarType dtype, Device? device=None) -> Tensor", &philox);
    add("view(Tensor(a) self, int[] size) -> Tensor(a)", &view);
    add("reshape(Tensor(a) self, int[] shape) -> Tensor(a)", &view);
    add("in_format(Tensor(a) self, int memory_format) -> Tensor(a)", &image_in_format);
    add("in_random_layout(Tensor(a) self, int seed) -> Tensor(a)", &in_random_layout);
    add("view_dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a)", &view_dtype);
    add("view_as_complex(Tensor(a) self) -> Tensor(a)", &view_as_complex);
    add("as_strided(Tensor(a) self, int[] size, int[] stride, int? storage_offset=None) -> Tensor(a)", &as_strided);
    add("as_strided_scatter(Tensor self, Tensor src, int[] size, int[] stride, int? storage_offset=None) -> Tensor",
        &as_strided_scatter);
    add("as_strided_scatter_(Tensor(a!) self, Tensor src, int[] size, int[] stride, int? storage_offset=None) -> Tensor(a!)",
        &as_strided_scatter_);
    add("as_strided_at(Tensor(a) self, int[] size, int[] stride, Scalar storage_offset) -> Tensor(a)", &as_strided_at);
    add("as_strided_scatter_at(Tensor self, Tensor src, int[] size, int[] stride, Scalar storage_offset) -> Tensor",
        &as_strided_scatter_at);
    add("as_strided_scatter_at_(Tensor(a!) self, Tensor src, int[] size, int[] stride, Scalar storage_offset) -> Tensor(a!)",
        &as_strided_scatter_at_);
    add("max_pool2d_with_indices(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, bool "
        "ceil_mode=False, bool relu=False, bool indices=True) -> (Tensor, Tensor)",
        &max_pool2d_with_indices);
    add("winograd_convolution(Tensor input, Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation, bool "
        "transposed, int[] output_padding, int groups) -> Tensor",
        &winograd_convolution);
    add("winograd_convolution_backward(Tensor grad_output, Tensor input, Tensor weight, int[]? bias_sizes, int[] stride, int[] "
        "padding, int[] dilation, bool transposed, int[] output_padding, int groups, bool[3] output_mask) -> (Tensor, Tensor, "
        "Tensor)",
        &winograd_convolution_backward);
    add("wide_convolution_backward(Tensor grad_output, Tensor input, Tensor weight, int[]? bias_sizes, int[] stride, int[] "
        "padding, int[] dilation, bool transposed, int[] output_padding, int groups, bool[3] output_mask) -> (Tensor, Tensor, "
        "Tensor)",
        &wide_convolution_backward);
    add("pack_convolution(Tensor weight, Tensor? bias, Tensor? scale, Tensor? shift, Tensor? mean, Tensor? variance, float eps, "
        "int[] image, int[] stride, int[] padding, int[] dilation, int groups, int form) -> (Tensor, Tensor)",
        &pack_convolution);
    add("packed_convolution(Tensor image, Tensor weight, Tensor bias, int[] window, int[] stride, int[] padding, int[] dilation, "
        "int groups) -> Tensor",
        &packed_convolution);
    add("packed_winograd_convolution(Tensor image, Tensor points, Tensor bias, int[] window, int[] stride, int[] padding, int[] "
        "dilation, int groups) -> Tensor",
        &packed_winograd_convolution);
    add("convolution_by_matrix(Tensor image, Tensor matrix, Tensor bias, int[] window, int[] stride, int[] padding, int[] "
        "dilation, int groups) -> Tensor",
        &convolution_by_matrix);
    add("sum(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", &sum);
    add("mean(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", &mean);
    add("native_layer_norm(Tensor input, int[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> (Tensor, Tensor, "
        "Tensor)",
        &native_layer_norm);
    add("_softmax(Tensor self, int dim, bool half_to_float) -> Tensor", &softmax);
    add("attention(Tensor query, Tensor key, Tensor value, float dropout_p=0.0, bool is_causal=False, *, Tensor? attn_mask=None, "
        "float? scale=None) -> (Tensor, Tensor)",
        &attention);
    add("attention_backward(Tensor grad_out, Tensor query, Tensor key, Tensor value, Tensor out, Tensor logsumexp, float "
        "dropout_p, "
        "bool is_causal, *, Tensor? attn_mask=None, float? scale=None) -> (Tensor, Tensor, Tensor)",
        &attention_backward);
    add("transformer_encoder_layer_fwd(Tensor src, int embed_dim, int num_heads, Tensor qkv_weight, Tensor qkv_bias, Tensor "
        "proj_weight, Tensor proj_bias, bool use_gelu, bool norm_first, float eps, Tensor norm_weight_1, Tensor norm_bias_1, "
        "Tensor "
        "norm_weight_2, Tensor norm_bias_2, Tensor ffn_weight_1, Tensor ffn_bias_1, Tensor ffn_weight_2, Tensor ffn_bias_2, "
        "Tensor? mask=None, int? mask_type=None) -> Tensor",
        &transformer_encoder_layer_fwd);
  }

 private:
  // Another copy of this library in the process may have been first; its operators are as good.
  template <typename Kernel>
  void add(const char* schema, Kernel* kernel) {
    const std::string name(schema, std::strchr(schema, '('));
    if (c10::Dispatcher::singleton().findSchema({"ltc_torchscript::" + name, ""})) return;
    library_.def(schema);
    library_.impl(name.c_str(), torch::dispatch(c10::DispatchKey::CompositeExplicitAutograd, kernel));
  }

  torch::Library library_;
};

}  // namespace

at::Tensor make_number(const at::Scalar& value, std::optional<at::ScalarType> dtype) {
  at::Tensor number = dtype ? at::detail::scalar_tensor_static(value, *dtype, at::kCPU) : c10::scalar_to_tensor(value);
  number.unsafeGetTensorImpl()->set_wrapped_number(true);
  return number;
}

at::Tensor make_number_on(c10::Device device, const at::Scalar& value, std::optional<at::ScalarType> dtype) {
  at::Tensor number = at::scalar_tensor(value, at::TensorOptions(dtype.value_or(value.type())).device(device));
  number.unsafeGetTensorImpl()->set_wrapped_number(true);
  return number;
}

void register_operators() { static Registration once; }

}  // namespace ltc::torchscript
