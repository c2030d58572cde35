// The loader tier: the core's own loader.
#include "conformance/tiers/loader_fixture.h"
#include "core/host/plugin.h"

namespace ltc::conformance {

TEST(Loader, the_hosts_own_loader_accepts_it) {
  backend_entry();  // the first to load it looks at what that does to the thread
  host::Options options;
  for (size_t i = 0; i < backend_options().size(); ++i) {
    const ltc_option& option = *backend_options().data()[i];
    options.emplace_back(text(option.name), text(option.value));
  }
  const auto plugin = host::Plugin::load(backend_path(), options);
  EXPECT_EQ(plugin->version().major, LTC_ABI_MAJOR);
}

}  // namespace ltc::conformance
