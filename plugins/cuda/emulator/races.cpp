#include "cuda/emulator/races.h"

#include <cstdlib>
#include <cstring>
#include <string>

namespace ltc::emulator {
namespace {

constexpr const char *kShared = "shared", *kGlobal = "global";

bool looks_for_races() {
  static const char* const wanted = std::getenv("CUDA_EMULATOR_RACES");
  return !wanted || std::strcmp(wanted, "0") != 0;
}

const char* name_of(Access access) { return access == Access::kRead ? "reads" : access == Access::kWrite ? "writes" : "updates"; }

[[noreturn]] void report(const Thread& thread, const char* space, uint64_t address, Access access, const Stamp& other,
                         bool wrote) {
  const Launch& launch = *thread.block->launch;
  const bool same_block = other.segment >= launch.block_segment;
  const std::string who =
      same_block ? "thread " + std::to_string(other.thread) : "thread " + std::to_string(other.thread) + " of another block";
  thread.fail(CUDA_ERROR_LAUNCH_FAILED, std::string("is a race: it ") + name_of(access) + " the byte at " + hex(address) +
                                            " of " + space + " memory, which " + who + (wrote ? " writes" : " reads") +
                                            ", and nothing orders them");
}

// In one segment of a block.
bool is_ordered(const Thread& thread, const Stamp& before) {
  if (before.thread == thread.index) return true;
  if (before.thread / Warp::kLanes != thread.warp->number) return false;
  return thread.warp->clocks[thread.lane][before.thread % Warp::kLanes] >= before.clock;
}

// Whether the earlier access is one that this needs an order with, and has none. Blocks share global memory only.
bool collides(const Thread& thread, const Stamp& before, bool is_global) {
  const Launch& launch = *thread.block->launch;
  if (before.segment < launch.first_segment) return false;
  if (before.segment < launch.block_segment) return is_global;
  return before.segment == launch.segment && !is_ordered(thread, before);
}

void note_reader(const Thread& thread, Cell& cell, const Stamp& now) {
  const auto known = [&](const Stamp& reader) {
    return reader.segment < thread.block->launch->block_segment ? reader.segment < thread.block->launch->first_segment
                                                                : reader.segment < now.segment || is_ordered(thread, reader);
  };
  if (known(cell.readers[0])) {
    cell.readers[0] = now;
  } else if (known(cell.readers[1])) {
    cell.readers[1] = now;
  }
}

// One byte. `changes`: it is not what is there already.
void check(const Thread& thread, Cell& cell, const char* space, uint64_t address, Access access, bool changes) {
  const bool is_global = space == kGlobal;
  Stamp now = thread.stamp();
  now.atomic = access == Access::kAtomic;
  if (!(now.atomic && cell.writer.atomic) && changes && collides(thread, cell.writer, is_global)) {
    report(thread, space, address, access, cell.writer, true);
  }
  if (access == Access::kRead) return note_reader(thread, cell, now);
  for (const Stamp& reader : cell.readers) {
    if (changes && collides(thread, reader, is_global)) report(thread, space, address, access, reader, false);
  }
  cell.writer = now;
}

bool differs(const void* value, const std::byte* there, size_t i) {
  return !value || static_cast<const std::byte*>(value)[i] != there[i];
}

}  // namespace

void check_shared(const Thread& thread, uint64_t address, size_t bytes, Access access, const void* value) {
  if (!looks_for_races()) return;
  Block& block = *thread.block;
  for (size_t i = 0; i < bytes; ++i) {
    Cell& cell = block.shared_cells[address + i];
    if (access != Access::kWrite && cell.writer.pending && cell.writer.segment >= block.launch->block_segment) {
      thread.fail(CUDA_ERROR_LAUNCH_FAILED, "reads shared memory at " + std::to_string(address + i) + " before thread " +
                                                std::to_string(cell.writer.thread) + " has waited for its copy to it");
    }
    check(thread, cell, kShared, address + i, access, differs(value, block.shared.data() + address, i));
  }
}

void check_global(const Thread& thread, uint64_t address, size_t bytes, Access access, const void* value) {
  if (!looks_for_races()) return;
  const auto* there = reinterpret_cast<const std::byte*>(address);
  Shadow& shadow = *thread.block->launch->shadow;
  Cell* cells = shadow.cells(address);
  for (size_t i = 0; i < bytes; ++i) check(thread, cells[i], kGlobal, address + i, access, differs(value, there, i));
}

}  // namespace ltc::emulator
