// Jumps, calls, and meetings of a block.
#include "cuda/emulator/places.h"
#include "cuda/emulator/table.h"

namespace ltc::emulator {
namespace {

// A loop that takes longer is taken for one without end.
constexpr uint64_t kMostJumps = uint64_t{1} << 33;

void jump(Thread& t, const Instruction& in) {
  const Instruction* to = t.frames.back().function->code.data() + in.target;
  if (to <= t.at && ++t.block->launch->jumps > kMostJumps) t.fail(CUDA_ERROR_LAUNCH_TIMEOUT, "jumps back without end");
  t.next = to;
}

void copy_params(Frame& to, const std::vector<Param>& places, const Frame& from, const std::vector<Param>& values) {
  for (size_t i = 0; i < places.size(); ++i) {
    std::memcpy(to.params.data() + places[i].offset, from.params.data() + values[i].offset,
                std::min(places[i].bytes, values[i].bytes));
  }
}

void call(Thread& t, const Instruction& in) {
  Frame& caller = t.frames.back();
  const Call& call = caller.function->calls[in.target];
  const Function& callee = *call.callee;
  if (t.frames.size() > 64) t.fail(CUDA_ERROR_HARDWARE_STACK_ERROR, "goes too deep");
  Frame frame;
  frame.function = &callee;
  frame.params.assign(callee.param_bytes, std::byte{0xff});
  copy_params(frame, callee.params, caller, call.arguments);
  frame.registers = callee.registers;
  std::copy(t.registers, t.registers + kSpecialSlots, frame.registers.begin());
  frame.back = t.next;
  frame.call = &call;
  t.frames.push_back(std::move(frame));
  t.registers = t.frames.back().registers.data();
  t.next = callee.code.data();
}

void leave(Thread& t, const Instruction&) {
  if (!t.copies.empty()) t.fail(CUDA_ERROR_LAUNCH_FAILED, "leaves before it has waited for its copies");
  t.state = Thread::kExited;
}

void give_back(Thread& t, const Instruction& in) {
  if (t.frames.size() == 1) return leave(t, in);
  const Frame done = std::move(t.frames.back());
  t.frames.pop_back();
  Frame& caller = t.frames.back();
  copy_params(caller, done.call->results, done, done.function->results);
  t.registers = caller.registers.empty() ? t.block->registers.data() + t.index * caller.function->registers.size()
                                         : caller.registers.data();
  t.next = done.back;
}

void trap(Thread& t, const Instruction&) { t.fail(CUDA_ERROR_LAUNCH_FAILED, "was run"); }

void meet_block(Thread& t, const Instruction& in) {
  if (get<uint32_t>(t, in, 0) != 0) t.fail(CUDA_ERROR_ILLEGAL_INSTRUCTION, "of another barrier than 0");
  t.state = Thread::kAtBarrier;
}

}  // namespace

void add_control(Table& table) {
  for (const char* suffix : {"", ".uni"}) {
    table.add(std::string("bra") + suffix, 0, jump);
    table.add(std::string("call") + suffix, 0, call);
    table.add(std::string("ret") + suffix, 0, give_back);
  }
  table.add("exit", 0, leave);
  table.add("trap", 0, trap);
  table.add("bar.sync", 1, meet_block);
  table.add("barrier.sync", 1, meet_block);
  table.add("barrier.sync.aligned", 1, meet_block);
}

}  // namespace ltc::emulator
