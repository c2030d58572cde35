// Device `ltc` towards PyTorch: its guard and its hooks.
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "core/base/log.h"
#include "core/host/registry.h"
#include "core/torch/tensor/assertions.h"
#include "core/torch/tensor/current_device.h"
#include "core/torch/tensor/generator.h"
#include "core/torch/tensor/memory.h"
#include "core/torch/tensor/resize.h"
#include "core/torch/tensor/tensor.h"
#include "core/torch/tensor/why.h"

namespace ltc {
namespace {

void wait_for(c10::DeviceIndex index) {
  LazyDevice& device = lazy_device(c10::Device(c10::kPrivateUse1, index));
  device.sync(metrics::kMarkStep);
  device.wait();
  check_assertions(device);
}

// The contents of a c10::Event.
using EventRef = std::shared_ptr<Event>;

EventRef record_event(c10::DeviceIndex index, bool timed) {
  return lazy_device(c10::Device(c10::kPrivateUse1, index)).record_event(timed);
}

Event& event_of(void* event) { return **static_cast<EventRef*>(event); }

// One in-order queue per device, so there is one stream, and work that is to wait for an event already does.
class Guard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return kLtc; }
  c10::Device getDevice() const override { return {kLtc, current_device()}; }
  c10::Device exchangeDevice(c10::Device device) const override {
    const c10::Device before = getDevice();
    setDevice(device);
    return before;
  }
  void setDevice(c10::Device device) const override { uncheckedSetDevice(device); }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    if (device.has_index()) set_current_device(device.index());
  }
  // PyTorch asks at the first backward and makes as many threads, after which a process cannot fork and go on with autograd.
  // A program that does not use the device must see no difference, so this loads no plugin and says 0 until there is one.
  c10::DeviceIndex deviceCount() const noexcept override {
    return static_cast<c10::DeviceIndex>(host::Registry::instance().loaded_device_count().value_or(0));
  }

  c10::Stream getStream(c10::Device device) const override {
    return c10::Stream(c10::Stream::DEFAULT, device.has_index() ? device : getDevice());
  }
  c10::Stream getDefaultStream(c10::Device device) const override { return getStream(device); }
  c10::Stream getNewStream(c10::Device device, int) const override { return getStream(device); }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool) const override { return getStream(device); }
  c10::Stream exchangeStream(c10::Stream stream) const override { return getStream(stream.device()); }
  bool queryStream(const c10::Stream& stream) const override { return record_event(stream.device_index(), false)->reached(); }
  void synchronizeStream(const c10::Stream& stream) const override { wait_for(stream.device_index()); }
  void synchronizeDevice(const c10::DeviceIndex index) const override { wait_for(index); }

  // An event is null until recorded. One that measures time is exact: it ends the step, and the queue waits there for the device.
  void record(void** event, const c10::Stream& stream, const c10::DeviceIndex, const c10::EventFlag flag) const override {
    EventRef recorded = record_event(stream.device_index(), flag == c10::EventFlag::BACKEND_DEFAULT);
    if (!*event) *event = new EventRef();
    *static_cast<EventRef*>(*event) = std::move(recorded);
  }
  void block(void*, const c10::Stream&) const override {}  // in order already
  bool queryEvent(void* event) const override { return !event || event_of(event).reached(); }
  void synchronizeEvent(void* event) const override {
    if (event) event_of(event).wait();
  }
  double elapsedTime(void* from, void* to, const c10::DeviceIndex) const override {
    const auto time_ns = [](void* event) { return static_cast<double>(event_of(event).time_ns()); };
    return (time_ns(to) - time_ns(from)) / 1e6;
  }
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override { delete static_cast<EventRef*>(event); }

  // The types that the device's buffers may have. The CPU runs an op that the device does not compute in one of them.
  c10::DeviceCapability getDeviceCapability(c10::Device device) const override {
    LazyDevice& lazy = lazy_device(device);
    c10::DeviceCapability capability;
    capability.capability_data.capability_bits = 0;
    for (uint32_t i = 1; i < kDTypeCount; ++i) {
      if (!lazy.queue().device().supports(i)) continue;
      capability.capability_data.capability_bits |= uint64_t{1} << static_cast<int>(to_scalar_type(static_cast<DType>(i)));
    }
    return capability;
  }
};
C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);

class Hooks final : public at::PrivateUse1HooksInterface {
 public:
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return deviceCount() > 0; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override {
    try {
      return device_count();
    } catch (const std::exception& error) {
      log::debug("no device: ", why(error));
      return 0;
    }
  }
  c10::DeviceIndex getCurrentDevice() const override { return current_device(); }
  void setCurrentDevice(c10::DeviceIndex device) const override { set_current_device(device); }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex device) const override {
    const c10::DeviceIndex before = current_device();
    set_current_device(device);
    return before;
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex device) const override {
    return device < 0 ? current_device() : exchangeDevice(device);
  }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex device) const override { return default_generator(device); }
  at::Generator getNewGenerator(c10::DeviceIndex device) const override {
    return at::make_generator<LazyGenerator>(device < 0 ? current_device() : device);
  }
  bool isPinnedPtr(const void* data) const override { return is_pinned(data); }
  c10::Allocator* getPinnedMemoryAllocator() const override { return pinned_allocator(); }
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t size_bytes) const override {
    resize_storage(storage, size_bytes);
  }
};

const bool g_hooks_registered = [] {
  at::RegisterPrivateUse1HooksInterface(new Hooks());  // lives for ever
  return true;
}();

}  // namespace

}  // namespace ltc
