// For tests: what a libtorch with CUDA has beside one without. Two devices, whose memory lies on the host and whose kernels are
// the CPU's. A stream runs when somebody waits for it or a kernel needs it; a little after somebody asked for it; or when nothing
// was submitted to it for a while. Work that touches what another stream allocated, or another device, is refused.
//
// Loaded before anybody asks libtorch about CUDA.
#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

namespace {

using c10::Device;
using c10::DeviceIndex;
using c10::Stream;

constexpr c10::DeviceType kCuda = c10::DeviceType::CUDA;
constexpr DeviceIndex kDevices = 2;
constexpr c10::StreamId kStreams = 32;  // of all devices, in turns, as libtorch has a pool of them

thread_local DeviceIndex t_device = 0;
thread_local c10::StreamId t_streams[kDevices] = {};

Stream current_stream(DeviceIndex device) { return Stream(Stream::UNSAFE, Device(kCuda, device), t_streams[device]); }

// The work submitted to each stream, and how much of it is over.
class Streams {
 public:
  Stream make(DeviceIndex device) {
    const std::lock_guard lock(mutex_);
    return Stream(Stream::UNSAFE, Device(kCuda, device), 1 + made_++ % kStreams);
  }
  void submit(Stream stream, std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    lines_[stream.pack3()].push_back(std::move(work));
    ++submitted_[stream.pack3()];
    submitted_at_[stream.pack3()] = Clock::now();
    std::call_once(started_, [this] { std::thread([this] { run_late_work(); }).detach(); });
  }
  uint64_t submitted(Stream stream) {
    const std::lock_guard lock(mutex_);
    return submitted_[stream.pack3()];
  }
  bool is_over(Stream stream, uint64_t place) {
    const std::lock_guard lock(mutex_);
    return submitted_[stream.pack3()] - lines_[stream.pack3()].size() >= place;
  }
  void run(Stream stream) { run(stream.pack3()); }
  void run_soon(Stream stream) {
    const std::lock_guard lock(mutex_);
    asked_.insert(stream.pack3());
  }

 private:
  using Clock = std::chrono::steady_clock;
  using Key = c10::StreamData3;
  struct Less {
    bool operator()(const Key& a, const Key& b) const { return a.stream_id < b.stream_id; }
  };
  static constexpr std::chrono::milliseconds kLate{300}, kSoon{1};

  [[noreturn]] void run_late_work() {
    while (true) {
      std::this_thread::sleep_for(kSoon);
      const std::lock_guard lock(mutex_);
      const Clock::time_point now = Clock::now();
      for (const Key& key : std::exchange(asked_, {})) run(key);
      for (const auto& [key, time] : submitted_at_) {
        if (now - time > kLate) run(key);
      }
    }
  }
  void run(const Key& key) {
    const std::lock_guard lock(mutex_);
    const c10::InferenceMode inference;  // as it was where the work was submitted
    auto& line = lines_[key];
    while (!line.empty()) {
      const auto work = std::move(line.front());
      line.pop_front();
      work();  // may submit more: the end of memory that it was the last to hold
    }
  }

  std::recursive_mutex mutex_;
  std::once_flag started_;
  c10::StreamId made_ = 0;
  std::map<Key, std::deque<std::function<void()>>, Less> lines_;
  std::map<Key, uint64_t, Less> submitted_;
  std::map<Key, Clock::time_point, Less> submitted_at_;
  std::set<Key, Less> asked_;
};

Streams& streams() {
  static auto* const all = new Streams;
  return *all;
}

struct Place {
  Stream stream;
  uint64_t count;
};

struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return kCuda; }
  Device exchangeDevice(Device device) const override { return {kCuda, std::exchange(t_device, device.index())}; }
  Device getDevice() const override { return {kCuda, t_device}; }
  void setDevice(Device device) const override { t_device = device.index(); }
  void uncheckedSetDevice(Device device) const noexcept override { t_device = device.index(); }
  Stream getStream(Device device) const override { return current_stream(device.has_index() ? device.index() : t_device); }
  Stream getNewStream(Device device, int) const override { return streams().make(device.index()); }
  Stream exchangeStream(Stream stream) const override {
    return Stream(Stream::UNSAFE, stream.device(), std::exchange(t_streams[stream.device_index()], stream.id()));
  }
  DeviceIndex deviceCount() const noexcept override { return std::getenv("LTC_STUB_NO_DEVICE") ? 0 : kDevices; }

  void record(void** event, const Stream& stream, DeviceIndex, c10::EventFlag) const override {
    destroyEvent(*event, 0);
    streams().submit(stream, [] {});
    *event = new Place{stream, streams().submitted(stream)};
  }
  void block(void* event, const Stream& stream) const override {
    const Stream first = static_cast<Place*>(event)->stream;
    streams().submit(stream, [first] { streams().run(first); });
  }
  void destroyEvent(void* event, DeviceIndex) const noexcept override { delete static_cast<Place*>(event); }
  bool queryEvent(void* event) const override {
    const auto* const place = static_cast<Place*>(event);
    const bool is_over = streams().is_over(place->stream, place->count);
    if (!is_over) streams().run_soon(place->stream);
    return is_over;
  }
  void synchronizeEvent(void* event) const override { streams().run(static_cast<Place*>(event)->stream); }
  void synchronizeStream(const Stream& stream) const override { streams().run(stream); }
};

// ---- memory

struct Allocation {
  void* data;
  Stream stream;
};

struct DeviceAllocator final : c10::Allocator {
  c10::DataPtr allocate(size_t bytes) override {
    void* const data = std::malloc(bytes + 1);
    TORCH_CHECK_WITH(OutOfMemoryError, data, "no ", bytes, " bytes");
    auto* const made = new Allocation{data, current_stream(t_device)};
    const auto free = [](void* context) {
      const std::unique_ptr<Allocation> allocation(static_cast<Allocation*>(context));
      streams().submit(allocation->stream, [data = allocation->data] { std::free(data); });
    };
    return {data, made, free, Device(kCuda, t_device)};
  }
  void copy_data(void*, const void*, size_t) const override { TORCH_CHECK(false, "the stub copies tensors only"); }
};

DeviceAllocator* device_allocator() {
  static auto* const allocator = new DeviceAllocator;
  return allocator;
}

void delete_pinned(void* data) { std::free(data); }

struct PinnedAllocator final : c10::Allocator {
  c10::DataPtr allocate(size_t bytes) override {
    void* const data = std::malloc(bytes + 1);
    return {data, data, &delete_pinned, Device(c10::kCPU)};
  }
  void copy_data(void*, const void*, size_t) const override { TORCH_CHECK(false, "the stub copies tensors only"); }
};

bool is_pinned(const at::Tensor& tensor) { return tensor.storage().data_ptr().get_deleter() == &delete_pinned; }

struct Hooks final : at::CUDAHooksInterface {
  explicit Hooks(at::CUDAHooksArgs) {}
  void init() const override {}
  bool hasCUDA() const override { return true; }
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(DeviceIndex) const override { return true; }
  DeviceIndex deviceCount() const override { return kDevices; }
  c10::Allocator* getPinnedMemoryAllocator() const override {
    static auto* const allocator = new PinnedAllocator;
    return allocator;
  }
};

// ---- kernels

c10::DispatchKeySet with_backend(c10::DispatchKeySet keys, c10::BackendComponent backend) {
  keys = keys.remove_backend(c10::BackendComponent::CPUBit).remove_backend(c10::BackendComponent::CUDABit);
  return keys | c10::DispatchKeySet(backend);
}

// The same memory as a tensor of the CPU. Memory of no allocation is a part of one, seen as bytes.
at::Tensor on_host(const at::Tensor& tensor) {
  if (!tensor.is_cuda()) return tensor;
  TORCH_CHECK(tensor.device().index() == t_device, "the current device is ", int{t_device}, ", not that of ", tensor.device());
  const c10::DataPtr& data = tensor.storage().data_ptr();
  if (const auto* const made = static_cast<const Allocation*>(data.get_context()); made && data.get_deleter()) {
    TORCH_CHECK(made->data != data.get() || made->stream == current_stream(t_device), "memory of another stream");
  }
  const size_t bytes = tensor.storage().nbytes();
  c10::Storage storage =
      bytes
          ? c10::Storage(c10::Storage::use_byte_size_t(), bytes, c10::DataPtr(tensor.storage().mutable_data(), Device(c10::kCPU)))
          : c10::Storage(c10::Storage::use_byte_size_t(), 0, c10::GetAllocator(c10::kCPU), /*resizable=*/true);
  const auto keys = with_backend(tensor.key_set(), c10::BackendComponent::CPUBit);
  at::Tensor alias = at::detail::make_tensor<c10::TensorImpl>(std::move(storage), keys, tensor.dtype());
  alias.unsafeGetTensorImpl()->set_storage_offset(tensor.storage_offset());
  alias.unsafeGetTensorImpl()->set_sizes_and_strides(tensor.sizes(), tensor.strides());
  if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) alias.unsafeGetTensorImpl()->set_wrapped_number(true);
  return alias;
}

at::Tensor on_device(const at::Tensor& like, c10::Storage storage) {
  const auto keys = with_backend(like.key_set(), c10::BackendComponent::CUDABit);
  at::Tensor made = at::detail::make_tensor<c10::TensorImpl>(std::move(storage), keys, like.dtype());
  made.unsafeGetTensorImpl()->set_storage_offset(like.storage_offset());
  made.unsafeGetTensorImpl()->set_sizes_and_strides(like.sizes(), like.strides());
  return made;
}

// One call of an operator by the CPU's kernel.
class Call {
 public:
  c10::IValue argument(const c10::IValue& value) {
    if (value.isTensor() && value.toTensor().defined()) return tensor(value.toTensor());
    if (value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& element : value.toTensorVector()) list.push_back(tensor(element));
      return list;
    }
    if (value.isOptionalTensorList()) {
      c10::List<std::optional<at::Tensor>> list;
      for (const std::optional<at::Tensor>& element : value.toOptionalTensorVector()) {
        list.push_back(element && element->defined() ? std::optional(tensor(*element)) : element);
      }
      return list;
    }
    if (value.isDevice()) return Device(c10::kCPU);
    return value;
  }
  c10::IValue result(const c10::IValue& value) {
    if (value.isTensor() && value.toTensor().defined()) return given_back(value.toTensor());
    if (value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& element : value.toTensorVector()) list.push_back(given_back(element));
      return list;
    }
    return value;
  }

 private:
  at::Tensor tensor(const at::Tensor& own) {
    at::Tensor alias = on_host(own);
    aliases_.emplace_back(own, alias);
    return alias;
  }
  at::Tensor given_back(const at::Tensor& result) {
    for (const auto& [own, alias] : aliases_) {
      if (result.is_same(alias)) {
        if (own.is_cuda() && own.sizes() != alias.sizes()) take_over(own, alias);
        return own;
      }
      if (own.is_cuda() && result.storage().is_alias_of(alias.storage())) return on_device(result, own.storage());
    }
    return on_device(result, moved(result));
  }
  static c10::Storage moved(const at::Tensor& tensor) {
    const size_t bytes = tensor.storage().nbytes();
    c10::Storage storage(c10::Storage::use_byte_size_t(), bytes, device_allocator()->allocate(bytes), device_allocator());
    std::memcpy(storage.mutable_data(), tensor.storage().data(), bytes);
    return storage;
  }
  // A result without elements that the kernel gave some.
  static void take_over(const at::Tensor& own, const at::Tensor& alias) {
    own.unsafeGetTensorImpl()->set_storage_keep_dtype(moved(alias));
    own.unsafeGetTensorImpl()->set_sizes_and_strides(alias.sizes(), alias.strides());
  }

  std::vector<std::pair<at::Tensor, at::Tensor>> aliases_;
};

void run_kernel(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  streams().run(current_stream(t_device));
  Call call;
  const size_t count = op.schema().arguments().size(), first = stack->size() - count;
  for (size_t i = first; i < stack->size(); ++i) (*stack)[i] = call.argument((*stack)[i]);
  op.callBoxed(stack);
  for (size_t i = first; i < stack->size(); ++i) (*stack)[i] = call.result((*stack)[i]);
}

at::Tensor& copy(at::Tensor& to, const at::Tensor& from, bool non_blocking) {
  const Stream stream = current_stream(t_device);
  const bool is_host_read_now = !from.is_cuda() && !is_pinned(from);
  auto work = [to = on_host(to), from = on_host(from), held = std::pair(to, from)] { to.copy_(from); };
  if (!non_blocking || is_host_read_now) {
    streams().run(stream);
    work();
  } else {
    streams().submit(stream, std::move(work));
  }
  return to;
}

at::Tensor empty(at::IntArrayRef size, std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
                 std::optional<Device> device, std::optional<bool>, std::optional<at::MemoryFormat> format) {
  const c10::DeviceGuard guard(device.value_or(Device(kCuda, t_device)));
  return at::Tensor(at::detail::empty_generic(size, device_allocator(), c10::DispatchKeySet(c10::DispatchKey::CUDA),
                                              dtype.value_or(at::kFloat), format));
}

at::Tensor empty_strided(at::IntArrayRef size, at::IntArrayRef stride, std::optional<at::ScalarType> dtype,
                         std::optional<at::Layout>, std::optional<Device> device, std::optional<bool>) {
  const c10::DeviceGuard guard(device.value_or(Device(kCuda, t_device)));
  return at::Tensor(at::detail::empty_strided_generic(size, stride, device_allocator(),
                                                      c10::DispatchKeySet(c10::DispatchKey::CUDA), dtype.value_or(at::kFloat)));
}

}  // namespace

C10_REGISTER_GUARD_IMPL(CUDA, Guard)

namespace at {
C10_REGISTER_CLASS(CUDAHooksRegistry, CUDAHooks, Hooks)
}

TORCH_LIBRARY_IMPL(_, CUDA, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&run_kernel>()); }
TORCH_LIBRARY_IMPL(aten, CUDA, m) {
  m.impl("copy_", &copy);
  m.impl("empty.memory_format", &empty);
  m.impl("empty_strided", &empty_strided);
}
