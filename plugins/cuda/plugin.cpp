// The plugin's entry: what it is called, and how its devices are found.
#include "cuda/offline.h"
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
    {"target", "", "", "sm_90, say: compiles for such a device, which need not be here, and runs nothing. For `ltc compile`"},
};

std::unique_ptr<device::Platform> find(const plugin::Options& options) {
  SearchPath path = standard_search_path(options["path"]);
  const Features features = chosen_features(options["without"], options["with"]);
  if (const std::string target = options["target"]; !target.empty())
    return std::make_unique<OfflinePlatform>(target, path, features);
  return std::make_unique<Platform>(std::move(path), features);
}

constexpr device::Plugin kPlugin{.name = "cuda",
                                 .version = "0.1.0",
                                 .build_id = "cuda 0.1.0",
                                 .find = find,
                                 .rounds = true,
                                 .has_collectives = true,
                                 .options = kOptions};

}  // namespace
}  // namespace ltc::cuda

bool ltc_plugin_entry(ltc_entry_args* args) { return ltc::device::enter(args, ltc::cuda::kPlugin); }
