#include "core/compile/lowering/prefetch.h"

#include <pthread.h>
#include <unistd.h>

#include <chrono>
#include <utility>

#include "core/base/disk_cache.h"
#include "core/base/error.h"
#include "core/host/plugin.h"

namespace ltc {
namespace {

constexpr auto kPatience = std::chrono::seconds(30);  // longer than it takes to build a model

}  // namespace

SavedValue::SavedValue(std::string saved, host::PluginDevice& device) : bytes(std::move(saved)), generation(device.generation()) {
  ByteReader in(bytes);
  executables = load_executables(in, device);
  begin = bytes.size() - in.left();
}

Prefetch::Prefetch(DiskCache& disk, const CompileTarget& target, std::function<void()> warm_up)
    : process_(getpid()),
      disk_(disk),
      device_(target.device),
      device_key_(device_key(target)),
      warm_up_(std::move(warm_up)),
      thread_([this] { work(); }) {}

void Prefetch::work() {
  pthread_setname_np(pthread_self(), "ltc_prefetch");  // for debuggers and profilers
  if (warm_up_) warm_up_();
  try {
    disk_.visit_newest([this](std::string key, std::string bytes) { return load(std::move(key), std::move(bytes)); });
  } catch (const std::exception&) {  // no memory
  }
  std::unique_lock lock(mutex_);
  is_read_ = true;
  changed_.notify_all();
  changed_.wait_for(lock, kPatience, [this] { return stopping_ || values_.empty(); });
  const auto unused = std::exchange(values_, {});
  lock.unlock();  // to destroy executables is a call of the plugin
}

// False if it was the last one.
bool Prefetch::load(std::string key, std::string bytes) {
  {
    std::lock_guard lock(mutex_);
    if (stopping_) return false;
    if (!key.starts_with(device_key_) || asked_.contains(key)) return true;
    if (read_bytes_ + bytes.size() > kMostBytes) return false;
    read_bytes_ += bytes.size();
    ++read_values_;
    loading_ = key;
  }
  std::unique_ptr<SavedValue> value;
  try {
    value = std::make_unique<SavedValue>(std::move(bytes), device_);
  } catch (const std::exception&) {  // a plugin's error too
  }
  return finish(key, std::move(value));
}

bool Prefetch::finish(const std::string& key, std::unique_ptr<SavedValue> value) {
  std::lock_guard lock(mutex_);
  if (value) values_.emplace(key, std::move(value));
  loading_.clear();
  changed_.notify_all();
  return !stopping_ && read_values_ < kMostValues;
}

std::unique_ptr<SavedValue> Prefetch::take(const std::string& key) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return loading_ != key; });
  auto taken = values_.extract(key);
  if (!taken && !is_read_) asked_.insert(key);
  changed_.notify_all();
  lock.unlock();
  if (taken.empty() || taken.mapped()->generation != device_.generation()) return nullptr;
  return std::move(taken.mapped());
}

void Prefetch::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return is_read_; });
}

void Prefetch::stop() {
  if (getpid() != process_) {
    if (thread_.joinable()) thread_.detach();
    return;
  }
  std::unique_lock lock(mutex_);
  std::thread thread = std::move(thread_);
  stopping_ = true;
  changed_.notify_all();
  lock.unlock();
  if (thread.joinable()) thread.join();
}

std::unique_ptr<SavedValue> find_saved(DiskCache& disk, const std::string& key, const CompileTarget& target) {
  if (target.prefetch) {
    if (auto value = target.prefetch->take(key)) {
      disk.touch(key);
      return value;
    }
  }
  auto bytes = disk.find(key);
  return bytes ? std::make_unique<SavedValue>(*std::move(bytes), target.device) : nullptr;
}

}  // namespace ltc
