// The C table of a plugin as C++ objects. The one place where the host calls a plugin.
//
// Every method does three things that no call site has to think of: it applies the default of an optional slot, it turns an
// ltc_status into an ltc::Error, and it checks what came back. An exception that a plugin lets out of a slot becomes
// Error(kInternal); nothing a plugin returns is trusted to be non-null, or to be given once only. Messages begin with
// "[<plugin name>] ". How the calling thread computes floating-point numbers stays as it was (base/float_control.h); only a query
// of an event is too short for that.
//
// Handles (ltc_buffer*, ltc_event*, ...) are the plugin's. Their receiver owns them and gives each to the destroy_ method of
// the device it came from, before that device goes. Null is a legal argument of every destroy_ method.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/asymmetric_mutex.h"
#include "core/base/float_control.h"
#include "core/base/pointer_set.h"
#include "core/base/spin_lock.h"
#include "core/host/option_list.h"
#include "core/host/status.h"
#include "ltc/collective.h"
#include "ltc/plugin.h"
#include "ltc/symbolic.h"

namespace ltc::host {

inline constexpr uint64_t kForever = LTC_FOREVER;  // a timeout

// PyTorch numbers and counts the devices of a kind in 8 bits with sign.
inline constexpr uint32_t kMostDevices = INT8_MAX;

// A plugin's description of itself (ltc_plugin_info), copied.
struct PluginInfo {
  std::string name, version, build_id;
  std::string why_no_device;  // for device_count 0
  uint32_t device_count = 0;
  uint32_t sanitizers = 0;  // LTC_SANITIZER_* bits
  uint32_t flags = 0;       // LTC_PLUGIN_* bits
  std::string licence;
  struct Option {
    std::string name, default_value, about;
  };
  std::vector<Option> options;  // that it takes
};

// A device's description of itself (ltc_device_info), copied.
struct DeviceInfo {
  std::string name;
  std::string fingerprint;    // part of the disk cache's key
  uint64_t dtypes = 0;        // bit per ltc_dtype
  uint64_t memory_bytes = 0;  // 0: unknown
  uint64_t flags = 0;         // LTC_DEVICE_* bits
};

struct MemoryStats {
  std::optional<uint64_t> in_use_bytes, peak_bytes, limit_bytes, largest_free_bytes;  // empty: unknown
};

// As LTC_BACKEND calls it: "opencl" for /a/libltc_opencl.so, "mine" for /a/mine.so.
std::string plugin_name(const std::string& path);

class HostApi;
class Library;
class PluginDevice;

// One instance of a plugin: what one call of its ltc_plugin_entry gave.
//
// Lifetime: shared by its devices; plugin_close runs after the last device_close. The library itself is never unloaded.
// Threads: all members from any thread.
class Plugin : public std::enable_shared_from_this<Plugin> {
 public:
  // Opens the library at `path` and enters it. Two loads of one path give two instances.
  // Errors: NOT_FOUND for a file that cannot be opened or has no entry point, UNSUPPORTED for a version that does not fit,
  // INTERNAL for a table that breaks the contract; each names the path.
  // `options`: settings of the instance. The plugin refuses those that it does not know.
  static std::shared_ptr<Plugin> load(const std::string& path, const Options& options = {});

  // Enters a plugin that is linked into this process; `name` as LTC_BACKEND would call it.
  static std::shared_ptr<Plugin> enter(const std::string& name, ltc_plugin_entry_fn* entry, const Options& options = {});

  ~Plugin();
  Plugin(const Plugin&) = delete;
  Plugin& operator=(const Plugin&) = delete;

  const std::string& name() const { return name_; }         // as LTC_BACKEND calls it: "opencl" for libltc_opencl.so
  const std::string& path() const { return path_; }         // empty for one that was linked in
  const ltc_plugin_api& slots() const { return api_; }      // as they are called: the plugin's, or with LTC_VALIDATE the layer's
  ltc_version version() const { return agreed_; }           // of the ABI
  bool can_compute() const { return api_.execute; }         // else the host computes and the device holds memory
  bool is_asynchronous() const { return api_.event_wait; }  // else every event is null
  bool takes_one_call_at_a_time() const { return one_call_at_a_time_; }
  bool understands(uint32_t extension) const;  // whether it lists that kind, in a version that this host knows
  bool has_collectives() const { return collectives_.group_create; }

  // Asks each time: devices may come and go between calls. Errors: UNSUPPORTED for more than kMostDevices; the plugin's own.
  PluginInfo describe() const;

  // `ordinal` counts this plugin's devices from 0. Errors: INVALID_ARGUMENT where there is no such device, INTERNAL for one that
  // has no dtype; the plugin's own.
  std::unique_ptr<PluginDevice> open_device(uint32_t ordinal);

 private:
  friend class PluginDevice;
  friend class Waiting;
  Plugin(const std::string& name, std::string path);
  Library open_library() const;
  void negotiate(ltc_plugin_entry_fn* entry, const Options& options);
  // For LTC_PLUGIN_ONE_CALL_AT_A_TIME: held for as long as a slot runs.
  std::unique_lock<std::mutex> take_turn() const {
    return one_call_at_a_time_ ? std::unique_lock(turn_) : std::unique_lock<std::mutex>();
  }
  // Calls of slots, in call.h: of one that returns a status, and of one that cannot fail. Keep: what of the thread is kept.
  template <typename Keep = KeepFloatControl, typename Call>
  void ask(const char* slot, Call&& call) const;
  template <typename Call>
  void tell(const char* slot, Call&& call) const noexcept;
  void copy_table(const ltc_plugin_api* table);
  void read_extensions();
  void read_collectives(const ltc_extension* ext);
  void check_table() const;
  void check_describe();
  [[noreturn]] void refuse(Code code, const std::string& why) const;

  HostApi& host_;
  const std::string& name_;  // host_'s: it stays
  const std::string path_;
  ltc_version agreed_{};
  ltc_plugin_api api_{};              // a copy: slots past the plugin's struct_size read as null
  ltc_collectives collectives_{};     // a copy; all null where the plugin has none
  std::vector<uint32_t> extensions_;  // the kinds of its list, copied: a list that changes later is not walked
  bool one_call_at_a_time_ = false;
  mutable std::mutex turn_;
  ltc_plugin* instance_ = nullptr;
};

// An open device. One in-order queue: what is submitted first runs first, and the destroy_ methods take effect in that order.
//
// Lifetime: every handle that came from it dies first. The destructor drains the queue.
// Loss: an answer of DEVICE_LOST makes the device lost until reopen(). Handles belong to the opening that made them, which
//   generation() counts; methods that make one tell which, if asked. With those of an earlier opening nothing can be done: their
//   destroy_ methods do nothing, since reopen() has ended them, and the others throw DEVICE_LOST.
// Threads: transfer and execute are for the caller to serialise; all other members from any thread.
class PluginDevice {
 public:
  ~PluginDevice();
  PluginDevice(const PluginDevice&) = delete;
  PluginDevice& operator=(const PluginDevice&) = delete;

  bool is_lost() const { return lost_; }
  uint32_t generation() const { return generation_; }  // 1 for the first opening
  std::string loss() const;                            // what the plugin said of the last loss
  // Closes a lost device and opens its ordinal again. Ends all that came from it; of buffers those that `take_buffers` gives,
  // which are to be all. Waits for calls of other threads. Throws what the opening throws: then the device is still lost.
  using TakeBuffers = std::function<std::vector<ltc_buffer*>()>;
  void reopen(const TakeBuffers& take_buffers);

  const Plugin& plugin() const { return *plugin_; }
  const DeviceInfo& info() const { return info_; }
  bool can_compute() const { return plugin_->can_compute(); }
  bool supports(ltc_dtype dtype) const { return dtype < 64 && (info_.dtypes >> dtype & 1); }

  // memory

  // Throws UNSUPPORTED for a dtype that the device does not list, RESOURCE_EXHAUSTED where there is no memory: drain and ask
  // again.
  ltc_buffer* create_buffer(const ltc_type& type);
  void destroy_buffer(ltc_buffer* buffer) noexcept;
  // While one lives, the device is not opened again: for who takes a buffer out of the list that reopen() is given.
  using Open = AsymmetricReader;
  [[nodiscard]] Open keep_open() const { return Open(life_); }
  void destroy_buffer(const Open&, ltc_buffer* buffer) noexcept;

  // Submits a copy. The event is null when the copy is already done; else the caller destroys it.
  [[nodiscard]] ltc_event* transfer(const ltc_transfer_args& args);

  // computing; the methods of a plugin that cannot compute throw UNSUPPORTED, but for claims

  // Per node of `graph`: 0 not claimed, 1 claimed alone, k >= 2 claimed with all others of k or not at all. All 0 from a plugin
  // that cannot compute.
  std::vector<uint32_t> claims(const ltc_graph& graph);

  // Borrows `graph` for the call; `precision`: LTC_PRODUCTS_IN_TF32 and its kind, for a plugin that asks; `sizes`: what is
  // symbolic in it, for a plugin that understands that. Throws UnsupportedNode for a node that the plugin cannot lower after all.
  ltc_program* lower(const ltc_graph& graph, uint32_t precision = 0, const ltc_symbolic_sizes* sizes = nullptr,
                     uint32_t* generation = nullptr);
  void destroy_program(ltc_program* program, uint32_t generation) noexcept;

  // For people; empty where the plugin has no text: print the graph instead.
  std::optional<std::string> program_text(const ltc_program* program);

  // effort: 0 quick .. 3 most. The program may be destroyed before the executable.
  ltc_executable* compile(const ltc_program* program, uint32_t effort, uint32_t* generation = nullptr);
  void destroy_executable(ltc_executable* executable, uint32_t generation) noexcept;

  // Submits a run. `outputs` has room for args.output_count handles, all non-null on return and owned by the caller, also where
  // the event turns out to carry an error. Donated inputs are gone. The event is null when the run is complete.
  // When this throws because the plugin refused, nothing was submitted and no input was consumed. When it throws because the
  // plugin's answer breaks the contract (BrokenContract: an output is null, is there twice or is an input, it threw), outputs are
  // null and donated inputs must be taken as consumed.
  [[nodiscard]] ltc_event* execute(const ltc_execute_args& args, ltc_buffer** outputs);

  // The executable's serialised form; empty where the plugin cannot save it, or where it is too large to be kept.
  std::optional<std::string> save_executable(const ltc_executable* executable);

  // Null where the plugin refuses the bytes: compile again. Throws for a lost device only.
  ltc_executable* load_executable(const void* data, size_t size, uint32_t* generation = nullptr);

  // events

  // Whether the work finished within the time; throws the error of the work. Null is finished. The event stays the caller's, and
  // each further wait says the same. Throws WaitFailed where the wait itself failed: then the work may go on, and its memory must
  // stay. Any thread, several at once.
  bool wait(ltc_event* event, uint64_t timeout_ns, uint32_t generation);
  void destroy_event(ltc_event* event, uint32_t generation) noexcept;
  // The same of an event of this opening.
  bool wait(ltc_event* event, uint64_t timeout_ns = kForever) { return wait(event, timeout_ns, generation_); }
  void destroy_event(ltc_event* event) noexcept { destroy_event(event, generation_); }
  void destroy_program(ltc_program* program) noexcept { destroy_program(program, generation_); }
  void destroy_executable(ltc_executable* executable) noexcept { destroy_executable(executable, generation_); }

  // Says which outputs of a run are good although a wait gave its error; none where the plugin does not say.
  std::vector<uint8_t> good_outputs(ltc_event* event, size_t output_count, uint32_t generation);

  // All empty where the plugin does not say.
  MemoryStats memory_stats();

  // groups, of a plugin that has collectives

  // Joins a group of processes: blocks until all ranks have. Throws the plugin's errors.
  ltc_group* create_group(const ltc_group_args& args, uint32_t* generation = nullptr);
  void abort_group(ltc_group* group, uint32_t generation) noexcept;
  void destroy_group(ltc_group* group, uint32_t generation) noexcept;

 private:
  friend class Plugin;
  PluginDevice(std::shared_ptr<Plugin> plugin, uint32_t ordinal);
  void open();
  // Calls of slots: none runs while the device is opened again.
  template <typename Call>
  void ask(const char* slot, Call&& call);
  // The same for a handle of that opening.
  template <typename Keep = KeepFloatControl, typename Call>
  void ask(uint32_t generation, const char* slot, Call&& call);
  template <typename Keep>
  bool ask_event(ltc_event* event, uint64_t timeout_ns, uint32_t generation);
  // Takes in a handle of the present opening, which stays open meanwhile.
  template <typename Handle>
  void remember(const Open&, PointerSet<Handle>& handles, Handle* handle, uint32_t* generation) {
    if (generation) *generation = generation_;
    std::lock_guard lock(handles_lock_);
    handles.insert(handle);
  }
  template <typename Handle>
  bool forget(PointerSet<Handle>& handles, Handle* handle) noexcept {
    std::lock_guard lock(handles_lock_);
    return handles.erase(handle);
  }
  template <typename Handle>
  void require_known(const PointerSet<Handle>& handles, const Handle* handle, const char* slot) const;
  void require_current(uint32_t generation, const char* slot) const {
    if (generation != generation_ || !device_) [[unlikely]]
      refuse_lost(slot);
  }
  [[noreturn]] void refuse_lost(const char* slot) const;
  const std::string& name() const { return plugin_->name_; }
  const ltc_plugin_api& api() const { return plugin_->api_; }
  const ltc_collectives& collectives() const { return plugin_->collectives_; }
  void require_computing(const char* slot) const {
    if (!can_compute()) [[unlikely]]
      refuse_computing(slot);
  }
  [[noreturn]] void refuse_computing(const char* slot) const;
  void require_handle(const char* slot, const void* handle) const;
  void require_events(const char* slot, ltc_event* event) const {
    if (event && !plugin_->is_asynchronous()) [[unlikely]]
      refuse_event(slot);
  }
  [[noreturn]] void refuse_event(const char* slot) const;
  ltc_event* take_event(const char* slot, ltc_event* event);
  void check_outputs(const ltc_execute_args& args, ltc_buffer* const* outputs);
  void drop_outputs(const ltc_execute_args& args, ltc_buffer** outputs) noexcept;

  const std::shared_ptr<Plugin> plugin_;
  const uint32_t ordinal_;
  ltc_device* device_ = nullptr;  // null: closed, and not opened again
  DeviceInfo info_;
  std::atomic<uint32_t> generation_{1};
  std::atomic<bool> lost_{false};
  mutable AsymmetricMutex life_;   // held by who opens or closes the device; shared by each call
  mutable SpinLock handles_lock_;  // guards what follows
  std::string loss_;
  PointerSet<ltc_event> events_;  // that were handed out and not destroyed, as the next two
  PointerSet<ltc_program> programs_;
  PointerSet<ltc_executable> executables_;
  PointerSet<ltc_group> groups_;
  PointerSet<ltc_buffer> seen_;  // by check_outputs
};

// While one lives, the plugin can see that a thread of the program waits for it (ltc_host_api::is_awaited).
class Waiting {
 public:
  explicit Waiting(const PluginDevice& device);
  ~Waiting();
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

 private:
  const std::shared_ptr<const Plugin> plugin_;
};

}  // namespace ltc::host
