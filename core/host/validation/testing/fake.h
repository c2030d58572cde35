// A plugin of functions that do nothing, and a host that calls it through the layer. Handles are numbers.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/host/host_api.h"
#include "core/host/sized.h"
#include "core/host/validation/validation.h"
#include "core/testing/c_graph.h"

namespace ltc::host::validation {

template <typename Handle>
Handle* fresh() {
  static uintptr_t last = 0;
  return reinterpret_cast<Handle*>(++last);
}

// The slots of a plugin that keeps the contract.
ltc_plugin_api correct_slots();

// A case replaces slots, then calls those of the layer, and breaks one clause.
struct Fake {
  ltc_plugin_api api = correct_slots();
  ltc_version agreed{1, 0};
  HostApi host{"fake", nullptr};
  Layer layer = Layer::checking("fake", host.table());
  const ltc_plugin_api* slots = nullptr;  // the layer's, after enter()
  ltc_plugin* plugin = nullptr;

  static inline const ltc_host_api* offered = nullptr;  // by the layer, to the plugin
  // A status of the plugin's.
  static ltc_status* error(ltc_code code = LTC_INTERNAL, uint32_t node = LTC_NONE) {
    return offered->status_create(offered->host, code, node, "no", 2);
  }

  Fake() { offered = layer.host(); }
  void without_events() { api.event_wait = nullptr, api.event_destroy = nullptr, api.event_good_outputs = nullptr; }
  void enter();
  // The host's reading of an answer: whether it is a success.
  bool took(ltc_status* status);

  ltc_device* open();  // enters first where it is not done
  ltc_status* describe(ltc_plugin_info info = sized<ltc_plugin_info>()) { return slots->describe(plugin, &info); }
  ltc_buffer* buffer(ltc_device* device, std::vector<int64_t> sizes = {3}, ltc_dtype dtype = LTC_F32);
  bool transfer(ltc_device* device, const ltc_transfer_args& args, ltc_event** done);
  ltc_event* upload(ltc_device* device, ltc_buffer* buffer);
  ltc_program* lower(ltc_device* device, const ltc_graph& graph, const ltc_extension* ext = nullptr);
  ltc_executable* compile(ltc_device* device, const ltc_graph& graph, const ltc_extension* ext = nullptr);
  bool claim(ltc_device* device, const ltc_graph& graph);
};

// An upload of three floats.
ltc_transfer_args upload_of(ltc_buffer* buffer);

// relu(x * s), x of three floats and donatable, s a number.
testing::CGraph scaled();

// The run of that graph.
struct FakeRun {
  Fake& fake;
  ltc_device* device;
  ltc_buffer* input;
  ltc_scalar scalar{.f = 1};
  ltc_buffer* output = nullptr;
  ltc_event* done = nullptr;
  ltc_execute_args args = sized<ltc_execute_args>();

  explicit FakeRun(Fake& fake);
  FakeRun(const FakeRun&) = delete;
  bool submit() { return fake.took(fake.slots->execute(device, &args, &output, &done)); }
  bool wait(uint64_t timeout_ns = LTC_FOREVER);  // whether it is over
};

struct Case {
  std::string id;
  void (*breaks)(Fake&);
};
std::vector<Case> call_cases();
std::vector<Case> graph_cases();
std::vector<Case> run_cases();
std::vector<Case> host_cases();

}  // namespace ltc::host::validation
