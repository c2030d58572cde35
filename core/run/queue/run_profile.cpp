#include "core/run/queue/run_profile.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/base/utf8.h"
#include "core/host/plugin.h"
#include "core/host/sized.h"
#include "core/ir/text.h"

namespace ltc {
namespace {

constexpr size_t kMostEntries = 1u << 16, kLongestText = 1000;

std::string text_of(ltc_string text) {
  if (!text.data) return {};
  return valid_utf8({text.data, std::min(text.size, kLongestText)});
}

}  // namespace

std::unique_ptr<RunProfile> RunProfile::if_wanted(const host::Plugin& plugin, const Run& run, const Step& step) {
  if (!timeline::enabled() || !plugin.understands(LTC_EXTENSION_PROFILE)) return nullptr;
  return timeline::wants_kernels(*run.program, run.id) ? std::make_unique<RunProfile>(run.program, step, run.id) : nullptr;
}

RunProfile::RunProfile(std::shared_ptr<const Program> program, const Step& step, uint64_t run_id)
    : program_(std::move(program)),
      step_(step),
      extension_(host::sized_extension<ltc_run_profile>(LTC_EXTENSION_PROFILE, 1)),
      found_{.run_id = run_id, .step = static_cast<uint32_t>(&step - program_->steps.data())} {
  extension_.profile = this;
  extension_.kernel = add_kernel;
  extension_.scratch = add_scratch;
}

const ltc_extension* RunProfile::chain(const ltc_extension* next) {
  extension_.head.next = next;
  return &extension_.head;
}

void RunProfile::report() {
  std::lock_guard lock(mutex_);
  timeline::add_kernels(*program_, std::exchange(found_, {}));
}

void RunProfile::add_kernel(void* profile, const ltc_kernel_profile* kernel) {
  if (profile && kernel) static_cast<RunProfile*>(profile)->add(*kernel);
}

void RunProfile::add_scratch(void* profile, const ltc_scratch_profile* block) {
  if (profile && block) static_cast<RunProfile*>(profile)->add(*block);
}

uint32_t RunProfile::node_of_program(uint32_t lowered) const {
  return lowered < step_.origin.size() ? step_.nodes[step_.origin[lowered]] : kNone;
}

// Nothing may be thrown into the plugin; a report that finds no memory is short.
void RunProfile::add(const ltc_kernel_profile& kernel) try {
  if (!LTC_HAS(&kernel, ltc_kernel_profile, bytes)) return;
  timeline::Kernel one{.name = text_of(kernel.name), .note = text_of(kernel.note), .step = found_.step, .bytes = kernel.bytes};
  for (size_t i = 0; kernel.nodes && i < std::min(kernel.node_count, kMostEntries); ++i) {
    const uint32_t node = node_of_program(kernel.nodes[i]);
    if (node != kNone) one.nodes.push_back(node);
  }
  std::ranges::sort(one.nodes);
  one.nodes.erase(std::ranges::unique(one.nodes).begin(), one.nodes.end());
  if (kernel.begin_ns != 0 && kernel.end_ns >= kernel.begin_ns) {
    one.begin_ns = kernel.begin_ns;
    one.end_ns = kernel.end_ns;
  }
  std::lock_guard lock(mutex_);
  if (found_.kernels.size() < kMostEntries) found_.kernels.push_back(std::move(one));
} catch (const std::exception&) {
}

void RunProfile::add(const ltc_scratch_profile& block) try {
  if (!LTC_HAS(&block, ltc_scratch_profile, bytes)) return;
  timeline::Scratch one{.label = "work memory",
                        .step = found_.step,
                        .offset = block.offset,
                        .bytes = block.bytes,
                        .first = block.first_kernel,
                        .last = block.last_kernel};
  const uint32_t node = node_of_program(block.node);
  if (node != kNone && block.output < program_->graph.nodes[node].outputs.size()) {
    const ValueId value = program_->graph.nodes[node].outputs[block.output];
    if (value != kNone) one.label = cat('%', value, ": ", type_text(program_->graph.types[value]));
  }
  std::lock_guard lock(mutex_);
  if (found_.scratch.size() < kMostEntries) found_.scratch.push_back(std::move(one));
} catch (const std::exception&) {
}

}  // namespace ltc
