// A plugin for tests: a device that compiles what the cuda plugin would, for the architecture LTC_CUDA_CAPABILITY (default 90),
// and gives zeros instead of running it. So every kernel of a model or operator goes through NVRTC where there is no GPU, which
// optimises as little as it can: what is in question is whether it takes them. With the option `resources` it optimises as for
// users.
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <mutex>
#include <set>

#include "cuda/blas.h"
#include "cuda/compiler.h"
#include "cuda/lowering.h"
#include "cuda/offline.h"

namespace ltc::cuda {
namespace {

struct Zeros : device::LoadedPlan {
  explicit Zeros(std::shared_ptr<const device::CompiledPlan> compiled) : compiled_plan(std::move(compiled)) {}
  device::EventRef submit(const device::Run& run) override {
    for (size_t i = 0; i < run.outputs.size(); ++i) std::memset(run.outputs[i], 0, compiled_plan->outputs[i].bytes());
    if (run.fault_word) *run.fault_word = 0;
    return over();
  }
  std::vector<std::string> binaries() const override { throw Failure(LTC_UNSUPPORTED, "nothing is kept"); }

  const std::shared_ptr<const device::CompiledPlan> compiled_plan;
};

// Programs side by side in one: NVRTC takes long to start. A macro is the same in each.
std::string joined(const std::vector<device::KernelSource>& sources) {
  std::string text;
  for (size_t i = 0; i < sources.size(); ++i) {
    const auto& [function, source] = sources[i];
    const std::string number = std::to_string(i);
    std::string renamed = source;
    renamed.replace(source.find(function + "("), function.size(), "ltc_kernel_" + number);
    text += "namespace p" + number + " {\n" + renamed + "}\n";
  }
  return text;
}

class Driver : public HostMemoryDriver {
 public:
  Driver(const device::Facts& facts, const Compiler& compiler, int capability, const std::string& resources)
      : facts_(facts), compiler_(compiler), capability_(capability), resources_(resources) {}

  const device::Facts& facts() const override { return facts_; }
  const device::Lowering& lowering() const override { return lowering_; }

  std::unique_ptr<device::LoadedPlan> load_plan(std::shared_ptr<const device::CompiledPlan> compiled_plan,
                                                std::span<const std::string>) override {
    std::vector<device::KernelSource> fresh;
    {
      const std::lock_guard guard(lock_);
      for (const device::KernelSource& source : compiled_plan->sources) {
        if (compiled_.insert(source.text).second) fresh.push_back(source);
      }
    }
    if (!fresh.empty()) compile(fresh);
    for (const device::LibraryWork& work : compiled_plan->library) blas_call(std::get<kernels::Product>(work));
    return std::make_unique<Zeros>(std::move(compiled_plan));
  }

 private:
  void compile(const std::vector<device::KernelSource>& sources) {
    if (resources_.empty()) {
      compiler_.compile(joined(sources), capability_, Compiler::Effort::kLeast);
      return;
    }
    std::string log;
    compiler_.compile(joined(sources), capability_, Compiler::Effort::kFull, &log);
    const std::lock_guard guard(lock_);
    std::ofstream file(resources_, std::ios::app);
    for (size_t i = 0; i < sources.size(); ++i) file << "ltc_kernel_" << i << " is " << sources[i].function << '\n';
    if (!(file << log << std::flush)) throw Failure(LTC_INTERNAL, "cannot write " + resources_);
  }

  const device::Facts& facts_;
  const Compiler& compiler_;
  const int capability_;
  const std::string& resources_;  // a file; empty: none
  const device::Lowering lowering_ = lowering_for(features_of({.cudnn = false}, capability_));
  std::mutex lock_;
  std::set<std::string> compiled_;
};

class Platform : public device::Platform {
 public:
  explicit Platform(const plugin::Options& options)
      : capability_(std::atoi(options["capability"].c_str())),
        resources_(options["resources"]),
        compiler_(standard_search_path(options["path"]), kNewestMajor) {
    facts_.name = "NVRTC for sm_" + std::to_string(capability_);
    facts_.fingerprint = facts_.name;
    facts_.memory_bytes = facts_.largest_buffer_bytes = uint64_t{1} << 40;
  }
  size_t device_count() const override { return 1; }
  const std::string& why_no_device() const override { return why_; }
  std::unique_ptr<device::Driver> open(size_t) override {
    return std::make_unique<Driver>(facts_, compiler_, capability_, resources_);
  }

 private:
  const int capability_;
  const std::string resources_;
  const std::string why_;
  device::Facts facts_;
  const Compiler compiler_;
};

constexpr plugin::OptionRow kOptions[] = {{"path", "", "", "as of the plugin cuda"},
                                          {"capability", "90", "", "of the device that is compiled for: 80 is 8.0"},
                                          {"resources", "", "", "file that the assembler's account of each kernel is added to"}};

constexpr device::Plugin kPlugin{.name = "cuda_compile_only",
                                 .version = "0.1.0",
                                 .build_id = "",
                                 .find = [](const plugin::Options& options) -> std::unique_ptr<device::Platform> {
                                   return std::make_unique<Platform>(options);
                                 },
                                 .rounds = true,
                                 .options = kOptions};

}  // namespace
}  // namespace ltc::cuda

bool ltc_plugin_entry(ltc_entry_args* args) { return ltc::device::enter(args, ltc::cuda::kPlugin); }
