// A layer between the host and a plugin that checks the contract of every call, on both sides: LTC_VALIDATE. It consists of two
// tables that take the place of the plugin's and of the host's. Where it is off there are none, so it costs nothing.
#pragma once

#include <string>

#include "ltc/collective.h"
#include "ltc/plugin.h"

namespace ltc::host::validation {

struct Instance;

// For one instance of a plugin. Before its entry:
//   Layer layer = Layer::of_environment(name, host);
//   args.host = layer.host();
//   if (entry(&args)) layer.install(args);
class Layer {
 public:
  // With LTC_VALIDATE=0 one that does nothing: host() is `host`, and install() leaves the arguments as they are.
  static Layer of_environment(const std::string& plugin, const ltc_host_api* host);
  // One that checks, whatever the environment says.
  static Layer checking(const std::string& plugin, const ltc_host_api* host);

  const ltc_host_api* host() const;

  // After an entry that accepted: checks its answer, and puts the layer's table and instance in the place of the plugin's. Where
  // the host's range is needed, it is that of the call: `oldest` and `newest`.
  void install(ltc_entry_args& args, ltc_version oldest, ltc_version newest) const;

  // The same for its collectives, all null where it has none. After install().
  void install(ltc_collectives& collectives) const;

 private:
  Layer(const ltc_host_api* host, Instance* instance) : host_(host), instance_(instance) {}

  const ltc_host_api* host_;
  Instance* instance_;  // null: off. Never freed, since a plugin may call until the end of the process
};

}  // namespace ltc::host::validation
