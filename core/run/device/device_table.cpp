#include "core/run/device/device_table.h"

#include <unistd.h>

#include <cstdlib>

#include "core/host/registry.h"
#include "core/run/process/fork.h"
#include "core/run/process/interrupt.h"

namespace ltc {

namespace {

constexpr std::chrono::milliseconds kForEver = std::chrono::milliseconds::max();
constexpr std::chrono::seconds kPatienceAtEnd{5};  // with a thread that opens a device

// Whether the calling thread is opening a device, and holds the table's mutex: a driver may end the process there.
LTC_THREAD_LOCAL constinit bool t_opens_device = false;

struct Opening {
  Opening() { t_opens_device = true; }
  ~Opening() { t_opens_device = false; }
};

// The main thread has one. It only drains: the process may go on after that thread's end.
struct DrainedAtEnd {
  ~DrainedAtEnd() {
    DeviceTable::instance().for_each([](LazyDevice& device) { device.wait(); });
  }
};

}  // namespace

// Leaked: storages may be destroyed after static objects.
DeviceTable& DeviceTable::instance() {
  static auto* table = new DeviceTable();
  return *table;
}

LazyDevice& DeviceTable::get(uint32_t ordinal) {
  const auto lock = lock_in_slices(mutex_);
  if (ordinal < by_ordinal_.size() && by_ordinal_[ordinal]) [[likely]]
    return *by_ordinal_[ordinal];
  refuse_after_fork();
  const Opening opening;
  auto& registry = host::Registry::instance();
  const uint32_t count = registry.device_count();
  if (ordinal >= count) fail(Code::kInvalidArgument, "there is no device ltc:", ordinal, ": the loaded backends have ", count);
  watch_forks();
  by_ordinal_.resize(count);
  by_ordinal_[ordinal] = std::make_unique<LazyDevice>(ordinal, registry.open(ordinal));
  // Handlers run in the reverse order: before those of whatever the plugin has made until now, which its work may need. Objects
  // that the work makes itself (oneDNN's table of primitives) go before. The objects of the thread that calls exit() go first.
  std::atexit([] { instance().shut_down(); });
  if (getpid() == gettid()) thread_local const DrainedAtEnd drained;
  return *by_ordinal_[ordinal];
}

LazyDevice* DeviceTable::find(uint32_t ordinal) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  return lock && ordinal < by_ordinal_.size() ? by_ordinal_[ordinal].get() : nullptr;
}

uint32_t DeviceTable::count() { return host::Registry::instance().device_count(); }

// None where another thread is opening one for longer than that.
std::vector<LazyDevice*> DeviceTable::in_use(std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_, std::defer_lock);
  for (auto waited = 0 * kWaitSlice; !t_opens_device && !try_lock_for_a_slice(lock); check_interrupt()) {
    if ((waited += kWaitSlice) > patience) return {};
  }
  std::vector<LazyDevice*> open;
  for (const auto& device : by_ordinal_) {
    if (device) open.push_back(device.get());
  }
  return open;
}

void DeviceTable::for_each(const std::function<void(LazyDevice&)>& visit) {
  for (LazyDevice* device : in_use(kForEver)) visit(*device);
}

void DeviceTable::end_background_work() {
  if (forked()) return;
  for (LazyDevice* device : in_use(kPatienceAtEnd)) device->end_background_work();
}

void DeviceTable::rest() {
  if (forked()) return;
  for (LazyDevice* device : in_use(kPatienceAtEnd)) device->rest();
}

void DeviceTable::shut_down() {
  if (forked()) return;
  for (LazyDevice* device : in_use(kPatienceAtEnd)) device->stop();
}

}  // namespace ltc
