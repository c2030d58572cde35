// The fixture of the loader tier's files.
#pragma once

#include <string>

#include "conformance/kit/fixture.h"
#include "conformance/kit/guarded_struct.h"
#include "core/host/sized.h"
#include "ltc/entry.h"

namespace ltc::conformance {

inline std::string text(ltc_version v) { return cat(v.major, ".", v.minor); }
inline std::string text(ltc_string s) { return s.data ? std::string(s.data, s.size) : std::string(); }

// The entry arguments of a host that speaks a range of versions. `change` is called before the entry.
struct Entry {
  HostProbe host;
  Guarded<ltc_entry_args> args;
  bool accepted = false;

  template <typename Change>
  Entry(ltc_version oldest, ltc_version newest, const host::OptionList& options, Change change) {
    args->option_count = options.size();
    args->options = options.data();
    args->host = host.table();
    args->oldest = oldest;
    args->newest = newest;
    change(args);
    accepted = Instance::guarded("ltc_plugin_entry", [&] { return backend_entry()(args.get()); });
  }
  Entry(ltc_version oldest, ltc_version newest, const host::OptionList& options = backend_options())
      : Entry(oldest, newest, options, [](auto&) {}) {}
  template <typename Change>
  explicit Entry(Change change) : Entry({1, 0}, {1, 0}, backend_options(), change) {}
  ~Entry() {
    if (!accepted || !args->api) return;
    if (const auto close = LTC_GET(args->api, ltc_plugin_api, plugin_close)) close(args->plugin);
  }
};

}  // namespace ltc::conformance
