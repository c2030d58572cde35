// Helpers of this folder's tests: a device that can be watched and made to misbehave, and values.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "core/compile/lowering/compiler.h"
#include "core/host/library.h"
#include "core/host/testing/test_support.h"
#include "core/ir/text.h"
#include "core/run/device/recorder.h"
#include "core/testing/test_plugins.h"
#include "core/testing/unvalidated.h"

namespace ltc::testing {

using Floats = std::vector<float>;
using host::error_of;
using host::message_of;

// For any number of waiters. A test that fails must still open it: declare it before what waits.
class Gate {
 public:
  void open() {
    std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void close() {
    std::lock_guard lock(mutex_);
    open_ = false;
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

// The calls that the watched plugin saw, and the test's hooks. A hook that returns a text makes its slot refuse with
// RESOURCE_EXHAUSTED, one that throws lets the exception out of the plugin. Set hooks while the device is idle.
struct Watch {
  struct Execute {
    uint64_t run_id;
    size_t outputs;
    std::vector<int> donated;
    bool operator==(const Execute&) const = default;
  };

  std::function<const char*()> on_execute, on_transfer, on_compile;
  ltc_code code = LTC_INTERNAL;     // of what the hooks below say
  bool waits_fail = false;          // what on_wait says is no error of the work, which goes on
  std::vector<uint8_t> good;        // outputs of a run whose event on_wait fails
  bool compiles_quickly = false;    // as the device says when it is opened
  uint64_t memory_bytes = 0;        // the same; 0: as the test plugin says
  bool one_call_at_a_time = false;  // as the plugin says when it is entered
  bool completes_runs = false;      // execute of the asynchronous plugin waits and gives no event
  std::function<void()> after_execute;
  std::function<const char*(ltc_event* event, uint64_t timeout_ns)> on_wait;  // of the asynchronous plugin, in any thread

  std::vector<Execute> executes() {
    std::lock_guard lock(mutex);
    return seen;
  }
  std::vector<int> last_donated() { return executes().empty() ? std::vector<int>{} : executes().back().donated; }

  std::mutex mutex;
  std::vector<Execute> seen;
  std::vector<uint32_t> efforts;  // of its compiles
};

// The watched plugin of the running test; a plugin's slots cannot carry it.
inline Watch* g_watch = nullptr;

// The table of a test plugin with the watch in between.
template <bool is_async>
struct WatchedPlugin {
  static inline ltc_plugin_api inner;
  static inline const ltc_host_api* host;

  static ltc_status* refusal(const std::function<const char*()>& hook) {
    const char* why = hook ? hook() : nullptr;
    return why ? host->status_create(host->host, g_watch->code, LTC_NONE, why, std::string_view(why).size()) : nullptr;
  }

  static ltc_status* execute(ltc_device* device, const ltc_execute_args* args, ltc_buffer** outputs, ltc_event** done) {
    {
      std::lock_guard lock(g_watch->mutex);
      g_watch->seen.push_back({args->run_id, args->output_count, {args->donate, args->donate + args->input_count}});
    }
    if (ltc_status* refused = refusal(g_watch->on_execute)) return refused;
    ltc_status* status = inner.execute(device, args, outputs, done);
    if (g_watch->completes_runs && *done) {
      bool finished = false;
      EXPECT_EQ(inner.event_wait(*done, LTC_FOREVER, &finished), nullptr);
      inner.event_destroy(std::exchange(*done, nullptr));
    }
    if (g_watch->after_execute) {
      try {
        g_watch->after_execute();
      } catch (...) {
        for (size_t i = 0; i < args->output_count; ++i) inner.buffer_destroy(outputs[i]);
        throw;
      }
    }
    return status;
  }

  static ltc_status* create_buffer(ltc_device* device, const ltc_buffer_args* args, ltc_buffer** buffer) {
    EXPECT_NE(args->type->sizes, nullptr);
    return inner.buffer_create(device, args, buffer);
  }

  static ltc_status* transfer(ltc_device* device, const ltc_transfer_args* args, ltc_event** done) {
    ltc_status* refused = refusal(g_watch->on_transfer);
    return refused ? refused : inner.transfer(device, args, done);
  }

  static ltc_status* event_wait(ltc_event* event, uint64_t timeout_ns, bool* finished) {
    ltc_status* refused = refusal([&] { return g_watch->on_wait ? g_watch->on_wait(event, timeout_ns) : nullptr; });
    if (!refused) return inner.event_wait(event, timeout_ns, finished);
    *finished = !g_watch->waits_fail;
    return refused;
  }

  static ltc_status* event_good_outputs(ltc_event*, size_t output_count, uint8_t* good) {
    for (size_t i = 0; i < std::min(output_count, g_watch->good.size()); ++i) good[i] = g_watch->good[i];
    return nullptr;
  }

  static ltc_status* compile(ltc_device* device, const ltc_compile_args* args, ltc_executable** executable) {
    {
      std::lock_guard lock(g_watch->mutex);
      g_watch->efforts.push_back(args->effort);
    }
    ltc_status* refused = refusal(g_watch->on_compile);
    return refused ? refused : inner.compile(device, args, executable);
  }

  static ltc_status* device_open(ltc_plugin* plugin, const ltc_device_args* args, ltc_device_info* info, ltc_device** device) {
    ltc_status* status = inner.device_open(plugin, args, info, device);
    if (!status && g_watch->compiles_quickly) info->flags |= LTC_DEVICE_QUICK_COMPILE;
    if (!status && g_watch->memory_bytes != 0) info->memory_bytes = g_watch->memory_bytes;
    return status;
  }

  static ltc_status* describe(ltc_plugin* plugin, ltc_plugin_info* info) {
    ltc_status* status = inner.describe(plugin, info);
    if (!status && g_watch->one_call_at_a_time) info->flags |= LTC_PLUGIN_ONE_CALL_AT_A_TIME;
    return status;
  }

  static bool enter(ltc_entry_args* args) {
    static host::Library library = [] {
      host::Library opened = host::Library::open(plugin_path(is_async ? "test_async" : "test"));
      opened.keep();
      return opened;
    }();
    if (!reinterpret_cast<ltc_plugin_entry_fn*>(library.find("ltc_plugin_entry"))(args)) return false;
    static ltc_plugin_api table;
    inner = table = *args->api;
    host = args->host;
    table.describe = describe;
    table.device_open = device_open;
    table.buffer_create = create_buffer;
    table.execute = execute;
    table.transfer = transfer;
    table.compile = compile;
    if (is_async) table.event_wait = event_wait, table.event_good_outputs = event_good_outputs;
    table.struct_size = LTC_SIZE_TO(ltc_plugin_api, event_good_outputs);
    args->api = &table;
    return true;
  }
};

// "watched", "watched_async", or a test plugin.
inline std::unique_ptr<host::PluginDevice> open_device(const std::string& name) {
  if (name == "watched") return host::Plugin::enter(name, WatchedPlugin<false>::enter)->open_device(0);
  if (name == "watched_async") return host::Plugin::enter(name, WatchedPlugin<true>::enter)->open_device(0);
  return load_plugin(name)->open_device(0);
}

inline TypeId f32(std::vector<int64_t> sizes) { return intern_contiguous(DType::kF32, sizes); }

inline HostValue host_value(const Floats& values) {
  HostValue result = allocate_host_value(f32({static_cast<int64_t>(values.size())}));
  std::copy(values.begin(), values.end(), static_cast<float*>(result.data.get()));
  return result;
}

inline Floats floats_of(const HostValue& value) {
  const auto* data = static_cast<const float*>(value.data.get());
  return {data, data + type_of(value.type).element_count};
}

inline Floats download(DeviceQueue& queue, const BufferRef& buffer) {
  Floats values(static_cast<size_t>(type_of(buffer->type).element_count), -12345.f);
  queue.download(buffer, values.data());
  return values;
}

// A host that knows a few ops, on floats: sin is x + 100, so that its results are exact, and mul by a number. aten::cos fails.
inline std::vector<HostValue> fake_host(const Graph& graph, std::span<const HostValue> inputs, std::span<const Scalar> scalars) {
  std::map<ValueId, HostValue> values;
  std::map<ValueId, double> numbers;
  for (const Param& param : graph.params) {
    if (param.scalar) {
      numbers[param.value] = scalars[numbers.size()].f;
    } else {
      values[param.value] = inputs[values.size()];
    }
  }
  for (const Node& node : graph.nodes) {
    const std::string& op = op_name(node.op);
    if (op == "aten::cos") fail(Code::kInvalidArgument, "cos has no value here");
    const Floats x = floats_of(values.at(node.inputs[0]));
    std::vector<Floats> results(node.outputs.size(), x);
    for (size_t i = 0; i < x.size(); ++i) {
      if (op == "aten::sin") results[0][i] = x[i] + 100;
      if (op == "aten::neg") results[0][i] = -x[i];
      if (op == "aten::mul.Tensor") results[0][i] = x[i] * static_cast<float>(numbers.at(node.inputs[1]));
      if (op == "aten::add.Tensor") results[0][i] = x[i] + floats_of(values.at(node.inputs[1]))[i];
      if (op == "test::split") results[0][i] = x[i] / 2, results[1][i] = x[i] / 4;
    }
    for (size_t i = 0; i < results.size(); ++i) {
      if (node.outputs[i] != kNone) values[node.outputs[i]] = host_value(results[i]);
    }
  }
  std::vector<HostValue> outputs;
  for (const ValueId output : graph.outputs) outputs.push_back(values.at(output));
  return outputs;
}

// Every test has a watch of its own and the fake host, starts with all counters at zero, and leaves no status object behind.
class RunTest : public ::testing::Test {
 protected:
  RunTest() {
    g_watch = &watch;
    set_host_runner(fake_host);
    metrics::reset();
  }
  ~RunTest() override {
    set_host_runner(nullptr);
    set_runs_here(nullptr);
    EXPECT_EQ(host::live_statuses(), 0u);
  }

  Watch watch;
};

// A device, and what a program does with it over and over.
class LazyTest : public RunTest {
 protected:
  // Once per test, before anything else.
  void open(const std::string& plugin) { device_ = std::make_unique<LazyDevice>(0, open_device(plugin)); }
  LazyDevice& device() { return *device_; }

  void fill(LazyStorage& storage, const Floats& values) {
    BufferRef buffer = device().queue().upload(host_value(values));
    const TypeId type = buffer->type;
    Recorder(device()).bind(storage, std::move(buffer), type);
  }

  // out = op(inputs), all of one shape; `out` may be an input.
  void record(LazyStorage& out, std::string_view op, std::vector<LazyStorage*> inputs) {
    Recorder recorder(device());
    std::vector<ValueId> values;
    for (LazyStorage* input : inputs) values.push_back(recorder.read(*input));
    const TypeId type = recorder.type(*inputs.at(0));
    recorder.bind(out, recorder.node(intern_op(op), type, kNoAttrs, values), type);
  }
  void scale(LazyStorage& x, double factor) {
    Recorder recorder(device());
    const std::vector<ValueId> inputs = {recorder.read(x), recorder.scalar(DType::kF64, {.f = factor})};
    recorder.bind(x, recorder.node(intern_op("aten::mul.Tensor"), recorder.type(x), kNoAttrs, inputs), recorder.type(x));
  }

  // A step of its own: -x + x + 3 * x for a vector of n ones.
  Floats step_of_size(int64_t n) {
    LazyStorage x(device()), y(device());
    fill(x, Floats(static_cast<size_t>(n), 1.f));
    record(y, "aten::neg", {&x});
    record(y, "aten::add.Tensor", {&y, &x});
    scale(x, 3);
    record(y, "aten::add.Tensor", {&y, &x});
    sync();
    return read(y);
  }

  void sync() { device().sync(metrics::kMarkStep); }
  void sync_and_wait() { sync(), device().wait(); }
  Floats read(LazyStorage& storage) { return download(device().queue(), device().computed(storage, metrics::kReadBarrier)); }
  std::string read_error(LazyStorage& storage) {
    return message_of([&] { read(storage); });
  }
  static int64_t compiled() { return metrics::counter_value(metrics::kUncachedCompile); }
  static int64_t found() { return metrics::counter_value(metrics::kCachedCompile); }

 private:
  std::unique_ptr<LazyDevice> device_;
};

// Misses are counted by line in a process: each test has one of its own.
class LocatedTest : public LazyTest {
 protected:
  LocatedTest() {
    g_location = intern_location(::testing::UnitTest::GetInstance()->current_test_info()->name());
    set_locator([] { return g_location; });
  }
  ~LocatedTest() override { set_locator(nullptr); }

 private:
  static inline LocationId g_location;
};

}  // namespace ltc::testing
