// The account of compiles: counters, and what a listener is told of each.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "core/base/api.h"
#include "core/compile/build_program.h"
#include "core/ir/location.h"
#include "core/report/timeline.h"

namespace ltc {

// Why a program was wanted.
struct CompileCause {
  std::string reason;           // as the timeline has it: "new", "background", or what differs from an earlier trace
  std::string difference = {};  // in words; may be empty
  LocationId where = kNoLocation;
  uint64_t begin_ns = 0;  // when its compile or load began, as timeline::now_ns() tells
};

// A trace that has got its program.
struct CompileFacts {
  CompileCause cause;
  CompiledProgram::Source source;
  uint64_t ns = 0;  // how long it took
  timeline::ProgramFacts program;
};

// Counts the program, by where it came from, and keeps what the listener is to be told. Any thread.
void note_compile(CompileCause cause, const CompiledProgram& compiled);

// Called by tell_compiles(), with no lock of ours held, in any thread that asks for a barrier. Null: there is none.
using CompileListener = void (*)(const CompileFacts& facts);
LTC_API void set_compile_listener(CompileListener listener);

namespace detail {
extern LTC_API std::atomic<bool> compiles_are_kept;
}
LTC_API void tell_kept_compiles();
inline void tell_compiles() {
  if (detail::compiles_are_kept.load(std::memory_order_relaxed)) [[unlikely]]
    tell_kept_compiles();
}

}  // namespace ltc
