#include "core/torch/tensor/transfer.h"

#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_conj_physical.h>
#include <ATen/ops/_local_scalar_dense.h>
#include <ATen/ops/_neg_view.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/neg.h>
#include <ATen/ops/resize_native.h>

#include "core/report/timeline.h"
#include "core/run/device/device_table.h"
#include "core/torch/tensor/assertions.h"
#include "core/torch/tensor/geometry.h"
#include "core/torch/tensor/tensor_geometry.h"
#include "core/torch/tensor/thread_state.h"

namespace ltc {
namespace {

// Everything the storage holds, in memory order, as a one-dimensional CPU tensor of the storage's own dtype.
at::Tensor download_memory(LazyStorage& storage, TypeId declared, std::string_view reason) {
  const Type& type = type_of(declared);
  const auto options = at::TensorOptions().dtype(to_scalar_type(type.dtype)).device(at::kCPU);
  at::Tensor memory = at::empty({type.element_count}, options);
  const HostValue known = nothing_intercepts_thread() ? storage.device().host_value(storage) : HostValue{};
  if (known.data) metrics::counter(metrics::kHostRead) += 1;
  const BufferRef buffer = known.data ? nullptr : storage.device().computed(storage, reason);
  const auto download = [&](const at::Tensor& to) {
    if (known.data) {
      std::memcpy(to.mutable_data_ptr(), known.data.get(), to.nbytes());
      return;
    }
    storage.device().queue().download(buffer, to.mutable_data_ptr(), std::make_shared<at::Tensor>(to));
  };
  if (type.contiguous) {
    download(memory);
  } else {
    const at::Tensor rows = at::empty(type.sizes, options);
    download(rows);
    memory.as_strided(type.sizes, type.strides).copy_(rows);
  }
  return memory;
}

TypeId declared_type(LazyStorage& storage) {
  Recorder recorder(storage.device());
  return recorder.type(storage);
}

// Casts and broadcasts on the way into `to`, then binds or scatters.
void copy_on_device(const at::Tensor& from, const at::Tensor& to) {
  auto *source = from.unsafeGetTensorImpl(), *target = to.unsafeGetTensorImpl();
  LazyStorage& storage = lazy_storage(target);
  static const OpId copy = intern_op("aten::copy_");
  storage.device().before_op(copy);
  Recorder recorder(storage.device());
  const bool covers = to.is_non_overlapping_and_dense() && to.storage_offset() == 0 && to.nbytes() == to.storage().nbytes();
  if (covers && from.scalar_type() == to.scalar_type() && from.sizes() == to.sizes() &&
      whole_type(recorder, source, lazy_storage(source)) != kNoType) {
    return recorder.share(storage, lazy_storage(source), geometry_of(target));
  }
  ValueId value = read(recorder, source);
  value = emit_cast(recorder, value, to_dtype(to.scalar_type()));
  value = emit_expand(recorder, value, to.sizes());
  write(recorder, target, value);
}

}  // namespace

at::Tensor read_value(const at::Tensor& tensor, std::string_view reason) {
  timeline::Span span("read");
  span.because(reason);
  span.here();
  span.with_callers();
  span.count(0, static_cast<int64_t>(tensor.nbytes()));
  return to_cpu(tensor, metrics::kReadBarrier);
}

at::Tensor to_cpu(const at::Tensor& tensor, std::string_view reason) {
  at::NoGradGuard no_grad;
  at::AutoDispatchBelowADInplaceOrView below_autograd;
  LazyStorage& storage = lazy_storage(tensor.unsafeGetTensorImpl());
  check_assertions(storage.device());
  const TypeId declared = declared_type(storage);
  const auto options = tensor.options().device(at::kCPU);
  at::Tensor result;
  if (declared == kNoType || tensor.numel() == 0) {
    result = at::empty_strided(tensor.sizes(), tensor.strides(), options).zero_();
  } else {
    const at::Tensor memory = download_memory(storage, declared, reason);
    result = at::empty({0}, options);
    result.set_(memory.storage(), tensor.storage_offset(), tensor.sizes(), tensor.strides());
  }
  if (tensor.is_conj()) result._set_conj(true);
  if (tensor.is_neg()) result._set_neg(true);
  return result;
}

namespace {

// A copy of a CPU tensor on its way to the device: the caller's tensor may change at once. `type` is contiguous.
BufferRef upload(LazyDevice& device, const at::Tensor& cpu, TypeId type) {
  timeline::Span span("send");
  span.here();
  span.count(0, static_cast<int64_t>(cpu.nbytes()));
  HostValue value = allocate_host_value(type);
  if (cpu.is_contiguous() && !cpu.is_conj() && !cpu.is_neg()) {
    std::memcpy(value.data.get(), cpu.const_data_ptr(), cpu.nbytes());
  } else {
    at::NoGradGuard no_grad;
    at::AutoDispatchBelowADInplaceOrView below_autograd;
    // Through a tensor over the staging memory: copy_ handles strides, conj and neg.
    at::Tensor staging = at::from_blob(value.data.get(), cpu.sizes(), cpu.options());
    staging.copy_(cpu);
  }
  span.contents(value.data.get(), cpu.nbytes());
  return device.queue().upload(std::move(value));
}

}  // namespace

at::Tensor to_lazy(LazyDevice& device, const at::Tensor& cpu) {
  TORCH_CHECK(cpu.layout() == c10::kStrided, "device ", kDeviceName, " makes no tensor of layout ", cpu.layout());
  const bool dense = cpu.is_non_overlapping_and_dense();
  const at::Tensor result =
      new_tensor(device, cpu.scalar_type(), cpu.sizes(), dense ? cpu.strides().vec() : contiguous_strides(as_span(cpu.sizes())));
  write_cpu(result, cpu);
  return result;
}

at::Tensor try_fast_upload(const at::Tensor& cpu, c10::Device device) {
  constexpr size_t kSmall = 16 << 10;  // bytes
  static const c10::DispatchKeySet keys = c10::DispatchKeySet(c10::DispatchKey::CPU) |
                                          c10::getAutocastRelatedKeySetFromBackend(c10::BackendComponent::CPUBit) |
                                          c10::getAutogradRelatedKeySetFromBackend(c10::BackendComponent::CPUBit);
  if (cpu.key_set() != keys || !nothing_intercepts()) return {};
  if (cpu.unsafeGetTensorImpl()->autograd_meta() || !cpu.is_contiguous() || cpu.nbytes() > kSmall) return {};
  LazyDevice* const used = DeviceTable::instance().find(ordinal_of(device));
  return used ? to_lazy(*used, cpu) : at::Tensor();
}

void write_cpu(const at::Tensor& lazy, const at::Tensor& cpu) {
  if (lazy.numel() == 0) return;
  auto* target = lazy.unsafeGetTensorImpl();
  LazyStorage& storage = lazy_storage(target);
  const TypeId declared = geometry_of(target);
  const Type& geometry = type_of(declared);
  const TypeId uploaded = geometry.contiguous_strides ? declared : intern_contiguous(geometry.dtype, geometry.sizes);
  BufferRef buffer = upload(storage.device(), cpu, uploaded);
  Recorder recorder(storage.device());
  if (geometry.dense && lazy.storage_offset() == 0 && geometry.size_bytes() == lazy.storage().nbytes()) {
    return recorder.bind(storage, std::move(buffer), declared);
  }
  write(recorder, target, recorder.input(std::move(buffer), uploaded));
}

namespace {

// `from` on the device of `to`, where that is another one that copies from its without the host's memory; else undefined.
at::Tensor copy_between_devices(const at::Tensor& from, const at::Tensor& to) {
  if (!is_lazy(from) || !is_lazy(to) || &lazy_device(from) == &lazy_device(to) || from.numel() == 0) return {};
  LazyStorage& source = lazy_storage(from.unsafeGetTensorImpl());
  const TypeId declared = declared_type(source);
  DeviceQueue& queue = lazy_device(to).queue();
  if (declared == kNoType || !queue.copies_from(source.device().queue(), declared)) return {};
  BufferRef buffer = queue.copy_from_peer(source.device().computed(source, metrics::kReadBarrier));
  const c10::Storage storage = new_storage(lazy_device(to), from.storage().nbytes());
  Recorder(lazy_device(to)).bind(lazy_storage(storage.unsafeGetStorageImpl()), std::move(buffer), declared);
  return TensorGeometry(*from.unsafeGetTensorImpl()).over(storage);
}

// The same for one of any dtype, and of sizes that broadcast. A copy of the reference would lock Python's.
void write_any_cpu(const at::Tensor& lazy, const at::Tensor& cpu) {
  if (cpu.scalar_type() == lazy.scalar_type() && cpu.sizes() == lazy.sizes()) return write_cpu(lazy, cpu);
  write_cpu(lazy, cpu.to(lazy.scalar_type()).expand(lazy.sizes()));
}

// The checks of PyTorch's own copy.
void check_copy(const at::Tensor& from, const at::Tensor& to) {
  at::assert_no_internal_overlap(to);
  if (from.sizes() == to.sizes()) return;
  const at::DimVector broadcast = at::infer_size_dimvector(to.sizes(), from.sizes());
  TORCH_CHECK(to.sizes() == broadcast, "output with shape ", to.sizes(), " doesn't match the broadcast shape ",
              c10::IntArrayRef(broadcast));
}

}  // namespace

at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool /*non_blocking*/) {
  // Conjugation and negation that PyTorch has put off: done now, as values have no such bits.
  if (is_lazy(from) && from.is_conj()) return copy_from(at::_conj_physical(from.conj()), to, false);
  if (is_lazy(from) && from.is_neg()) return copy_from(at::neg(at::_neg_view(from)), to, false);
  if (is_lazy(to) && to.is_conj()) return copy_from(at::_conj_physical(from), to.conj(), false), to;
  if (is_lazy(to) && to.is_neg()) return copy_from(at::neg(from), at::_neg_view(to), false), to;
  check_copy(from, to);
  if (const at::Tensor copied = copy_between_devices(from, to); copied.defined()) {
    copy_on_device(copied, to);
  } else if (!is_lazy(to)) {
    at::Tensor target = to;
    target.copy_(read_value(from, "copy"));
  } else if (!is_lazy(from)) {
    write_any_cpu(to, from);
  } else if (&lazy_device(from) != &lazy_device(to)) {
    write_any_cpu(to, read_value(from, "other device"));
  } else {
    copy_on_device(from, to);
  }
  if (is_lazy(to)) lazy_device(to).end_op();
  return to;
}

at::Tensor copy_from_and_resize(const at::Tensor& from, const at::Tensor& to) {
  if (to.sizes() != from.sizes()) at::native::resize_(to, from.sizes());
  return copy_from(from, to, false);
}

at::Tensor with_rows(const at::Tensor& tensor, int64_t rows) {
  at::NoGradGuard no_grad;
  at::AutoDispatchBelowADInplaceOrView below_autograd;
  LazyDevice& device = lazy_device(tensor);
  c10::DimVector sizes(tensor.sizes()), strides(tensor.strides());
  sizes[0] = rows;
  if (rows == 0 || tensor.numel() == 0) return to_lazy(device, at::zeros(sizes, tensor.options().device(at::kCPU)));
  const int64_t row_size = tensor.numel() / tensor.size(0);
  LazyStorage& storage = lazy_storage(tensor.unsafeGetTensorImpl());
  const bool rows_outermost = tensor.size(0) == 1 || tensor.stride(0) == row_size;
  const bool whole = whole_type(Recorder(device), tensor.unsafeGetTensorImpl(), storage) != kNoType;
  if (!rows_outermost || !whole) return with_rows(tensor.clone(at::MemoryFormat::Contiguous), rows);
  strides[0] = row_size;
  const TypeId type = intern_contiguous(to_dtype(tensor.scalar_type()), as_span(sizes));
  BufferRef buffer = device.queue().resized(device.computed(storage, metrics::kCallBarrier), type);
  const at::Tensor result = new_tensor(device, tensor.scalar_type(), sizes, strides);
  auto* target = result.unsafeGetTensorImpl();
  Recorder(device).bind(lazy_storage(target), std::move(buffer), geometry_of(target));
  return result;
}

bool equal(const at::Tensor& self, const at::Tensor& other) {
  if (self.sizes() != other.sizes()) return false;
  return self.numel() == 0 || at::eq(self, other).all().item<bool>();
}

at::Scalar local_scalar_dense(const at::Tensor& tensor) { return at::_local_scalar_dense(read_value(tensor, "item")); }

}  // namespace ltc
