// The plugin's entry: what it is called, and how its devices are found.
#include "cuda/platform.h"

namespace ltc::cuda {
namespace {

constexpr plugin::OptionRow kOptions[] = {
    {"path", "", "", "folders in which CUDA's libraries are looked for first, separated by ':'"},
    {"without", "", "",
     "mechanisms that are left out, joined by '+': coop_reduce, split_reduce, block_sort, attention, attention_mma, cublas, "
     "cudnn, "
     "epilogues, fp8, nccl"},
    {"with", "", "|activations", "activations: cuBLASLt computes relu and gelu behind a product too"},
};

constexpr device::Plugin kPlugin{.name = "cuda",
                                 .version = "0.1.0",
                                 .build_id = "cuda 0.1.0",
                                 .find = [](const plugin::Options& options) -> std::unique_ptr<device::Platform> {
                                   return std::make_unique<Platform>(standard_search_path(options["path"]),
                                                                     chosen_features(options["without"], options["with"]));
                                 },
                                 .rounds = true,
                                 .has_collectives = true,
                                 .options = kOptions};

}  // namespace
}  // namespace ltc::cuda

bool ltc_plugin_entry(ltc_entry_args* args) { return ltc::device::enter(args, ltc::cuda::kPlugin); }
