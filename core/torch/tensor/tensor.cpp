#include "core/torch/tensor/tensor.h"

#include <ATen/EmptyTensor.h>
#include <c10/core/AutogradState.h>

#include <array>
#include <atomic>

#include "core/host/registry.h"
#include "core/run/device/device_table.h"
#include "core/run/process/process_end.h"
#include "core/torch/tensor/current_device.h"
#include "core/torch/tensor/memory.h"
#include "core/torch/tensor/thread_state.h"

namespace ltc {
namespace {

// Addresses that no process can map: above every user address and below every kernel address on x86-64 (4- and 5-level paging)
// and arm64, so that a stray access faults. 2^61 bytes are enough for ever, so they are never reused. A thread takes them in
// blocks.
constexpr uintptr_t kFirstAddress = uintptr_t{1} << 60;
constexpr size_t kAddressStep = 256, kAddressBlock = size_t{1} << 32;

void* next_address(size_t size_bytes) {
  static std::atomic<uintptr_t> next_block{kFirstAddress};
  static LTC_THREAD_LOCAL uintptr_t next = 0, end = 0;
  const size_t step = (size_bytes / kAddressStep + 1) * kAddressStep;
  if (end - next < step) [[unlikely]] {
    const size_t block = (step / kAddressBlock + 1) * kAddressBlock;
    next = next_block.fetch_add(block, std::memory_order_relaxed);
    end = next + block;
  }
  return reinterpret_cast<void*>(std::exchange(next, next + step));
}

class LazyAllocator final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(size_t size_bytes) override { return allocate(lazy_device(c10::Device(kLtc)), size_bytes); }

  c10::DataPtr allocate(LazyDevice& device, size_t size_bytes) {
    return {next_address(size_bytes), new LazyStorage(device), &delete_lazy_storage,
            c10::Device(kLtc, static_cast<c10::DeviceIndex>(device.ordinal()))};
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }  // data is not context
  void copy_data(void*, const void*, size_t) const override {
    TORCH_CHECK(false, "the data pointer of an ltc tensor is not memory; copy the tensor with .to(\"cpu\")");
  }

  // Memory belongs to values, not to storages: what is asked here is answered by the device's queue.
  bool initialized() override { return host::Registry::instance().loaded_device_count().value_or(0) > 0; }
  void emptyCache(c10::MempoolId_t) override {}                    // the core keeps no memory that nobody uses
  void recordStream(const c10::DataPtr&, c10::Stream) override {}  // there is one stream
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex device) override {
    return memory_stats(lazy_device(c10::Device(kLtc, device)));
  }
  void resetAccumulatedStats(c10::DeviceIndex device) override {
    lazy_device(c10::Device(kLtc, device)).queue().memory().reset_sums();
  }
  void resetPeakStats(c10::DeviceIndex device) override { reset_peak_memory(lazy_device(c10::Device(kLtc, device))); }
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex device) override {
    return memory_info(lazy_device(c10::Device(kLtc, device)));
  }
};

LazyAllocator g_allocator;
REGISTER_ALLOCATOR(kLtc, &g_allocator);

class PooledStorage final : public c10::StorageImpl, public Pooled<PooledStorage> {
 public:
  using StorageImpl::StorageImpl;
  using Pooled<PooledStorage>::operator new;
  using Pooled<PooledStorage>::operator delete;
};

// Version counters of tensors that are gone, for those to come: each is an allocation of its own, made and released with every
// op. One list per thread.
class SpareCounters {
 public:
  static c10::VariableVersion take() {
    SpareCounters* const spares = t_spares;
    if (!spares || spares->counters_.empty()) return c10::VariableVersion(0);
    c10::VariableVersion counter = std::move(spares->counters_.back());
    spares->counters_.pop_back();
    return counter;
  }
  static void give(c10::VariableVersion&& counter) {
    if (!counter.enabled() || !counter.unique()) return;
    SpareCounters* spares = t_spares;
    if (!spares) [[unlikely]]
      spares = make();
    if (!spares || spares->counters_.size() == kKept) return;
    if (counter.current_version() != 0) counter.set_version(0);
    spares->counters_.push_back(std::move(counter));
  }
  ~SpareCounters() { t_spares = nullptr; }

 private:
  static constexpr size_t kKept = 1024;
  SpareCounters() { counters_.reserve(kKept); }
  static SpareCounters* make() {  // null at the end of the thread
    static LTC_THREAD_LOCAL bool made = false;
    if (std::exchange(made, true)) return nullptr;
    thread_local SpareCounters spares;
    return t_spares = &spares;
  }

  static inline LTC_THREAD_LOCAL constinit SpareCounters* t_spares = nullptr;
  std::vector<c10::VariableVersion> counters_;
};

const c10::DispatchKeySet kInferenceKeys = c10::DispatchKeySet(c10::DispatchKey::PrivateUse1) |
                                           c10::getAutocastRelatedKeySetFromBackend(c10::BackendComponent::PrivateUse1Bit);
const c10::DispatchKeySet kAutogradKeys = c10::getAutogradRelatedKeySetFromBackend(c10::BackendComponent::PrivateUse1Bit);

class PooledTensor final : public c10::TensorImpl, public Pooled<PooledTensor> {
 public:
  // PyTorch's constructor for views makes no version counter of its own for a tensor without autograd's keys, which are added
  // here, as its other constructors do.
  PooledTensor(c10::Storage&& storage, c10::ScalarType dtype)
      : TensorImpl(VIEW, std::move(storage), kInferenceKeys, c10::scalarTypeToTypeMeta(dtype)) {
    if (autograd_state().get_inference_mode()) return;
    key_set_ = kInferenceKeys | kAutogradKeys;
    version_counter_ = SpareCounters::take();
  }
  ~PooledTensor() override { SpareCounters::give(std::move(version_counter_)); }

  // Sets the geometry of a new tensor. The type tells all that PyTorch would work out, except the layouts of rank 4 and 5.
  void set_geometry(const Type& type) {
    if (!type.contiguous_strides || type.sizes.size() > 3) return set_sizes_and_strides(type.sizes, type.strides);
    const size_t rank = type.sizes.size();
    sizes_and_strides_.resize(rank);
    for (size_t dim = 0; dim < rank; ++dim) {
      sizes_and_strides_.size_at_unchecked(dim) = type.sizes[dim];
      sizes_and_strides_.stride_at_unchecked(dim) = type.strides[dim];
    }
    numel_ = type.element_count;
    is_contiguous_ = is_non_overlapping_and_dense_ = true;
    is_channels_last_ = is_channels_last_contiguous_ = is_channels_last_3d_ = is_channels_last_3d_contiguous_ = false;
  }

  using Pooled<PooledTensor>::operator new;
  using Pooled<PooledTensor>::operator delete;
};

c10::intrusive_ptr<PooledTensor> over(c10::Storage storage, c10::ScalarType dtype) {
  return c10::make_intrusive<PooledTensor>(std::move(storage), dtype);
}

// Backward only records, so it runs in the thread that asks for it, as for CPU tensors: PyTorch's hand-over to a thread per
// device costs more (35 us) than recording a small backward, and gains nothing. A thread that wants it back says
// torch.autograd.set_multithreading_enabled(True).
void keep_backward_in_this_thread() {
  static LTC_THREAD_LOCAL bool done = false;
  if (done) [[likely]]
    return;
  c10::AutogradState::get_tls_state().set_multithreading_enabled(false);
  count_this_thread();
  done = true;
}

}  // namespace

c10::Allocator* lazy_allocator() { return &g_allocator; }

DType to_dtype(c10::ScalarType type) {
  static constexpr auto kTable = [] {
    std::array<DType, static_cast<size_t>(c10::ScalarType::NumOptions) + 1> result{};
    for (uint32_t i = 1; i < kDTypeCount; ++i) result[static_cast<size_t>(kScalarTypes[i])] = static_cast<DType>(i);
    return result;
  }();
  const DType dtype = kTable[static_cast<size_t>(type)];
  TORCH_CHECK(dtype != DType::kNone, "device ltc has no tensors of dtype ", toString(type));
  return dtype;
}

uint32_t ordinal_of(c10::Device device) { return static_cast<uint32_t>(device.has_index() ? device.index() : current_device()); }

LazyDevice& lazy_device(c10::Device device) { return DeviceTable::instance().get(ordinal_of(device)); }

LazyDevice& lazy_device(const at::TensorBase& tensor) { return lazy_storage(tensor.unsafeGetTensorImpl()).device(); }

void delete_lazy_storage(void* context) { delete static_cast<LazyStorage*>(context); }

void refuse_foreign_storage() {
  TORCH_CHECK(false,
              "an ltc tensor whose storage was not made by ltc (an external pointer): copy the data with .to(\"ltc\") instead");
}

bool forget_record(const c10::TensorImpl& tensor) {
  if (tensor.key_set() != (kInferenceKeys | kAutogradKeys) && tensor.key_set() != kInferenceKeys) return false;
  const c10::Storage& storage = tensor.unsafe_storage();
  if (!storage) return false;
  if (storage.use_count() > 1) return true;
  const c10::DataPtr& data = storage.unsafeGetStorageImpl()->data_ptr();
  return data.get_deleter() == &delete_lazy_storage && static_cast<LazyStorage*>(data.get_context())->forget_record();
}

c10::Storage new_storage(LazyDevice& device, size_t size_bytes) {
  keep_backward_in_this_thread();
  return c10::Storage(c10::make_intrusive<PooledStorage>(c10::StorageImpl::use_byte_size_t(), size_bytes,
                                                         g_allocator.allocate(device, size_bytes), &g_allocator,
                                                         /*resizable=*/true));
}

at::Tensor tensor_over(c10::Storage storage, c10::ScalarType dtype) { return at::Tensor(over(std::move(storage), dtype)); }

at::Tensor new_tensor(LazyDevice& device, c10::ScalarType dtype, c10::IntArrayRef sizes, c10::IntArrayRef strides) {
  const size_t size_bytes = at::detail::computeStorageNbytes(sizes, strides, c10::elementSize(dtype));
  at::Tensor tensor = tensor_over(new_storage(device, size_bytes), dtype);
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides);
  return tensor;
}

at::Tensor new_tensor(LazyDevice& device, const Type& type) {
  auto tensor = over(new_storage(device, type.size_bytes()), to_scalar_type(type.dtype));
  tensor->set_geometry(type);
  return at::Tensor(std::move(tensor));
}

}  // namespace ltc
