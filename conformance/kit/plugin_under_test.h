// The plugin's table as the tiers use it: raw slots, each call guarded and each answer checked for what holds of every call.
//
// The rules that hold always (ltc/plugin.h, "Contract for all that follows") are checked here and in no test: no exception leaves
// a slot, and none changes how the thread computes floating-point numbers; an error has a known code and a message and leaves out
// parameters unchanged; a success gives every handle, and none twice; a plugin without event slots gives no event. A breach is a
// GoogleTest failure, and std::runtime_error where the test cannot go on.
#pragma once

#include <functional>
#include <iosfwd>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "conformance/kit/array.h"
#include "conformance/kit/host_probe.h"
#include "core/base/float_control.h"
#include "core/host/option_list.h"
#include "core/ir/graph.h"
#include "ltc/plugin.h"

namespace ltc::conformance {

// The library under test and its options, an entry as in LTC_BACKEND whose name is a path; set once, before any test.
void set_backend(const std::string& entry);
const std::string& backend_path();
const std::string& backend_text();  // as set_backend was given it
const host::OptionList& backend_options();
// Loads it at the first call and keeps it loaded. Throws ltc::Error with the loader's words.
ltc_plugin_entry_fn* backend_entry();
// Whether the thread that loaded it computed floating-point numbers afterwards as before. They are as before by now.
bool loading_kept_float_control();

// The answer of a slot; false for success.
struct Failure {
  ltc_code code = 0;
  uint32_t node = LTC_NONE;
  std::string message;

  explicit operator bool() const { return code != 0; }
};
std::ostream& operator<<(std::ostream& out, const Failure& failure);
std::string code_text(ltc_code code);

// One instance: from ltc_plugin_entry to plugin_close. The destructor checks that no host function is called after that.
class Instance {
 public:
  // `cache`: what its host keeps; may be null. Throws where the plugin refuses.
  explicit Instance(HostCache* cache = nullptr);
  ~Instance();
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  const ltc_plugin_api& api() const { return api_; }  // slots that it does not have are null
  ltc_plugin* get() const { return plugin_; }
  const HostProbe& host() const { return *host_; }
  bool computes() const { return api_.execute != nullptr; }
  bool is_asynchronous() const { return api_.event_wait != nullptr; }

  ltc_plugin_info describe() const;

  // Runs `call`, a lambda that calls `slot`; an exception of the plugin's becomes std::runtime_error.
  template <typename Call>
  static auto guarded(const char* slot, Call&& call);
  static Failure taken(const char* slot, ltc_status* status);  // destroys it
  template <typename Call>
  static Failure asked(const char* slot, Call&& call) {
    return taken(slot, guarded(slot, call));
  }
  static void ended(const char* slot, const std::function<void()>& call);

 private:
  std::unique_ptr<HostProbe> host_;
  ltc_plugin_api api_{};
  ltc_plugin* plugin_ = nullptr;
};

class Device;

// A handle and the slot that ends it.
template <typename T, void (Device::*kDestroy)(T*)>
class Handle {
 public:
  Handle() = default;
  Handle(Device& device, T* handle) : device_(&device), handle_(handle) {}
  Handle(Handle&& other) noexcept : device_(other.device_), handle_(other.release()) {}
  Handle& operator=(Handle&& other) noexcept {
    if (this == &other) return *this;
    reset();
    device_ = other.device_;
    handle_ = other.release();
    return *this;
  }
  ~Handle() { reset(); }

  T* get() const { return handle_; }
  explicit operator bool() const { return handle_ != nullptr; }
  T* release() { return std::exchange(handle_, nullptr); }
  void reset() {
    if (handle_) (device_->*kDestroy)(release());
  }

 private:
  Device* device_ = nullptr;
  T* handle_ = nullptr;
};

// An open device. Methods that return a handle throw where the plugin fails; those that return a Failure hand it on.
class Device {
 public:
  explicit Device(Instance& instance, uint32_t ordinal = 0);
  // Whether the ordinal opens while another of its devices is open.
  static bool opens_again(Instance& instance, uint32_t ordinal = 0);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  void destroy_buffer(ltc_buffer* buffer);
  void destroy_program(ltc_program* program);
  void destroy_executable(ltc_executable* executable);
  void destroy_event(ltc_event* event);
  using Buffer = Handle<ltc_buffer, &Device::destroy_buffer>;
  using Program = Handle<ltc_program, &Device::destroy_program>;
  using Executable = Handle<ltc_executable, &Device::destroy_executable>;
  using Event = Handle<ltc_event, &Device::destroy_event>;

  const ltc_plugin_api& api() const { return instance_.api(); }
  ltc_device* get() const { return device_; }
  const ltc_device_info& info() const { return info_; }
  bool copies_parts();  // of buffers, which a device of opaque layouts need not
  bool supports(DType dtype) const { return info_.dtypes >> static_cast<uint32_t>(dtype) & 1; }

  // memory
  Failure create_buffer(const ltc_type& type, Buffer& buffer);
  Buffer buffer(DType dtype, const Sizes& sizes);
  Failure transfer(const ltc_transfer_args& args, Event& done);
  Buffer upload(const Array& array);
  Array download(const Buffer& buffer, DType dtype, const Sizes& sizes);

  // computing
  Failure claims(const ltc_graph& graph, std::vector<uint32_t>& clusters);
  Failure lower(const ltc_graph& graph, Program& program, const ltc_extension* ext = nullptr);
  Failure compile(const ltc_compile_args& args, Executable& executable);
  Program lower(const std::string& graph);
  Executable compile(const Program& program, uint32_t effort = 1);
  Executable build(const std::string& graph);
  Executable build(const Graph& graph);

  struct Run {
    Failure submitted;
    std::vector<Buffer> outputs;
    Event done;
  };
  struct RunArgs {
    const Executable& executable;
    std::vector<ltc_buffer*> inputs;
    size_t output_count = 1;
    std::vector<ltc_scalar> scalars = {};
    std::vector<uint8_t> donate = {};
    const ltc_extension* ext = nullptr;
  };
  Run submit(const RunArgs& args);
  // Submits, waits, and throws whatever failed.
  std::vector<Buffer> run(const RunArgs& args);

  // Waits without a limit; what the work says.
  Failure finish(const Event& event);
  Failure wait(const Event& event, uint64_t timeout_ns, bool& finished);

  ltc_memory_stats memory_stats();

 private:
  Instance& instance_;
  ltc_device_info info_;
  ltc_device* device_ = nullptr;
};

using Buffer = Device::Buffer;
using Program = Device::Program;
using Executable = Device::Executable;
using Event = Device::Event;

ltc_transfer_args to_device(const Buffer& buffer, const void* from, uint64_t size, uint64_t offset = 0);
ltc_transfer_args from_device(const Buffer& buffer, void* to, uint64_t size, uint64_t offset = 0);

// At its end fails the test where the thread computes floating-point numbers in another way than at its beginning.
class ExpectFloatControl {
 public:
  explicit ExpectFloatControl(const char* slot) : slot_(slot) {}
  ~ExpectFloatControl();
  ExpectFloatControl(const ExpectFloatControl&) = delete;
  ExpectFloatControl& operator=(const ExpectFloatControl&) = delete;

 private:
  const char* slot_;
  const FloatControl before_ = FloatControl::current();
};

template <typename Call>
auto Instance::guarded(const char* slot, Call&& call) {
  const ExpectFloatControl unchanged(slot);
  try {
    return call();
  } catch (const std::exception& e) {
    throw std::runtime_error(
        cat(slot, " let a C++ exception out: ", e.what(), "; the contract: no C++ exception leaves a function"));
  } catch (...) {
    throw std::runtime_error(cat(slot, " let a C++ exception out; the contract: no C++ exception leaves a function"));
  }
}

}  // namespace ltc::conformance
