// An archive's functions, compiled for a device of a plugin, and sessions that run them.
//
// Threads: a Model's members from any thread; a Session's from one at a time. Sessions of one instance take turns on its device.
// Errors: thrown as Error; each says which function, and a bad argument with the values that were given and expected.
#pragma once

#include <atomic>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/compile/lowering/program.h"
#include "core/compile/lowering/symbolic_programs.h"
#include "core/compile/lowering/target.h"
#include "core/deploy/archive.h"
#include "core/run/queue/executor.h"

namespace ltc::deploy {

// A tensor of the caller's: contiguous, row-major.
struct TensorView {
  DType dtype = DType::kNone;
  std::span<const int64_t> sizes;
  void* data = nullptr;
  size_t size_bytes = 0;
};
TensorView view_of(TypeId type, const void* data);
std::string text_of(const TensorView& view);  // "f32[2,3]"

// Sets `sizes` to the dimensions of a function in a call with these inputs. Throws INVALID_ARGUMENT with both values where a size
// is out of its range or two differ, and for another rank.
void take_sizes_of_call(const FunctionManifest& function, std::span<const TensorView> inputs, Sizes& sizes);
// The types of the results of such a call.
std::vector<TypeId> results_of_call(const FunctionManifest& function, std::span<const TensorView> inputs);

// A device with what runs work on it, one call at a time.
class Device : public DeviceMemory {
 public:
  explicit Device(std::unique_ptr<host::PluginDevice> device);
  ~Device() { executor.finish(); }

  // With `mutex` held; throw. The first fills a buffer that has no memory.
  void upload(Buffer& buffer, std::shared_ptr<const void> data);
  BufferRef upload(TypeId type, std::shared_ptr<const void> data);

  std::mutex mutex;  // held for each use of what follows
  DeviceExecutor executor;
  // Programs of functions with dimensions; null for a plugin that does not understand ltc/symbolic.h.
  std::shared_ptr<SymbolicPrograms> symbolic;

 private:
  static constexpr size_t kPendingRuns = 2;
};

// A function as it is run, for the sizes of a call.
struct LoadedFunction {
  Sizes sizes;                                   // of its dimensions
  std::shared_ptr<const Program> program;        // null if there is nothing to compute
  std::vector<bool> gives_up;                    // by state: whether a call may use its memory for the new value
  std::vector<TypeId> inputs, results, outputs;  // `outputs` are those of the graph
};

// The functions on a device that was opened for them.
struct Instance {
  explicit Instance(std::unique_ptr<host::PluginDevice> opened) : device(std::move(opened)) {}

  Device device;
  // By function: for the sizes in the archive, then for others, the one that was used last first. Guarded by the device's mutex.
  std::vector<LoadedFunction> functions;
  std::vector<std::list<LoadedFunction>> of_sizes;
  std::vector<BufferRef> state, constants;  // as the archive has them
  uint32_t generation = 0;                  // of the device, when all this was made for it
};

struct ModelOptions {
  std::string backend;               // one entry as in LTC_BACKEND; empty: what that says, else the default
  std::vector<std::string> folders;  // of plugins, in the order in which they are searched
  // Executables of the archive, which are code, are taken where they fit; else each function is compiled.
  bool runs_executables = false;
  Graphs graphs = Graphs::kChecked;
  uint32_t instances = 1;  // over which sessions are spread: calls on different ones run at once
};

class Model {
 public:
  // Refuses a function of which the plugin does not run every op: there is nothing else here that could.
  static std::shared_ptr<Model> load(const std::string& path, const ModelOptions& options);
  ~Model();

  const Archive& archive() const { return *archive_; }
  const std::vector<Function>& functions() const { return archive_->functions(); }
  // How many functions of the first instance were not compiled here: the archive had them.
  size_t taken_executables() const { return taken_executables_; }
  // A text of all that executables of this device depend on: builds of host and plugin, the device, settings.
  std::string target() const { return target_; }
  // The bytes of a function's entry of executables; empty where there is nothing to compute.
  std::string save(size_t function);
  std::string plugin_name() { return instances_.front()->device.device().plugin().name(); }

 private:
  friend class Session;
  Model(std::shared_ptr<const Archive> archive, const ModelOptions& options);
  std::unique_ptr<Instance> make_instance(std::unique_ptr<host::PluginDevice> device);
  // Makes all that is of the device's opening. With its mutex held, as the next.
  void fill(Instance& instance);
  // Opens a device that was lost again. The archive's values are on it again, in the same buffers. Throws what the opening or the
  // compiling throws: then the next call tries again.
  void reopen_if_lost(Instance& instance);
  std::shared_ptr<const Program> take_executable(const Function& function, Device& device);
  LoadedFunction compile(const Function& function, Sizes sizes, Device& device);
  // The function for these sizes, compiled here where it was not before. With the device's mutex held, as long as it is used.
  const LoadedFunction& loaded(Instance& instance, size_t function, const Sizes& sizes);
  void upload(const std::vector<NamedTensor>& values, Device& device, std::vector<BufferRef>& buffers);
  Instance& next_instance() { return *instances_[next_instance_++ % instances_.size()]; }

  const std::shared_ptr<const Archive> archive_;
  const bool runs_executables_;
  std::vector<std::unique_ptr<Instance>> instances_;
  std::string target_;
  std::atomic<size_t> next_instance_{0};
  size_t taken_executables_ = 0;
};

// A state of its own, which begins as the archive says.
class Session {
 public:
  explicit Session(std::shared_ptr<Model> model);

  const Model& model() const { return *model_; }

  // Runs a function; returns when its results are in their memory. `results` has a view per result, whose data may be null where
  // the caller does not want it. A call that fails changes no state, but for a value that the plugin had taken over already, or
  // that lived on a device that was lost: each later use fails, with its name, until it is set again. Allocates nothing where
  // the device is synchronous and calls of these sizes were made before.
  void run(size_t function, std::span<const TensorView> inputs, std::span<const TensorView> results);

  void get_state(size_t state, const TensorView& to);
  void set_state(size_t state, const TensorView& from);
  void reset();  // to what the archive has

  // All of the state as a safetensors file; a generator is a tensor of two numbers, seed and offset.
  void save(const std::string& path);
  void load(const std::string& path);  // sets all of it, or throws and changes nothing

 private:
  // The lists of one call, kept for their memory.
  struct Call {
    Sizes sizes;
    std::vector<Generator> generators, drawn_at;  // as the call leaves them; by draw, where it begins
    std::vector<BufferRef> given, updated;
    Run run;
    void clear();
  };
  std::unique_lock<std::mutex> take_turn();
  void compute(const Function& function, const LoadedFunction& loaded, std::span<const TensorView> inputs,
               std::span<const TensorView> results);
  void take_inputs(const Function& function, const LoadedFunction& loaded);
  void take_scalars(const Function& function);
  BufferRef value_of(const ValueSource& source, std::span<const BufferRef> given, std::span<const BufferRef> outputs) const;
  std::string put_back(const Function& function);
  const BufferRef& held(size_t state) const;
  void copy_out(const BufferRef& buffer, void* to);

  const std::shared_ptr<Model> model_;
  Instance& instance_;
  std::vector<BufferRef> state_;  // null: lost
  std::vector<Generator> generators_;
  Call call_;
};

}  // namespace ltc::deploy
