// Counters of what happened in this process, by name. Names that users of torch._lazy.metrics know keep their spelling:
// UncachedCompile, CachedCompile, and aten::<op> for each op that the CPU ran instead of the plugin.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ltc::metrics {

using Counter = std::atomic<int64_t>;

// The counter of that name, made at its first use; lives for ever, so a hot place keeps the reference. Any thread.
Counter& counter(std::string_view name);

std::vector<std::string> counter_names();      // those that are not zero, sorted
int64_t counter_value(std::string_view name);  // 0 if nothing was counted
std::string report();                          // those that are not zero, by name, and the account of fallbacks
void reset();

inline constexpr std::string_view kUncachedCompile = "UncachedCompile";  // traces that were compiled
inline constexpr std::string_view kCachedCompile = "CachedCompile";      // traces whose program was in the cache
inline constexpr std::string_view kDiskHits = "DiskCacheHits";           // traces whose program an earlier process has compiled
inline constexpr std::string_view kQuickCompile = "QuickCompile";        // traces compiled with little effort, until they repeat
inline constexpr std::string_view kSymbolicCompile = "SymbolicCompile";  // of those compiled: for further sizes too
inline constexpr std::string_view kSymbolicReuse = "SymbolicReuse";      // traces of new sizes that needed no compile
inline constexpr std::string_view kBackgroundCompile =
    "BackgroundCompile";  // of those compiled: while the host computed the step (LTC_BACKGROUND_COMPILE)
inline constexpr std::string_view kMarkStep = "MarkStep";                // barriers asked for by the program
inline constexpr std::string_view kReadBarrier = "ReadBarrier";          // barriers because a value was read (item, print, cpu)
inline constexpr std::string_view kHostRead = "HostRead";                // reads of values that the host computed, no barriers
inline constexpr std::string_view kFallbackBarrier = "FallbackBarrier";  // barriers because an op could not be traced
inline constexpr std::string_view kCollective = "CollectiveBarrier";     // barriers because ranks wait for each other at once
inline constexpr std::string_view kIdle = "IdleBarrier";              // barriers as others wait for a collective of an idle rank
inline constexpr std::string_view kTraceSplit = "TraceSplitBarrier";  // barriers around what is equal in each step
inline constexpr std::string_view kTraceLimit = "TraceLimitBarrier";  // barriers because the trace grew too long
inline constexpr std::string_view kHeldMemory = "HeldMemoryBarrier";  // barriers because the trace alone held much memory
inline constexpr std::string_view kOptimizerStep = "OptimizerStepBarrier";  // barriers before a turn of a loop: see auto_steps.h
inline constexpr std::string_view kBackward = "BackwardBarrier";            // the same
inline constexpr std::string_view kRepetition = "RepetitionBarrier";        // the same
inline constexpr std::string_view kKnownStep = "KnownStepBarrier";          // the same
inline constexpr std::string_view kEagerBarrier = "EagerBarrier";           // barriers after each op, because of LTC_EAGER
inline constexpr std::string_view kCallBarrier = "CapturedCallBarrier";     // barriers before a call of what was captured
inline constexpr std::string_view kCapturedCalls = "CapturedCalls";         // of torch.compile and ltc.jit: nothing was recorded
inline constexpr std::string_view kCaptures = "Captures";                   // functions recorded for that
inline constexpr std::string_view kInlinedBackwardNodes =
    "InlinedBackwardNodes";  // of backwards: evaluated without PyTorch's guards
inline constexpr std::string_view kOpsRecorded = "OpsRecorded";
inline constexpr std::string_view kOpsRun = "OpsRun";    // of them: in the programs that were queued, since somebody needs them
inline constexpr std::string_view kDryRuns = "DryRuns";  // calls tried on the CPU first, as what they write decides what they do
inline constexpr std::string_view kRuns = "ProgramRuns";
inline constexpr std::string_view kInterimRuns = "InterimRuns";      // of them: by the host, while the program was compiled
inline constexpr std::string_view kRecoveries = "RecoveredRuns";     // that failed and were repeated op by op
inline constexpr std::string_view kWrongResults = "WrongResults";    // ops that LTC_CHECK has reported
inline constexpr std::string_view kHostStepOps = "HostStepOps";      // nodes that the host ran inside programs
inline constexpr std::string_view kFallbackBytes = "FallbackBytes";  // moved to the host and back for ops that it ran
inline constexpr std::string_view kBytesToDevice = "BytesToDevice";
inline constexpr std::string_view kBytesFromDevice = "BytesFromDevice";
inline constexpr std::string_view kBytesOnDevice = "BytesCopiedOnDevice";        // from one buffer to another of the same device
inline constexpr std::string_view kBytesBetweenDevices = "BytesBetweenDevices";  // those that did not pass the host

}  // namespace ltc::metrics
