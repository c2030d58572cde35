// How much of the process's heap is in use: a plugin's leaks of host memory show in it.
#pragma once

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <vector>

namespace ltc::conformance {

// Empty where the allocator does not say, as under a sanitizer.
inline std::optional<int64_t> heap_in_use() {
  const struct mallinfo2 info = ::mallinfo2();
  const size_t bytes = info.uordblks + info.hblkhd;
  return bytes ? std::optional(static_cast<int64_t>(bytes)) : std::nullopt;
}

// Limits per call: less than any object that a plugin could forget each time; and of a compiler, which may keep notes.
inline constexpr double kLeakBytes = 8, kCompilerLeakBytes = 256;

// Runs `body` many times. Bytes by which the heap grew per time; empty where unknown. The median of three rounds: a leak of each
// call is in all of them, a single allocation by a thread of the driver is in one.
template <typename Body>
std::optional<double> median_growth_per_time(int times, Body&& body) {
  std::array<int64_t, 3> growth;
  for (int64_t& round : growth) {
    const auto before = heap_in_use();
    for (int i = 0; i < times; ++i) body();
    const auto after = heap_in_use();
    if (!before || !after) return std::nullopt;
    round = *after - *before;
  }
  std::ranges::sort(growth);
  return static_cast<double>(growth[1]) / times;
}

// The same after a warm-up. Pools of a driver, and the allocator's own per thread, fill up and then stop: only a leak grows by as
// much per time in a longer run. One that would last minutes is left out.
template <typename Body>
std::optional<double> growth_per_time(int times, Body&& body, double limit = kLeakBytes) {
  for (int i = 0; i < times / 4 + 8; ++i) body();
  const auto start = std::chrono::steady_clock::now();
  const auto growth = median_growth_per_time(times, body);
  const bool is_quick = std::chrono::steady_clock::now() - start < std::chrono::seconds(2);
  return growth && *growth >= limit && is_quick ? median_growth_per_time(times * 8, body) : growth;
}

// The allocator gives this thread other memory next than what it frees next: so memory that was freed too early shows.
inline void keep_freed_memory_apart() {
  std::vector<void*> blocks;
  for (size_t size = 16; size <= 1024; size += 16) {
    for (int i = 0; i < 32; ++i) blocks.push_back(std::malloc(size));
  }
  for (void* block : blocks) std::free(block);
}

// Bytes of the process that are in memory, mapped files among them; empty where the system does not say. A sanitizer keeps what
// was freed, so there it says nothing.
inline std::optional<int64_t> resident_bytes() {
  int64_t total = 0, resident = 0;
  if (!heap_in_use() || !(std::ifstream("/proc/self/statm") >> total >> resident)) return std::nullopt;
  return resident * ::sysconf(_SC_PAGESIZE);
}

}  // namespace ltc::conformance
