// The state of a block of threads while it runs.
#pragma once
#include <bit>
#include <cstddef>
#include <deque>
#include <memory>
#include <vector>

#include "cuda/emulator/ptx.h"
#include "cuda/emulator/shadow.h"

namespace ltc::emulator {

struct Block;
struct Warp;

// A meeting of a warp runs it once all its members are there; `members`: the lanes.
using Meeting = void (*)(Warp&, uint32_t members);

// A function in progress.
struct Frame {
  const Function* function = nullptr;
  std::vector<std::byte> params;
  std::vector<uint64_t> registers;    // empty in an entry: those lie with the block
  const Instruction* back = nullptr;  // where the caller goes on
  const Call* call = nullptr;
};

// A copy into shared memory that nobody has waited for.
struct AheadCopy {
  uint32_t to = 0, bytes = 0;
  std::byte data[16] = {};
  bool committed = false;
  uint32_t group = 0;
};

struct Thread {
  enum State { kReady, kAtWarp, kAtBarrier, kExited };

  State state = kReady;
  uint64_t* registers = nullptr;  // of the current frame
  const Instruction* next = nullptr;
  const Instruction* at = nullptr;  // in progress, or waiting
  Block* block = nullptr;
  Warp* warp = nullptr;
  uint16_t index = 0, lane = 0;
  uint32_t lanes = 0;         // members of the warp's meeting, while kAtWarp
  Meeting meeting = nullptr;  // what it does
  std::deque<Frame> frames;
  std::vector<std::byte> local;
  std::vector<AheadCopy> copies;
  uint32_t groups = 0;  // committed ones
  bool carry = false;   // of the last instruction with .cc

  // Throws a Fault that names the thread and its instruction.
  [[noreturn]] void fail(CUresult code, const std::string& what) const;
  Stamp stamp() const;
  std::byte* local_place(uint64_t address, size_t bytes);
  std::byte* param_place(uint64_t offset, size_t bytes);
};

struct Warp {
  static constexpr unsigned kLanes = 32;

  Block* block = nullptr;
  uint16_t number = 0;
  Thread* lanes[kLanes] = {};  // null: the block ends before
  // clocks[i][j]: lane i has seen what lane j did before that time, since the block last met.
  uint16_t clocks[kLanes][kLanes] = {};

  void reset_clocks();
};

template <typename F>
void each_lane(const Warp& warp, uint32_t lanes, F f) {
  for (uint32_t rest = lanes; rest; rest &= rest - 1) f(*warp.lanes[std::countr_zero(rest)]);
}

struct Dimensions {
  uint32_t x = 1, y = 1, z = 1;
  uint64_t count() const { return uint64_t{x} * y * z; }
};

struct Launch;

struct Block {
  Launch* launch = nullptr;
  std::vector<Thread> threads;
  std::vector<Warp> warps;
  std::vector<uint64_t> registers;
  std::vector<std::byte> shared;
  std::vector<Cell> shared_cells;
  uint64_t number = 0;

  std::byte* shared_place(const Thread& thread, uint64_t address, size_t bytes);
};

// Waits for the other members, which come with the same mask to the same kind of meeting.
void wait_for_warp(Thread& thread, uint32_t members, Meeting meeting);

}  // namespace ltc::emulator
