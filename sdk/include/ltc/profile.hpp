// Helper in C++20 for plugins that tell of their kernels (ltc/profile.h), header only and optional.
#pragma once
#include <chrono>
#include <cstdint>
#include <span>
#include <string_view>

#include "ltc/entry.h"
#include "ltc/profile.h"

namespace ltc::plugin {

// The host's question about one run. A copy may be kept until the run's event is over.
class Profiler {
 public:
  struct Kernel {
    std::string_view name, note = {};
    std::span<const uint32_t> nodes = {};
    uint64_t begin_ns = 0, end_ns = 0;  // of now_ns()
    uint64_t bytes = 0;
  };

  explicit Profiler(const ltc_execute_args& args) {
    if (const auto* found = ltc_find_extension(args.ext, LTC_EXTENSION_PROFILE))
      host_ = reinterpret_cast<const ltc_run_profile&>(*found);
  }

  // Whether the host has asked; where it has not, the others may not be called.
  explicit operator bool() const { return host_.kernel != nullptr; }

  void tell(const Kernel& kernel) const {
    const ltc_kernel_profile told{.struct_size = LTC_SIZE_TO(ltc_kernel_profile, bytes),
                                  .name = {kernel.name.data(), kernel.name.size()},
                                  .note = {kernel.note.data(), kernel.note.size()},
                                  .node_count = kernel.nodes.size(),
                                  .nodes = kernel.nodes.data(),
                                  .begin_ns = kernel.begin_ns,
                                  .end_ns = kernel.end_ns,
                                  .bytes = kernel.bytes};
    host_.kernel(host_.profile, &told);
  }
  void tell(ltc_scratch_profile block) const {
    block.struct_size = LTC_SIZE_TO(ltc_scratch_profile, bytes);
    host_.scratch(host_.profile, &block);
  }

  // The clock of the times.
  static uint64_t now_ns() {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
  }

 private:
  ltc_run_profile host_{};
};

}  // namespace ltc::plugin
