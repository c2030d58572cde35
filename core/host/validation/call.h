// One call from the host into a plugin, while it runs, and the checks that every call has.
#pragma once

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>

#include "core/base/error.h"
#include "core/base/float_control.h"
#include "core/host/validation/instance.h"
#include "core/host/validation/report.h"
#include "core/host/validation/statuses.h"

namespace ltc::host::validation {

bool is_text(std::string_view bytes);    // UTF-8
bool is_string(const ltc_string& text);  // the same, with a NUL behind it

// The codes that a slot may answer besides those that every slot may: bits, by code.
using Codes = uint32_t;
constexpr Codes code_bits() { return 0; }
template <typename... Rest>
constexpr Codes code_bits(ltc_code first, Rest... rest) {
  return 1u << first | code_bits(rest...);
}

class Call {
 public:
  explicit Call(const char* slot) : slot_(slot) {}
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // Reports the clause unless it holds; the parts say which values broke it.
  template <typename... Parts>
  bool require(bool holds, ClauseId clause, const Parts&... parts) {
    if (!holds) report(clause, instance_ ? instance_->name : "unknown plugin", slot_, cat("", parts...));
    return holds;
  }

  // An argument that is a handle. The first one says which instance the call is of.
  template <typename T>
  Use<T> use(const void* handle) {
    Use<T> object(handle);
    see(handle, T::kKind, object.get());
    return object;
  }

  // One that is of the device.
  template <typename T>
  Use<T> use_of(const Use<Device>& device, const void* handle) {
    Use<T> object = use<T>(handle);
    if (object && device && !require(object->device == device.get(), "handle.same_device", "another device's")) possible_ = false;
    return object;
  }

  // Ends the object of a destroy or close; null where it is none that is alive.
  template <typename T>
  T* end(const void* handle, ClauseId alone = "handle.destroy_alone") {
    const auto [object, uses] = Registry::instance().end(handle, T::kKind);
    see(handle, T::kKind, object);
    require(uses == 0, alone, uses, " calls use it");
    return static_cast<T*>(object);
  }

  // Whether all arguments are good enough for the plugin to be called. If not, answer with refusal().
  bool is_possible() const { return possible_; }
  ltc_status* refusal() const;

  // A struct that the host fills: given, and as large as `size`.
  template <typename Struct>
  bool sized(const Struct* args, size_t size) {
    if (!not_null(args, "args")) return false;
    if (!require(args->struct_size >= size, "args.struct_size", args->struct_size, " instead of ", size)) possible_ = false;
    return possible_;
  }
  bool not_null(const void* pointer, const char* what, size_t count = 1) {
    if (!require(count == 0 || pointer, "args.not_null", what)) possible_ = false;
    return possible_;
  }
  // A chain of the host's: each kind is listed by the plugin.
  void sends(const ltc_extension* first);

  // Calls the plugin. `nodes`: of the graph that a status may name; empty: there is none; kAnyNode: unknown. Returns its answer.
  static constexpr size_t kAnyNode = SIZE_MAX;
  template <typename Slot>
  ltc_status* ask(Codes codes, size_t nodes, Slot&& slot) {
    ltc_status* status = nullptr;
    watched([&] { status = slot(); });
    return status ? examined(status, codes, nodes) : nullptr;
  }
  template <typename Slot>
  void tell(Slot&& slot) {
    watched(slot);
  }

  // For a handle that the plugin is to write, so that one that was not written is told apart.
  template <typename Handle>
  static Handle* unwritten() {
    static char place;
    return reinterpret_cast<Handle*>(&place);
  }
  // Gives the host an object for the handle that the plugin wrote, made by `make`; returns the answer.
  template <typename T, typename Make>
  ltc_status* give(ltc_status* status, void* written, typename T::Handle** out, Make&& make) {
    const bool is_unwritten = written == unwritten<typename T::Handle>();
    if (status) {
      require(is_unwritten, "out.unchanged", "a handle was written with an error");
      return status;
    }
    const bool is_given = require(!is_unwritten && written, "handle.not_null", is_unwritten ? "nothing was written" : "NULL");
    *out = is_given ? handle_of<T>(adopted<T>(make())) : nullptr;
    return nullptr;
  }
  template <typename T>
  T* adopted(T* made) {
    const auto [object, is_new] = instance_->adopt(made);
    require(is_new, "handle.once", "it was given before and lives");
    return object;
  }
  template <typename T>
  static typename T::Handle* handle_of(T* object) {
    return reinterpret_cast<typename T::Handle*>(object);
  }

  Instance& instance() const { return *instance_; }
  const char* slot() const { return slot_; }

 private:
  void see(const void* handle, Kind kind, Object* object);
  void enter(Instance& instance);
  ltc_status* examined(ltc_status* status, Codes codes, size_t nodes);

  template <typename Slot>
  void watched(Slot&& slot) {
    const FloatControl before = FloatControl::current();
    try {
      slot();
    } catch (...) {
      require(false, "slot.no_exception");
      throw;
    }
    require(FloatControl::current() == before, "thread.float_control");
  }

  const char* const slot_;
  Instance* instance_ = nullptr;
  bool entered_ = false;
  bool possible_ = true;
};

// The whole of a slot that ends an object. `alone`: the clause that no other call uses it.
template <typename T, auto slot>
void end_object(const char* name, typename T::Handle* handle, ClauseId alone = "handle.destroy_alone") {
  Call call(name);
  T* const object = call.end<T>(handle, alone);
  if (!object) return;
  auto* const real = static_cast<typename T::Handle*>(object->real);
  call.instance().forget(object);
  call.tell([&] { (call.instance().plugin_api.*slot)(real); });
}

// While one lives, this thread runs a function of the host's that a plugin called.
class InHost {
 public:
  InHost() { ++depth; }
  ~InHost() { --depth; }
  InHost(const InHost&) = delete;
  InHost& operator=(const InHost&) = delete;
  static bool is_here() { return depth > 0; }

 private:
  static thread_local int depth;
};

}  // namespace ltc::host::validation
