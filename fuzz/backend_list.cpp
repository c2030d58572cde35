// The text of LTC_BACKEND. No library is loaded.
#include <algorithm>

#include "core/base/error.h"
#include "core/host/search.h"
#include "fuzz/target.h"

namespace ltc::fuzz {
namespace {

using host::BackendEntry;

// An entry as a user would write it.
std::string text_of(const BackendEntry& entry) {
  std::string text = entry.plugin, devices;
  char separator = ':';
  const auto add = [&](const std::string& name, const std::string& value) {
    text += separator + name + "=" + value;
    separator = ',';
  };
  for (const uint32_t device : entry.devices) devices += (devices.empty() ? "" : "+") + std::to_string(device);
  if (!devices.empty()) add("device", devices);
  for (const auto& [name, value] : entry.options) add(name, value);
  return text;
}

}  // namespace

bool accept(std::string_view input) {
  std::vector<BackendEntry> entries;
  try {
    entries = host::parse_backends(input);
  } catch (const Error&) {
    return false;
  }
  require(!entries.empty(), "there is an entry, or the default");
  for (const BackendEntry& entry : entries) {
    const BackendEntry again = host::parse_entry(text_of(entry));
    require(again.plugin == entry.plugin && again.options == entry.options && again.devices == entry.devices,
            "an entry that is written and parsed again is the same");
    host::with_environment(entry.options, entry.plugin);
  }
  return true;
}

std::vector<std::string> sound_inputs() {
  return {"torchscript", " opencl ; torchscript:kernels=sync,gemm=blas;cuda:device=0+2,with=activations",
          "/a:b/libltc_x.so:path=/usr/lib:/opt,device=NVIDIA", ";", "pjrt:library=/x/y.so"};
}

}  // namespace ltc::fuzz
