// A plugin's account of the kernels of one run (ltc/profile.h), on its way to the timeline.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

#include "core/compile/lowering/program.h"
#include "core/report/timeline.h"
#include "core/run/queue/run.h"
#include "ltc/profile.h"

namespace ltc {

namespace host {
class Plugin;
}

// Lives until the run is over: the plugin may call from any thread until then.
class RunProfile {
 public:
  // Null where nobody asks for the kernels of this run, or the plugin does not tell.
  static std::unique_ptr<RunProfile> if_wanted(const host::Plugin& plugin, const Run& run, const Step& step);

  // For one step of a run of the program.
  RunProfile(std::shared_ptr<const Program> program, const Step& step, uint64_t run_id);

  // The extension of the execute; `next` comes behind it.
  const ltc_extension* chain(const ltc_extension* next);

  void report();  // once, when the run is over

 private:
  static void LTC_CALL add_kernel(void* profile, const ltc_kernel_profile* kernel);
  static void LTC_CALL add_scratch(void* profile, const ltc_scratch_profile* block);
  void add(const ltc_kernel_profile& kernel);
  void add(const ltc_scratch_profile& block);
  uint32_t node_of_program(uint32_t lowered) const;  // kNone for one that the graph does not have

  const std::shared_ptr<const Program> program_;
  const Step& step_;
  ltc_run_profile extension_;
  std::mutex mutex_;  // a plugin may break the rule of one call at a time
  timeline::RunKernels found_;
};

}  // namespace ltc
