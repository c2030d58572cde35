// The plugin's entry: what it is called, and how its devices are found.
#include "cuda/platform.h"

namespace ltc::cuda {
namespace {

constexpr device::Plugin kPlugin{
    .name = "cuda",
    .version = "0.1.0",
    .build_id = "cuda 0.1.0",
    .find = [] { return std::unique_ptr<device::Platform>(std::make_unique<Platform>(standard_search_path())); },
    .rounds = true};

}  // namespace
}  // namespace ltc::cuda

bool ltc_plugin_entry(ltc_entry_args* args) { return ltc::device::enter(args, ltc::cuda::kPlugin); }
