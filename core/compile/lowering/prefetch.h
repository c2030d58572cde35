// Values that earlier processes saved for a device, read ahead by a thread of its own while the program builds its model: those
// that were used last, with their executables loaded.
//
// Size: at most kMostValues, and kMostBytes of them. The thread lets go of them and ends when nobody has asked for long; the
//   disk has them still.
// Errors: a value that cannot be read or loaded ahead is left to the thread that asks for it.
// Threads: any. Gone before the device.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <thread>

#include "core/compile/lowering/plugin_code.h"
#include "core/compile/lowering/target.h"

namespace ltc {

class DiskCache;

// A value of the disk that begins with executables.
struct SavedValue {
  // Throws where the bytes are damaged.
  SavedValue(std::string bytes, host::PluginDevice& device);

  std::string_view rest() const { return std::string_view(bytes).substr(begin); }  // what follows the executables

  std::string bytes;
  size_t begin = 0;
  Executables executables;
  uint32_t generation;  // of the device's opening for which they were loaded
};

class Prefetch {
 public:
  static constexpr size_t kMostValues = 16, kMostBytes = size_t{64} << 20;

  // The thread calls `warm_up`, which throws nothing, and reads what `disk` has for targets like this one, whatever their
  // precision is.
  Prefetch(DiskCache& disk, const CompileTarget& target, std::function<void()> warm_up = {});
  ~Prefetch() { stop(); }

  // The value of that key, if it is one of those. Waits while it is just being loaded.
  std::unique_ptr<SavedValue> take(const std::string& key);

  void wait();  // until all is read that will be

  // Ends the thread after the value that it is at, and lets go of what it has. In a forked process, where there is no such
  // thread, does nothing.
  void stop();

 private:
  void work();
  bool load(std::string key, std::string bytes);
  bool finish(const std::string& key, std::unique_ptr<SavedValue> value);

  const pid_t process_;
  DiskCache& disk_;
  host::PluginDevice& device_;
  const std::string device_key_;
  const std::function<void()> warm_up_;

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::map<std::string, std::unique_ptr<SavedValue>> values_;
  std::set<std::string> asked_;  // keys that were asked for before they were read
  std::string loading_;          // the key of the value that is being loaded
  size_t read_values_ = 0, read_bytes_ = 0;
  bool is_read_ = false, stopping_ = false;
  std::thread thread_;
};

// The value of that key: read ahead, or from the disk now; null if there is none. Throws where it is damaged.
std::unique_ptr<SavedValue> find_saved(DiskCache& disk, const std::string& key, const CompileTarget& target);

}  // namespace ltc
