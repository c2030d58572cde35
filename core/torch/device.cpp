#include "core/torch/device.h"

#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "core/base/log.h"
#include "core/host/registry.h"
#include "core/torch/generator.h"
#include "core/torch/resize.h"
#include "core/torch/tensor.h"

namespace ltc {
namespace {

thread_local c10::DeviceIndex t_current = 0;

void wait_for(c10::DeviceIndex index) {
  LazyDevice& device = LazyDevice::get(static_cast<uint32_t>(index < 0 ? t_current : index));
  device.sync(metrics::kMarkStep);
  device.wait();
}

// One in-order queue per device, so there is one stream, and an event is over when the queue is drained.
class Guard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return kLtc; }
  c10::Device getDevice() const override { return {kLtc, t_current}; }
  c10::Device exchangeDevice(c10::Device device) const override {
    const c10::Device before = getDevice();
    setDevice(device);
    return before;
  }
  void setDevice(c10::Device device) const override { uncheckedSetDevice(device); }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    if (device.has_index()) t_current = device.index();
  }
  // PyTorch asks at the first backward and makes as many threads, after which a process cannot fork and go on with autograd.
  // A program that does not use the device must see no difference, so this loads no plugin and says 0 until there is one.
  c10::DeviceIndex deviceCount() const noexcept override {
    return static_cast<c10::DeviceIndex>(host::Registry::instance().loaded_device_count().value_or(0));
  }

  c10::Stream getStream(c10::Device device) const override { return c10::Stream(c10::Stream::DEFAULT, device); }
  c10::Stream getDefaultStream(c10::Device device) const override { return getStream(device); }
  c10::Stream getNewStream(c10::Device device, int) const override { return getStream(device); }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool) const override { return getStream(device); }
  c10::Stream exchangeStream(c10::Stream stream) const override { return getStream(stream.device()); }
  bool queryStream(const c10::Stream& stream) const override { return synchronizeStream(stream), true; }
  void synchronizeStream(const c10::Stream& stream) const override { wait_for(stream.device_index()); }
  void synchronizeDevice(const c10::DeviceIndex index) const override { wait_for(index); }

  // The event is the device whose queue it is in; null until recorded.
  void record(void** event, const c10::Stream& stream, const c10::DeviceIndex, const c10::EventFlag) const override {
    *event = &LazyDevice::get(static_cast<uint32_t>(stream.device_index()));
  }
  void block(void*, const c10::Stream&) const override {}  // in order already
  bool queryEvent(void* event) const override { return synchronizeEvent(event), true; }
  void synchronizeEvent(void* event) const override {
    if (event) wait_for(static_cast<c10::DeviceIndex>(static_cast<LazyDevice*>(event)->ordinal()));
  }
  void destroyEvent(void*, const c10::DeviceIndex) const noexcept override {}
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
      log::debug("no device: ", error.what());
      return 0;
    }
  }
  c10::DeviceIndex getCurrentDevice() const override { return t_current; }
  void setCurrentDevice(c10::DeviceIndex device) const override { t_current = device; }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex device) const override { return std::exchange(t_current, device); }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex device) const override {
    return device < 0 ? t_current : exchangeDevice(device);
  }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex device) const override { return default_generator(device); }
  at::Generator getNewGenerator(c10::DeviceIndex device) const override {
    return at::make_generator<LazyGenerator>(device < 0 ? t_current : device);
  }
  // The device has no memory that the host could pin for it: host memory is as good as any.
  bool isPinnedPtr(const void*) const override { return false; }
  c10::Allocator* getPinnedMemoryAllocator() const override { return c10::GetAllocator(c10::DeviceType::CPU); }
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t size_bytes) const override {
    resize_storage(storage, size_bytes);
  }
};

const bool g_hooks_registered = [] {
  at::RegisterPrivateUse1HooksInterface(new Hooks());  // lives for ever
  return true;
}();

}  // namespace

c10::DeviceIndex current_device() { return t_current; }
void set_current_device(c10::DeviceIndex device) { t_current = device; }
c10::DeviceIndex device_count() { return static_cast<c10::DeviceIndex>(LazyDevice::count()); }

}  // namespace ltc
