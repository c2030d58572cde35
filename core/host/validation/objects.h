// The layer's knowledge of the objects of plugins. The host gets the address of such an object in place of the plugin's handle,
// so a handle that is foreign, ended, or of another kind is found without looking into it.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/host/validation/signature.h"
#include "ltc/collective.h"
#include "ltc/plugin.h"

namespace ltc::host::validation {

struct Instance;
struct Device;

enum class Kind : uint8_t { kInstance, kDevice, kBuffer, kProgram, kExecutable, kEvent, kSink, kGroup };
inline constexpr size_t kKinds = 8;

struct Object {
  Object(Kind kind, Instance& instance, Device* device, void* real)
      : kind(kind), instance(instance), device(device), real(real) {}
  virtual ~Object() = default;

  const Kind kind;
  Instance& instance;
  Device* const device;  // null for an instance, a device, and a sink
  void* const real;      // the plugin's handle
  // Guarded by the registry.
  uint32_t uses = 0;  // calls that use it now
  bool alive = true;
  // Guarded by Instance::lock: donated in a run that is being submitted, so its handle may come back at any time.
  bool leaving = false;
};

struct Device : Object {
  static constexpr Kind kKind = Kind::kDevice;
  using Handle = ltc_device;
  using Object::Object;
  uint64_t dtypes = 0, flags = 0;
  std::vector<std::pair<const char*, std::string>> strings;
  std::atomic<bool> lost{false};
  std::atomic<int> submitting{0};
  std::mutex lock;  // guards what follows
  uint64_t submitted = 0;
  uint64_t over = 0;  // the newest submission that was seen to be over
};

struct Buffer : Object {
  static constexpr Kind kKind = Kind::kBuffer;
  using Handle = ltc_buffer;
  using Object::Object;
  std::optional<Type> type;  // empty: of an executable that was loaded
};

struct Program : Object {
  static constexpr Kind kKind = Kind::kProgram;
  using Handle = ltc_program;
  using Object::Object;
  std::shared_ptr<const Signature> signature;
};

struct Executable : Object {
  static constexpr Kind kKind = Kind::kExecutable;
  using Handle = ltc_executable;
  using Object::Object;
  std::shared_ptr<const Signature> signature;  // null for one that was loaded
};

enum class Answer : uint8_t { kPending, kGood, kFailed };

struct Event : Object {
  static constexpr Kind kKind = Kind::kEvent;
  using Handle = ltc_event;
  using Object::Object;
  uint64_t sequence = 0;                       // among the submissions to its device
  std::optional<size_t> outputs;               // of a run
  std::shared_ptr<const Signature> signature;  // of a run
  Answer answer = Answer::kPending;            // guarded by Device::lock
};

struct Group : Object {
  static constexpr Kind kKind = Kind::kGroup;
  using Handle = ltc_group;
  using Object::Object;
};

// A sink of the host's, lent to one call.
struct Sink : Object {
  static constexpr Kind kKind = Kind::kSink;
  using Handle = void;
  Sink(Instance& instance, const ltc_sink& inner) : Object(kKind, instance, nullptr, nullptr), inner(inner) {}
  const ltc_sink inner;
  const std::thread::id thread = std::this_thread::get_id();
  bool refused = false;
};

// All objects of this process. Ended ones stay for a while, so that a late use is told apart. Instances and devices stay for
// ever.
class Registry {
 public:
  static Registry& instance();

  void add(Object* object);
  Object* find(const void* handle, Kind kind);       // ended or not
  Object* begin_use(const void* handle, Kind kind);  // null unless it is alive
  void end_use(Object* object);
  // Ends one that is alive, and says how many calls use it; {null, 0} if it is not.
  std::pair<Object*, uint32_t> end(const void* handle, Kind kind);

 private:
  static constexpr size_t kMostEnded = 4096;
  Object* find_locked(const void* handle, Kind kind) const;
  void retire(Object* object);

  std::mutex lock_;
  std::unordered_map<const void*, Object*> objects_;
  std::deque<Object*> ended_;
};

// An object while a call uses it; null where the handle is none that is alive.
template <typename T>
class Use {
 public:
  explicit Use(const void* handle) : object_(static_cast<T*>(Registry::instance().begin_use(handle, T::kKind))) {}
  ~Use() {
    if (object_) Registry::instance().end_use(object_);
  }
  Use(Use&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Use& operator=(Use&&) = delete;

  explicit operator bool() const { return object_ != nullptr; }
  T* get() const { return object_; }
  T* operator->() const { return object_; }
  typename T::Handle* real() const { return static_cast<typename T::Handle*>(object_->real); }

 private:
  T* object_;
};

}  // namespace ltc::host::validation
