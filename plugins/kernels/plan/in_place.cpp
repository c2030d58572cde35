#include "kernels/plan/in_place.h"

#include <algorithm>

namespace ltc::kernels {
namespace {

const KernelBuffer* find(const std::vector<KernelBuffer>& buffers, ValueId value) {
  const auto found = std::ranges::find(buffers, value, &KernelBuffer::value);
  return found == buffers.end() ? nullptr : &*found;
}

// Whether every element of buffer `from` that the kernel reads is the one that it writes next into buffer `to`. Elements of `to`
// are written once, so no other work item or turn of a loop meets that place.
bool reads_what_it_writes(const Kernel& kernel, uint32_t from, uint32_t to) {
  const auto touches = [&](Code code, uint32_t slot) {
    return std::ranges::count_if(kernel.insts, [&](const Inst& inst) { return inst.code == code && inst.slot == slot; });
  };
  if (touches(Code::kStore, to) != 1 || touches(Code::kLoad, to) != 0) return false;
  auto reads = touches(Code::kLoad, from);
  for (const Block& block : kernel.blocks) {
    const auto is_store = [&](Ref ref) { return kernel.insts[ref].code == Code::kStore && kernel.insts[ref].slot == to; };
    const auto store = std::ranges::find_if(block.insts, is_store);
    if (store == block.insts.end()) continue;
    reads -= std::count_if(block.insts.begin(), store, [&](Ref ref) {
      const Inst& inst = kernel.insts[ref];
      return inst.code == Code::kLoad && inst.slot == from && inst.dtype == inst.of && inst.index == kernel.insts[*store].index;
    });
  }
  return reads == 0;
}

uint32_t slot_of(const Kernel& kernel, ValueId value) {
  return static_cast<uint32_t>(find(kernel.buffers, value) - kernel.buffers.data());
}

bool can_take_over(Plan& plan, ValueId param, ValueId output) {
  const auto writes = [&](const Step& step) {
    const KernelBuffer* buffer = find(step.buffers, output);
    return buffer && buffer->written;
  };
  const auto reads = [&](const Step& step) { return find(step.buffers, param) != nullptr; };
  const auto first = std::ranges::find_if(plan.steps, writes);
  if (first == plan.steps.end() || std::any_of(first + 1, plan.steps.end(), reads)) return false;
  if (!reads(*first)) return true;
  auto* kernel = std::get_if<Kernel>(&first->work);
  if (!kernel) return false;
  const uint32_t from = slot_of(*kernel, param), to = slot_of(*kernel, output);
  if (!reads_what_it_writes(*kernel, from, to)) return false;
  kernel->buffers[from].shared = kernel->buffers[to].shared = true;
  return true;
}

}  // namespace

void find_in_place(Plan& plan) {
  plan.takes_over.assign(plan.graph.outputs.size(), kNone);
  for (const Param& param : plan.graph.params) {
    if (param.alias_output == kNone) continue;
    const ValueId output = plan.graph.outputs[param.alias_output];
    if (can_take_over(plan, param.value, output)) plan.takes_over[param.alias_output] = param.value;
  }
}

}  // namespace ltc::kernels
