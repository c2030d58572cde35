#include "cuda/emulator/launch.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <numeric>

namespace ltc::emulator {
namespace {

std::string text_of(const Launch& launch, uint64_t block) {
  return "block " + std::to_string(block % launch.grid.x) +
         (launch.grid.y * launch.grid.z == 1 ? "" : "," + std::to_string(block / launch.grid.x));
}

void set_specials(Thread& thread, const Launch& launch, uint64_t block) {
  uint64_t* to = thread.registers;
  const Dimensions &size = launch.block, &grid = launch.grid;
  const uint32_t lane = thread.lane, bit = 1U << lane;
  const uint64_t values[] = {1,
                             0,
                             thread.index % size.x,
                             thread.index / size.x % size.y,
                             thread.index / size.x / size.y,
                             size.x,
                             size.y,
                             size.z,
                             block % grid.x,
                             block / grid.x % grid.y,
                             block / grid.x / grid.y,
                             grid.x,
                             grid.y,
                             grid.z,
                             lane,
                             thread.warp->number,
                             bit,
                             bit - 1,
                             bit | (bit - 1),
                             ~(bit | (bit - 1)),
                             ~(bit - 1)};
  static_assert(sizeof values / sizeof *values == kSpecialSlots);
  std::copy(std::begin(values), std::end(values), to);
}

void make(Block& block, Launch& launch) {
  const uint64_t count = launch.block.count();
  block.launch = &launch;
  block.threads.resize(count);
  block.warps.resize((count + Warp::kLanes - 1) / Warp::kLanes);
  block.registers.resize(count * launch.kernel->registers.size());
  const uint32_t shared = launch.module->shared_bytes + launch.dynamic_shared_bytes;
  block.shared.resize(shared);
  block.shared_cells.resize(shared);
  for (uint64_t i = 0; i < count; ++i) {
    Thread& thread = block.threads[i];
    Warp& warp = block.warps[i / Warp::kLanes];
    warp.block = thread.block = &block;
    warp.number = static_cast<uint16_t>(i / Warp::kLanes);
    thread.warp = &warp;
    thread.index = static_cast<uint16_t>(i);
    thread.lane = i % Warp::kLanes;
    warp.lanes[thread.lane] = &thread;
  }
}

void begin(Block& block, uint64_t number) {
  const Launch& launch = *block.launch;
  const Function& kernel = *launch.kernel;
  block.number = number;
  std::fill(block.shared.begin(), block.shared.end(), std::byte{0xff});
  for (Warp& warp : block.warps) warp.reset_clocks();
  for (Thread& thread : block.threads) {
    thread.state = Thread::kReady;
    thread.registers = block.registers.data() + thread.index * kernel.registers.size();
    std::memcpy(thread.registers, kernel.registers.data(), kernel.registers.size() * sizeof(uint64_t));
    set_specials(thread, launch, number);
    thread.next = kernel.code.data();
    thread.copies.clear();
    thread.groups = 0;
    thread.frames.resize(1);
    Frame& frame = thread.frames[0];
    frame.function = &kernel;
    frame.params.resize(std::max<size_t>(kernel.param_bytes, launch.params.size()));
    std::copy(launch.params.begin(), launch.params.end(), frame.params.begin());
    thread.local.assign(kernel.local_bytes, std::byte{0xff});
  }
}

void run(Thread& thread) {
  do {
    const Instruction& in = *thread.next++;
    if ((thread.registers[in.guard] != 0) == in.negated) continue;
    thread.at = &in;
    in.handler(thread, in);
  } while (thread.state == Thread::kReady);
}

uint32_t waiting_lanes(const Warp& warp) {
  uint32_t waiting = 0;
  for (const Thread* lane : warp.lanes) {
    if (lane && lane->state == Thread::kAtWarp) waiting |= 1U << lane->lane;
  }
  return waiting;
}

// Runs one meeting whose members are there. False: there is none.
bool meet(Warp& warp) {
  const uint32_t waiting = waiting_lanes(warp);
  for (uint32_t rest = waiting; rest; rest &= rest - 1) {
    const Thread& first = *warp.lanes[std::countr_zero(rest)];
    uint32_t present = 0;
    each_lane(warp, waiting, [&](const Thread& other) {
      if (other.meeting == first.meeting && other.lanes == first.lanes) present |= 1U << other.lane;
    });
    if ((first.lanes & ~present) != 0) continue;
    each_lane(warp, first.lanes, [](Thread& lane) { lane.state = Thread::kReady; });
    first.meeting(warp, first.lanes);
    return true;
  }
  return false;
}

// Until all its lanes wait for the block or have left.
void run(Warp& warp, Order& order) {
  const std::vector<uint32_t> turns = order.of(Warp::kLanes);
  bool waits = true;
  while (waits) {
    for (const uint32_t lane : turns) {
      if (warp.lanes[lane] && warp.lanes[lane]->state == Thread::kReady) run(*warp.lanes[lane]);
    }
    waits = meet(warp);
  }
  if (const uint32_t stuck = waiting_lanes(warp)) {
    const Thread& thread = *warp.lanes[std::countr_zero(stuck)];
    thread.fail(CUDA_ERROR_LAUNCH_FAILED, "waits for lanes of the mask " + hex(thread.lanes) + " that do not come");
  }
}

// A meeting of the block is one of all its threads, and of a warp at one instruction.
void leave_barrier(Block& block) {
  const Thread* waits = nullptr;
  for (const Thread& thread : block.threads) {
    if (thread.state == Thread::kAtBarrier) waits = &thread;
  }
  if (!waits) return;
  for (Thread& thread : block.threads) {
    if (thread.state == Thread::kExited) {
      waits->fail(CUDA_ERROR_LAUNCH_FAILED, "waits for thread " + std::to_string(thread.index) + ", which has left");
    }
    const Thread& leader = *thread.warp->lanes[0];
    if (thread.at != leader.at) {
      thread.fail(CUDA_ERROR_LAUNCH_FAILED, "and lane 0 of its warp are at different barriers");
    }
  }
  for (Thread& thread : block.threads) thread.state = Thread::kReady;
  for (Warp& warp : block.warps) warp.reset_clocks();
  ++block.launch->segment;
}

bool is_over(const Block& block) {
  return std::ranges::all_of(block.threads, [](const Thread& thread) { return thread.state == Thread::kExited; });
}

}  // namespace

std::string hex(uint64_t number) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(number));
  return text;
}

Order::Order() {
  const char* wanted = std::getenv("CUDA_EMULATOR_ORDER");
  const std::string text = wanted ? wanted : "forward";
  if (text == "backward") kind_ = kBackward;
  if (!text.empty() && text.find_first_not_of("0123456789") == std::string::npos) {
    kind_ = kRandom;
    seed_ = static_cast<uint32_t>(std::strtoul(text.c_str(), nullptr, 10)) * 2654435769U + 1;
  }
}

std::vector<uint32_t> Order::of(uint64_t count) {
  std::vector<uint32_t> turns(count);
  std::iota(turns.begin(), turns.end(), 0U);
  if (kind_ == kBackward) std::ranges::reverse(turns);
  if (kind_ == kRandom) {
    for (uint64_t i = count; i > 1; --i) std::swap(turns[i - 1], turns[random() % i]);
  }
  return turns;
}

void Launch::run(uint64_t& segments) {
  Block block_state;
  make(block_state, *this);
  shadow->tidy();
  first_segment = segment = segments + 1;
  try {
    for (const uint32_t number : order->of(grid.count())) {
      block_segment = ++segment;
      begin(block_state, number);
      while (!is_over(block_state)) {
        for (const uint32_t warp : order->of(block_state.warps.size())) emulator::run(block_state.warps[warp], *order);
        leave_barrier(block_state);
      }
    }
  } catch (...) {
    segments = segment;
    throw;
  }
  segments = segment;
}

std::byte* Launch::global_place(const Thread& thread, uint64_t address, size_t bytes) {
  for (const Allocation& recent : recent_) {
    if (address - recent.begin < recent.bytes && bytes <= recent.end() - address) return reinterpret_cast<std::byte*>(address);
  }
  std::string why;
  const Allocation* holder = memory->holder(device, address, bytes, &why);
  if (!holder) {
    thread.fail(CUDA_ERROR_ILLEGAL_ADDRESS, std::to_string(bytes) + " bytes at " + hex(address) + ": " + why);
  }
  recent_[next_recent_++ % 4] = *holder;
  return reinterpret_cast<std::byte*>(address);
}

void Thread::fail(CUresult code, const std::string& what) const {
  const Launch& launch = *block->launch;
  throw Fault{code, "kernel " + launch.kernel->name + ", " + text_of(launch, block->number) + ", thread " +
                        std::to_string(index) + " (warp " + std::to_string(warp->number) + ", lane " + std::to_string(lane) +
                        "), " + *at->name + " " + what};
}

Stamp Thread::stamp() const { return {.segment = block->launch->segment, .thread = index, .clock = warp->clocks[lane][lane]}; }

std::byte* Thread::local_place(uint64_t address, size_t bytes) {
  if (address + bytes > local.size() || address + bytes < address) {
    fail(CUDA_ERROR_ILLEGAL_ADDRESS,
         "of local memory at " + std::to_string(address) + ", which has " + std::to_string(local.size()) + " bytes");
  }
  return local.data() + address;
}

std::byte* Thread::param_place(uint64_t offset, size_t bytes) {
  std::vector<std::byte>& params = frames.back().params;
  if (offset + bytes > params.size()) fail(CUDA_ERROR_ILLEGAL_ADDRESS, "behind the parameters");
  return params.data() + offset;
}

std::byte* Block::shared_place(const Thread& thread, uint64_t address, size_t bytes) {
  if (address + bytes > shared.size() || address + bytes < address) {
    thread.fail(CUDA_ERROR_ILLEGAL_ADDRESS, "of shared memory at " + std::to_string(static_cast<int64_t>(address)) +
                                                ", of which the block has " + std::to_string(shared.size()) + " bytes");
  }
  return shared.data() + address;
}

void Warp::reset_clocks() {
  for (unsigned i = 0; i < kLanes; ++i) {
    for (unsigned j = 0; j < kLanes; ++j) clocks[i][j] = i == j;
  }
}

void wait_for_warp(Thread& thread, uint32_t members, Meeting meeting) {
  uint32_t there = 0;
  for (const Thread* lane : thread.warp->lanes) {
    if (!lane) continue;
    if (members >> lane->lane & 1 && lane->state == Thread::kExited) {
      thread.fail(CUDA_ERROR_LAUNCH_FAILED, "waits for lane " + std::to_string(lane->lane) + ", which has left");
    }
    there |= 1U << lane->lane;
  }
  if (!(members >> thread.lane & 1)) thread.fail(CUDA_ERROR_LAUNCH_FAILED, "has a mask without its own lane");
  thread.lanes = members & there;
  thread.meeting = meeting;
  thread.state = Thread::kAtWarp;
}

}  // namespace ltc::emulator
