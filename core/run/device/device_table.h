// The devices of this process by ordinal, each opened at its first use.
//
// Threads: any thread may call any function.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "core/run/device/lazy_device.h"

namespace ltc {

class LTC_API DeviceTable {
 public:
  static DeviceTable& instance();

  // The device of that ordinal; the first use of any loads the plugins that LTC_BACKEND names. Throws what that throws, and
  // Error(kInvalidArgument) with both numbers for an ordinal that no plugin has.
  LazyDevice& get(uint32_t ordinal);
  LazyDevice* find(uint32_t ordinal);  // null if it is not in use yet, or somebody is just opening one; never waits
  uint32_t count();                    // loads the plugins too
  void for_each(const std::function<void(LazyDevice&)>& visit);  // those in use

  // Before the process forks: see LazyDevice. With no lock held.
  void end_background_work();

  // For the end of the process: rest() drains the queues and ends their threads, which later work begins again; after shut_down()
  // there is no later work. Neither waits long for a device that is just being opened.
  void rest();
  void shut_down();

 private:
  std::vector<LazyDevice*> in_use(std::chrono::milliseconds patience);

  std::timed_mutex mutex_;  // held while a device is opened
  std::vector<std::unique_ptr<LazyDevice>> by_ordinal_;
};

}  // namespace ltc
