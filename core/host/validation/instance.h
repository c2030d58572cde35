// An instance of a plugin as the layer sees it: the plugin's table and the host's, and what lives of the plugin's objects.
#pragma once

#include <array>
#include <atomic>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/host/validation/objects.h"

namespace ltc::host::validation {

struct Instance : Object {
  static constexpr Kind kKind = Kind::kInstance;
  using Handle = ltc_plugin;
  static constexpr uint32_t kUnknown = UINT32_MAX;

  Instance(std::string plugin_name, const ltc_host_api* host_api)
      : Object(kKind, *this, nullptr, nullptr), name(std::move(plugin_name)), host(*host_api) {}

  const std::string name;
  const ltc_host_api host;                              // the host's functions, for the layer
  ltc_host_api host_table{};                            // the layer's, for the plugin
  ltc_plugin_api plugin_api{};                          // the plugin's slots, for the layer
  ltc_plugin_api table{};                               // the layer's, for the host
  ltc_collectives plugin_collectives{}, collectives{};  // likewise; null where the plugin has none
  ltc_plugin* plugin = nullptr;
  std::vector<std::pair<uint32_t, uint32_t>> extensions;  // kinds that the plugin lists, and their versions

  std::atomic<bool> one_call_at_a_time{false};
  std::atomic<bool> closed{false};  // plugin_close has returned
  std::atomic<int> inside{0};       // calls of slots
  std::atomic<uint32_t> device_count{kUnknown};

  std::mutex lock;  // guards what follows
  std::vector<std::pair<const char*, std::string>> strings;

  bool has_events() const { return plugin_api.event_wait != nullptr; }

  // Takes an object that the plugin has just given. If its handle is one that lives already, returns that object and false.
  template <typename T>
  std::pair<T*, bool> adopt(T* object) {
    std::lock_guard guard(lock);
    Object*& place = live_[static_cast<size_t>(T::kKind)][object->real];
    if (place && !place->leaving) {
      delete object;
      return {static_cast<T*>(place), false};
    }
    place = object;
    Registry::instance().add(object);
    return {object, true};
  }

  // From here on the plugin may give the handle again. To be called before it may.
  void let_go(Object* object, bool leaving = true) {
    std::lock_guard guard(lock);
    object->leaving = leaving;
  }

  // The object has ended.
  void forget(Object* object) {
    std::lock_guard guard(lock);
    auto& live = live_[static_cast<size_t>(object->kind)];
    const auto found = live.find(object->real);
    if (found != live.end() && found->second == object) live.erase(found);
  }

  bool lives(Kind kind, const void* real) {
    std::lock_guard guard(lock);
    const auto found = live_[static_cast<size_t>(kind)].find(real);
    return found != live_[static_cast<size_t>(kind)].end() && !found->second->leaving;
  }

  // Objects of the device, or of all devices where it is null, that live.
  size_t count(Kind kind, const Device* device) {
    std::lock_guard guard(lock);
    size_t count = 0;
    for (const auto& [real, object] : live_[static_cast<size_t>(kind)]) count += !device || object->device == device;
    return count;
  }

 private:
  std::array<std::unordered_map<const void*, Object*>, kKinds> live_;
};

}  // namespace ltc::host::validation
