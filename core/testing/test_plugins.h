// Paths of the test plugins. test_plugin.c describes each.
#pragma once

#include <memory>
#include <string>

#include "core/host/plugin.h"

namespace ltc::testing {

// The folder that holds libltc_test.so and its kind: also the folder `plugins` beside the test programs, so names are found too.
inline const std::string kPluginFolder = LTC_TEST_PLUGIN_FOLDER;

// "test", "test_async", ...
inline std::string plugin_path(const std::string& name) { return kPluginFolder + "/libltc_" + name + ".so"; }
inline std::shared_ptr<host::Plugin> load_plugin(const std::string& name) { return host::Plugin::load(plugin_path(name)); }

}  // namespace ltc::testing
