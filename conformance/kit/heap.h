// How much of the process's heap is in use: a plugin's leaks of host memory show in it.
#pragma once

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <fstream>
#include <optional>

namespace ltc::conformance {

// Empty where the allocator does not say, as under a sanitizer.
inline std::optional<int64_t> heap_in_use() {
  const struct mallinfo2 info = ::mallinfo2();
  const size_t bytes = info.uordblks + info.hblkhd;
  return bytes ? std::optional(static_cast<int64_t>(bytes)) : std::nullopt;
}

// Runs `body` many times after a warm-up. Bytes by which the heap grew per time; empty where unknown. The median of three rounds:
// a leak of each call is in all of them, a single allocation by a thread of the driver is in one.
template <typename Body>
std::optional<double> growth_per_time(int times, Body&& body) {
  for (int i = 0; i < times / 4 + 8; ++i) body();
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

// Bytes of the process that are in memory, mapped files among them; empty where the system does not say. A sanitizer keeps what
// was freed, so there it says nothing.
inline std::optional<int64_t> resident_bytes() {
  int64_t total = 0, resident = 0;
  if (!heap_in_use() || !(std::ifstream("/proc/self/statm") >> total >> resident)) return std::nullopt;
  return resident * ::sysconf(_SC_PAGESIZE);
}

// Less than any object that a plugin could forget each time.
inline constexpr double kLeakBytes = 8;

}  // namespace ltc::conformance
