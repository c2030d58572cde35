// Kernels that make tensors or change what they look at, and compute nothing: factories, views, resizing, set_.
#include <ATen/EmptyTensor.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/as_strided_copy_native.h>
#include <ATen/ops/as_strided_cpu_dispatch.h>
#include <ATen/ops/as_strided_scatter_native.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/new_empty_strided_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/tensor_split_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <c10/util/irange.h>
#include <torch/library.h>

#include "core/torch/dispatch/large_numbers.h"
#include "core/torch/tensor/geometry.h"
#include "core/torch/tensor/resize.h"
#include "core/torch/tensor/transfer.h"

namespace ltc {
namespace {

using c10::IntArrayRef;
using c10::SymIntArrayRef;
using OptDtype = std::optional<c10::ScalarType>;
using OptLayout = std::optional<c10::Layout>;
using OptDevice = std::optional<c10::Device>;
using OptFormat = std::optional<c10::MemoryFormat>;

// The spelling `lazy` reaches the same kernels: it names the device of that index.
LazyDevice& device_of(OptDevice device) { return lazy_device(device ? c10::Device(kLtc, device->index()) : c10::Device(kLtc)); }

void check_layout(OptLayout layout) {
  TORCH_CHECK(!layout || *layout == c10::kStrided, "device ", kDeviceName, " makes no tensor of layout ", *layout);
}

at::Tensor empty_strided(IntArrayRef sizes, IntArrayRef strides, OptDtype dtype, OptLayout layout, OptDevice device,
                         std::optional<bool>) {
  check_layout(layout);
  at::detail::check_size_nonnegative(sizes);
  return new_tensor(device_of(device), c10::dtype_or_default(dtype), sizes, strides);
}

at::Tensor empty(IntArrayRef sizes, OptDtype dtype, OptLayout layout, OptDevice device, std::optional<bool> pin,
                 OptFormat format) {
  TORCH_CHECK(!pin || !*pin, "Only dense CPU tensors can be pinned");
  const at::Tensor result = empty_strided(sizes, contiguous_strides(as_span(sizes)), dtype, layout, device, pin);
  if (format && *format != c10::MemoryFormat::Contiguous && *format != c10::MemoryFormat::Preserve) {
    result.unsafeGetTensorImpl()->empty_tensor_restride(*format);
  }
  return result;
}

at::Tensor new_empty_strided(const at::Tensor& self, SymIntArrayRef sizes, SymIntArrayRef strides, OptDtype dtype,
                             OptLayout layout, OptDevice device, std::optional<bool> pin) {
  return at::native::new_empty_strided_symint(self, sizes, strides, dtype, layout, device, pin);
}

at::Tensor as_strided(const at::Tensor& self, SymIntArrayRef sizes, SymIntArrayRef strides, std::optional<c10::SymInt> offset) {
  return at::cpu::as_strided_symint(self, sizes, strides, offset);
}
at::Tensor view(const at::Tensor& self, SymIntArrayRef sizes) { return at::native::view(self, C10_AS_INTARRAYREF_SLOW(sizes)); }
at::Tensor reshape_alias(const at::Tensor& self, SymIntArrayRef sizes, SymIntArrayRef strides) {
  return at::native::_reshape_alias(self, C10_AS_INTARRAYREF_SLOW(sizes), C10_AS_INTARRAYREF_SLOW(strides));
}
at::Tensor unfold(const at::Tensor& self, int64_t dim, int64_t size, int64_t step) {
  return at::native::unfold(self, dim, size, step);
}
at::Tensor view_as_real(const at::Tensor& self) { return at::native::view_as_real(self); }
at::Tensor view_as_complex(const at::Tensor& self) { return at::native::view_as_complex(self); }

void grow(const c10::Storage& storage, const at::Tensor& tensor) {
  const size_t needed =
      at::detail::computeStorageNbytes(tensor.sizes(), tensor.strides(), tensor.itemsize(), tensor.storage_offset());
  if (tensor.numel() > 0 && storage.nbytes() < needed) resize_storage(storage, needed);
}

const at::Tensor& resize_(const at::Tensor& self, SymIntArrayRef symbolic, OptFormat format) {
  const IntArrayRef sizes = C10_AS_INTARRAYREF_SLOW(symbolic);
  if (self.sizes() == sizes && !format) return self;
  auto* impl = self.unsafeGetTensorImpl();
  impl->set_sizes_contiguous(sizes);
  if (format && *format != c10::MemoryFormat::Preserve) impl->empty_tensor_restride(*format);
  grow(self.storage(), self);
  return self;
}

at::Tensor& set_storage_offset(at::Tensor& self, at::Storage source, int64_t offset, IntArrayRef sizes, IntArrayRef strides) {
  at::native::checkSetStorage(self, source, offset, sizes, strides);
  if (strides.data()) at::detail::computeStorageNbytes(sizes, strides, self.itemsize(), offset);  // refuses negative ones
  auto* impl = self.unsafeGetTensorImpl();
  impl->set_storage_keep_dtype(source);
  impl->set_storage_offset(offset);
  strides.data() ? impl->set_sizes_and_strides(sizes, strides) : impl->set_sizes_contiguous(sizes);
  grow(source, self);
  return self;
}

at::Tensor& set_storage(at::Tensor& self, at::Storage source) {
  const int64_t count[] = {static_cast<int64_t>(source.nbytes() / self.itemsize())};
  return set_storage_offset(self, std::move(source), 0, count, {});
}

at::Tensor& set_tensor(at::Tensor& self, const at::Tensor& source) { return at::native::set_tensor_(self, source); }

at::Tensor& set_nothing(at::Tensor& self) {
  const int64_t none[] = {0};
  return set_storage_offset(self, new_tensor(lazy_device(self), self.scalar_type(), none, {none + 0, 1}).storage(), 0, none, {});
}

at::Tensor& fill_number(at::Tensor& self, const at::Scalar& value) {
  const Number number = to_number(value);
  if (!is_small(number) && !fits(number, self.scalar_type())) {  // the CPU refuses it, or makes of it what no trace holds
    return self.copy_(at::empty({}, self.options().device(at::kCPU)).fill_(value));
  }
  auto* impl = self.unsafeGetTensorImpl();
  LazyDevice& device = lazy_device(self);
  static const OpId full = intern_op("aten::full");
  device.before_op(full);
  {
    Recorder recorder(device);
    const TypeId geometry = geometry_of(impl);
    const TypeId type = type_of(geometry).dense ? geometry : intern_contiguous(type_of(geometry).dtype, type_of(geometry).sizes);
    write(recorder, impl, emit_full(recorder, type, value));
  }
  device.end_op();
  return self;
}

// Memory is freed in the order of the one queue, so nothing has to be noted.
void record_stream(at::Tensor&, c10::Stream) {}

// Lets `tensor.data = other` and Module.to() move a tensor between CPU and device in place, as between CPU and CUDA: parameters
// stay the objects that an optimizer knows, and C++ modules can be moved at all.
bool has_compatible_shallow_copy_type(const at::Tensor& self, const at::Tensor& from) {
  const auto is_plain = [](const at::Tensor& tensor) {
    return tensor.layout() == c10::kStrided && (tensor.device().is_cpu() || is_lazy(tensor)) && !tensor.is_quantized() &&
           !tensor.is_nested();
  };
  return is_plain(self) && is_plain(from);
}

// PyTorch makes these from an empty tensor and their .out form; the op table keeps the functional form whole. An output with the
// right number of elements keeps its sizes.
at::Tensor& replace(at::Tensor& out, const at::Tensor& value) {
  if (out.numel() != value.numel()) out.resize_(value.sizes());
  return out.copy_(value.view(out.sizes()));
}
at::Tensor& arange_out(const at::Scalar& start, const at::Scalar& end, const at::Scalar& step, at::Tensor& out) {
  return replace(out, at::arange(start, end, step, out.options()));
}
at::Tensor& linspace_out(const at::Scalar& start, const at::Scalar& end, int64_t steps, at::Tensor& out) {
  return replace(out, at::linspace(start, end, steps, out.options()));
}

// PyTorch's composite kernels compute these in place, with a kernel of the CPU or of CUDA. They depend on no tensor.
void upload_from_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const auto& arguments = op.schema().arguments();
  std::optional<c10::Device> device;
  for (size_t i = 0; i < arguments.size(); ++i) {
    c10::IValue& value = (*stack)[stack->size() - arguments.size() + i];
    if (value.isDevice()) device = std::exchange(value, c10::Device(at::kCPU)).toDevice();
  }
  op.callBoxed(stack);
  const at::Tensor result = torch::jit::pop(*stack).toTensor();
  stack->emplace_back(to_lazy(device_of(device), result));
}

at::Tensor& zero(at::Tensor& self) { return fill_number(self, 0); }

// These depend on where elements lie in memory; recorded by schema, they would see row-major contents.
at::Tensor as_strided_copy(const at::Tensor& self, SymIntArrayRef sizes, SymIntArrayRef strides,
                           std::optional<c10::SymInt> offset) {
  return at::native::as_strided_copy_symint(self, sizes, strides, std::move(offset));
}
at::Tensor as_strided_scatter(const at::Tensor& self, const at::Tensor& source, SymIntArrayRef sizes, SymIntArrayRef strides,
                              std::optional<c10::SymInt> offset) {
  return at::native::as_strided_scatter_symint(self, source, sizes, strides, std::move(offset));
}

// Autograd's stand-in for a gradient that is zero has no storage on other devices; here zeros cost one node.
at::Tensor efficient_zeros(SymIntArrayRef sizes, OptDtype dtype, OptLayout layout, OptDevice device, std::optional<bool> pin) {
  return empty(C10_AS_INTARRAYREF_SLOW(sizes), dtype, layout, device, pin, std::nullopt).zero_();
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  for (const char* name : {"kaiser_window", "kaiser_window.periodic", "kaiser_window.beta"}) {
    m.impl(name, torch::CppFunction::makeFromBoxedFunction<&upload_from_cpu>());
  }
  m.impl("empty.memory_format", empty);
  m.impl("empty_strided", empty_strided);
  m.impl("new_empty_strided", new_empty_strided);
  m.impl("as_strided", as_strided);
  m.impl("view", view);
  m.impl("_reshape_alias", reshape_alias);
  m.impl("unfold", unfold);
  m.impl("view_as_real", view_as_real);
  m.impl("view_as_complex", view_as_complex);
  m.impl("resize_", resize_);
  m.impl("set_.source_Storage", set_storage);
  m.impl("set_.source_Storage_storage_offset", set_storage_offset);
  m.impl("set_.source_Tensor", set_tensor);
  m.impl("set_", set_nothing);
  m.impl("fill_.Scalar", fill_number);
  m.impl("zero_", zero);
  m.impl("as_strided_copy", as_strided_copy);
  m.impl("as_strided_scatter", as_strided_scatter);
  m.impl("_efficientzerotensor", efficient_zeros);
  m.impl("_has_compatible_shallow_copy_type", has_compatible_shallow_copy_type);
  m.impl("arange.start_out", arange_out);
  m.impl("linspace.out", linspace_out);
  m.impl("_copy_from", copy_from);
  m.impl("_copy_from_and_resize", copy_from_and_resize);
  m.impl("_local_scalar_dense", local_scalar_dense);
  m.impl("equal", equal);
  m.impl("record_stream", record_stream);
}

// The places to split at are numbers that the program needs now.
std::vector<at::Tensor> tensor_split(const at::Tensor& self, const at::Tensor& where, int64_t dim) {
  return at::native::tensor_split(self, where.cpu(), dim);
}
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { m.impl("tensor_split.tensor_indices_or_sections", tensor_split); }
TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, m) { m.impl("tensor_split.tensor_indices_or_sections", tensor_split); }

// torch.device("lazy") names PyTorch's own, unused, Lazy key: its factories make ltc tensors.
TORCH_LIBRARY_IMPL(aten, Lazy, m) {
  m.impl("empty.memory_format", empty);
  m.impl("empty_strided", empty_strided);
}

// copy_from resolves these bits itself; PyTorch's own fallback would call it again, for ever.
TORCH_LIBRARY_IMPL(aten, Conjugate, m) { m.impl("_copy_from", torch::CppFunction::makeFallthrough()); }
TORCH_LIBRARY_IMPL(aten, Negative, m) { m.impl("_copy_from", torch::CppFunction::makeFallthrough()); }

}  // namespace

void resize_storage(const c10::Storage& storage, size_t size_bytes) {
  auto* impl = storage.unsafeGetStorageImpl();
  LazyStorage& lazy = lazy_storage(impl);
  if (size_bytes > impl->nbytes()) {
    Recorder recorder(lazy.device());
    if (!recorder.is_empty(lazy)) grow_value(recorder, lazy, size_bytes);
  }
  impl->set_nbytes(size_bytes);
}

}  // namespace ltc
