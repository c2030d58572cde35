// Counter-based random numbers: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011).
#pragma once
#include <cstdint>

namespace ltc::cpu {

// Element i depends on (seed, offset, i) alone, so any thread may compute any range.
// Each block of counter offset + b yields four 32-bit words. `first` is a multiple of 4 for 32-bit elements, of 2 for
// 64-bit ones; elements [first, last) are written to out[0 ...].
struct Philox {
  uint64_t seed, offset;

  void uniform(float* out, int64_t first, int64_t last) const;   // word >> 8, times 2^-24
  void uniform(double* out, int64_t first, int64_t last) const;  // 64 bits >> 11, times 2^-53
  void bits(int32_t* out, int64_t first, int64_t last) const;
  void bits(int64_t* out, int64_t first, int64_t last) const;
};

}  // namespace ltc::cpu
