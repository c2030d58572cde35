// A small host for tests: what a plugin needs on the other side of the C ABI, and a builder of graphs.
#pragma once
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <deque>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ltc/plugin.h"

struct ltc_status {
  ltc_code code;
  uint32_t node;
  std::string message;
};

namespace ltc::testing {

inline std::atomic<bool> is_awaited{true};  // what the host answers

inline const ltc_host_api& host_api() {
  static const ltc_host_api api = {
      .struct_size = sizeof(ltc_host_api),
      .status_create =
          [](void*, ltc_code code, uint32_t node, const char* text, size_t size) {
            return new ltc_status{code, node, {text, size}};
          },
      .status_code = [](const ltc_status* status) { return status->code; },
      .status_destroy = [](ltc_status* status) { delete status; },
      .log = [](void*, int32_t, const char*, size_t) {},
      .log_enabled = [](void*, int32_t) { return true; },
      .cache_find = [](void*, const ltc_string*, const ltc_sink*) { return false; },
      .cache_insert = [](void*, const ltc_string*, const ltc_string*, const ltc_string*) {},
      .is_awaited = [](void*) { return is_awaited.load(); },
  };
  return api;
}

using Status = std::unique_ptr<ltc_status>;
inline ltc_code code_of(const Status& status) { return status ? status->code : 0; }
inline ltc_string str(const std::string& s) { return {s.data(), s.size()}; }

inline ltc_plugin_entry_fn* entry_point() {
  static void* library = dlopen(LTC_TORCHSCRIPT_PLUGIN, RTLD_NOW | RTLD_LOCAL);
  if (!library) ADD_FAILURE() << dlerror();
  return library ? reinterpret_cast<ltc_plugin_entry_fn*>(dlsym(library, "ltc_plugin_entry")) : nullptr;
}

// An attribute of a node; owns what the C struct points to.
struct Attr {
  Attr(std::string n, ltc_attr_kind k, std::vector<int64_t> v) : name(std::move(n)), kind(k), ints(std::move(v)) {}
  Attr(std::string n, std::vector<int64_t> v) : Attr(std::move(n), LTC_ATTR_INTS, std::move(v)) {}
  Attr(std::string n, int64_t v) : Attr(std::move(n), LTC_ATTR_INT, {v}) {}
  Attr(std::string n, double v) : name(std::move(n)), kind(LTC_ATTR_FLOAT), floats{v} {}
  static Attr dtype(ltc_dtype d) { return {"dtype", LTC_ATTR_DTYPE, {d}}; }

  std::string name;
  ltc_attr_kind kind;
  std::vector<int64_t> ints;
  std::vector<double> floats;
};

// Builds an ltc_graph; values are made by param() and node().
class GraphBuilder {
 public:
  uint32_t value(ltc_dtype dtype, std::vector<int64_t> sizes) {
    sizes_.push_back(std::move(sizes));
    types_.push_back({sizeof(ltc_type), dtype, static_cast<uint32_t>(sizes_.back().size()), sizes_.back().data()});
    return static_cast<uint32_t>(types_.size() - 1);
  }
  uint32_t param(ltc_dtype dtype, std::vector<int64_t> sizes, uint32_t flags = 0, uint32_t alias_output = LTC_NONE) {
    const uint32_t id = value(dtype, std::move(sizes));
    params_.push_back({sizeof(ltc_param), id, flags, alias_output});
    return id;
  }
  uint32_t scalar(ltc_dtype dtype) { return param(dtype, {}, LTC_PARAM_SCALAR); }

  // One result of the given type.
  uint32_t node(std::string name, std::vector<uint32_t> inputs, std::vector<Attr> attrs, ltc_dtype dtype,
                std::vector<int64_t> sizes) {
    const uint32_t id = value(dtype, std::move(sizes));
    node(std::move(name), std::move(inputs), std::move(attrs), std::vector<uint32_t>{id});
    return id;
  }
  void node(std::string name, std::vector<uint32_t> inputs, std::vector<Attr> attrs, std::vector<uint32_t> outputs) {
    Node& n = nodes_.emplace_back();
    n.name = std::move(name);
    n.inputs = std::move(inputs);
    n.outputs = std::move(outputs);
    n.attrs = std::move(attrs);
    for (const Attr& a : n.attrs) {
      ltc_attr& c = n.c_attrs.emplace_back();
      c = {sizeof(ltc_attr), str(a.name), a.kind, a.floats.empty() ? a.ints.size() : a.floats.size(), {}};
      if (a.floats.empty())
        c.value.ints = a.ints.data();
      else
        c.value.floats = a.floats.data();
    }
    for (const ltc_attr& a : n.c_attrs) n.attr_pointers.push_back(&a);
    n.c = {sizeof(ltc_node),
           0,
           str(n.name),
           n.inputs.size(),
           n.inputs.data(),
           n.outputs.size(),
           n.outputs.data(),
           n.attrs.size(),
           n.attr_pointers.data(),
           str(location_)};
  }

  const ltc_graph& finish(std::vector<uint32_t> outputs) {
    outputs_ = std::move(outputs);
    for (const ltc_type& t : types_) type_pointers_.push_back(&t);
    for (const ltc_param& p : params_) param_pointers_.push_back(&p);
    for (const Node& n : nodes_) node_pointers_.push_back(&n.c);
    graph_ = {sizeof(ltc_graph),      nullptr,       types_.size(),         type_pointers_.data(), params_.size(),
              param_pointers_.data(), nodes_.size(), node_pointers_.data(), outputs_.size(),       outputs_.data()};
    return graph_;
  }

 private:
  struct Node {
    std::string name;
    std::vector<uint32_t> inputs, outputs;
    std::vector<Attr> attrs;
    std::deque<ltc_attr> c_attrs;
    std::vector<const ltc_attr*> attr_pointers;
    ltc_node c;
  };
  std::string location_ = "model.py:12";
  std::deque<std::vector<int64_t>> sizes_;
  std::deque<ltc_type> types_;
  std::deque<ltc_param> params_;
  std::deque<Node> nodes_;
  std::vector<const ltc_type*> type_pointers_;
  std::vector<const ltc_param*> param_pointers_;
  std::vector<const ltc_node*> node_pointers_;
  std::vector<uint32_t> outputs_;
  ltc_graph graph_;
};

// The options of each entry; at first what the environment says, as of a host.
inline std::vector<std::pair<std::string, std::string>> g_options = [] {
  const char* const gemm = std::getenv("LTC_TORCHSCRIPT_GEMM");
  return gemm ? decltype(g_options){{"gemm", gemm}} : decltype(g_options){};
}();

// The plugin after its entry.
struct Entered {
  Entered() {
    std::vector<ltc_option> options;
    std::vector<const ltc_option*> pointers;
    for (const auto& [name, value] : g_options)
      options.push_back({sizeof(ltc_option), {name.data(), name.size()}, {value.data(), value.size()}});
    for (const ltc_option& option : options) pointers.push_back(&option);
    args.option_count = pointers.size();
    args.options = pointers.data();
    if (!entry_point()(&args)) throw std::runtime_error(args.reason);
  }
  ltc_entry_args args = {.struct_size = sizeof(args), .host = &host_api(), .oldest = {1, 0}, .newest = {1, 3}};
};

// One open device of the plugin.
class Device {
 public:
  Device() {
    const Entered entered;
    api = entered.args.api;
    plugin = entered.args.plugin;
    const ltc_device_args open = {.struct_size = sizeof(open)};
    info.struct_size = sizeof(info);
    expect_ok(api->device_open(plugin, &open, &info, &device));
  }
  ~Device() {
    api->device_close(device);
    api->plugin_close(plugin);
  }

  static void expect_ok(ltc_status* raw) {
    Status status(raw);
    EXPECT_FALSE(status) << status->message;
  }

  ltc_buffer* buffer(ltc_dtype dtype, std::vector<int64_t> sizes) {
    const ltc_type type = {sizeof(type), dtype, static_cast<uint32_t>(sizes.size()), sizes.data()};
    const ltc_buffer_args args = {sizeof(args), nullptr, &type};
    ltc_buffer* out = nullptr;
    expect_ok(api->buffer_create(device, &args, &out));
    return out;
  }
  template <typename T>
  ltc_buffer* upload(ltc_dtype dtype, std::vector<int64_t> sizes, const std::vector<T>& data) {
    ltc_buffer* out = buffer(dtype, std::move(sizes));
    expect_ok(write(out, 0, data.data(), data.size() * sizeof(T)).release());
    return out;
  }
  // Returns when it is done.
  Status transfer(const ltc_transfer_args& args) {
    ltc_event* done = nullptr;
    Status status(api->transfer(device, &args, &done));
    if (!done) return status;
    bool finished = false;
    status.reset(api->event_wait(done, UINT64_MAX, &finished));
    api->event_destroy(done);
    return status;
  }
  Status write(ltc_buffer* to, uint64_t offset, const void* from, uint64_t size) {
    const ltc_transfer_args args = {.struct_size = sizeof(args),
                                    .direction = LTC_TO_DEVICE,
                                    .buffer = to,
                                    .offset_bytes = offset,
                                    .size_bytes = size,
                                    .from = from};
    return transfer(args);
  }
  Status read(ltc_buffer* from, uint64_t offset, void* to, uint64_t size) {
    const ltc_transfer_args args = {.struct_size = sizeof(args),
                                    .direction = LTC_FROM_DEVICE,
                                    .buffer = from,
                                    .offset_bytes = offset,
                                    .size_bytes = size,
                                    .to = to};
    return transfer(args);
  }
  template <typename T>
  std::vector<T> download(ltc_buffer* from, size_t count) {
    std::vector<T> out(count);
    expect_ok(read(from, 0, out.data(), count * sizeof(T)).release());
    return out;
  }

  std::vector<uint32_t> claims(const ltc_graph& graph) {
    std::vector<uint32_t> cluster(graph.node_count);
    const ltc_claims_args args = {sizeof(args), nullptr, &graph};
    expect_ok(api->claims(device, &args, cluster.data()));
    return cluster;
  }
  // *text receives the printed program.
  ltc_executable* build(const ltc_graph& graph, std::string* text = nullptr, uint32_t effort = 1) {
    const ltc_lower_args lower = {sizeof(lower), nullptr, &graph};
    ltc_program* program = nullptr;
    expect_ok(api->lower(device, &lower, &program));
    if (!program) throw std::runtime_error("not lowered");
    if (text) {
      const ltc_sink sink = {text, [](void* to, const void* data, size_t size) {
                               static_cast<std::string*>(to)->append(static_cast<const char*>(data), size);
                               return true;
                             }};
      expect_ok(api->program_text(program, &sink));
    }
    const ltc_compile_args args = {.struct_size = sizeof(args), .program = program, .effort = effort};
    ltc_executable* out = nullptr;
    expect_ok(api->compile(device, &args, &out));
    api->program_destroy(program);
    return out;
  }
  // The submit's own status; an event's ends up in *event_status.
  Status execute(ltc_executable* executable, const std::vector<ltc_buffer*>& inputs, const std::vector<ltc_scalar>& scalars,
                 std::vector<ltc_buffer*>& outputs, const std::vector<uint8_t>& donate = {}, Status* event_status = nullptr) {
    const ltc_execute_args args = {.struct_size = sizeof(args),
                                   .executable = executable,
                                   .input_count = inputs.size(),
                                   .inputs = inputs.data(),
                                   .donate = donate.empty() ? nullptr : donate.data(),
                                   .scalar_count = scalars.size(),
                                   .scalars = scalars.data(),
                                   .output_count = outputs.size()};
    ltc_event* done = nullptr;
    Status submitted(api->execute(device, &args, outputs.data(), &done));
    if (done) {
      bool finished = false;
      Status status(api->event_wait(done, UINT64_MAX, &finished));
      EXPECT_TRUE(finished);
      if (event_status) *event_status = std::move(status);
      api->event_destroy(done);
    }
    return submitted;
  }

  const ltc_plugin_api* api;
  ltc_plugin* plugin;
  ltc_device_info info{};
  ltc_device* device = nullptr;
};

inline ltc_scalar number(double f) { return {.f = f}; }
inline ltc_scalar integer(int64_t i) { return {.i = i}; }

}  // namespace ltc::testing
