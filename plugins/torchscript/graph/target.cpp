#include "torchscript/graph/target.h"

#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <c10/util/StringUtil.h>
#include <dlfcn.h>
#include <torch/version.h>

#include <cstdlib>
#include <string_view>

#include "torchscript/graph/errors.h"

namespace ltc::torchscript {
namespace {

const c10::impl::DeviceGuardImplInterface& guard_of(c10::DeviceType type) { return *c10::impl::getDeviceGuardImpl(type); }

}  // namespace

Devices find_devices(c10::DeviceType type) {
  if (type == c10::DeviceType::CPU) return {1, ""};
  // Not part of every process that has libtorch's CPU half: Python loads it with torch, a program that links libtorch may not.
  if (!c10::impl::hasDeviceGuardImpl(type)) dlopen("libtorch_cuda.so", RTLD_LAZY | RTLD_GLOBAL);
  if (!c10::impl::hasDeviceGuardImpl(type)) {
    return {0, "the option cuda=1, but this libtorch (" TORCH_VERSION ") was built without CUDA; install a PyTorch with it"};
  }
  const auto count = at::hasCUDA() ? static_cast<uint32_t>(guard_of(type).deviceCount()) : 0;
  return {count, count ? "" : "the option cuda=1, but libtorch finds no CUDA device; torch.cuda.init() says why"};
}

Queue::Queue(c10::DeviceType type, uint32_t ordinal) : device_(type) {
  if (type == c10::DeviceType::CPU) return;
  at::globalContext().lazyInitDevice(type);
  device_.set_index(static_cast<c10::DeviceIndex>(ordinal));
  stream_ = guard_of(type).getNewStream(device_);
}

std::optional<c10::Event> Queue::mark() const {
  if (!stream_) return std::nullopt;
  c10::Event event(device_.type());
  event.record(*stream_);
  return event;
}

void Queue::wait() const {
  if (stream_) stream_->synchronize();
}

at::Tensor pinned(at::IntArrayRef sizes, at::ScalarType dtype, c10::DeviceType device) {
  c10::Allocator* const allocator = at::globalContext().getPinnedMemoryAllocator(device);
  return at::Tensor(at::detail::empty_generic(sizes, allocator, c10::DispatchKeySet(c10::DispatchKey::CPU), dtype, std::nullopt));
}

}  // namespace ltc::torchscript
