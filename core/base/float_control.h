// How the calling thread computes floating-point numbers: rounding, subnormal numbers, trapped exceptions. Code that we call may
// change it for all that the thread does afterwards: a library linked with -ffast-math makes subnormal numbers zero in the thread
// that loads it.
#pragma once

#include <cfenv>
#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace ltc {

// The control bits, without the flags of exceptions that were raised.
class FloatControl {
 public:
#if defined(__x86_64__)
  static FloatControl current() noexcept {
    uint16_t x87;
    asm volatile("fnstcw %0" : "=m"(x87));
    return {_mm_getcsr() & ~kRaised, x87};
  }
  void restore() const noexcept {
    _mm_setcsr((_mm_getcsr() & kRaised) | bits_);
    asm volatile("fldcw %0" : : "m"(x87_));
  }
#elif defined(__aarch64__)
  static FloatControl current() noexcept {
    uint64_t bits;
    asm volatile("mrs %0, fpcr" : "=r"(bits));
    return {bits, 0};
  }
  void restore() const noexcept { asm volatile("msr fpcr, %0" : : "r"(bits_)); }
#else
  static FloatControl current() noexcept { return {static_cast<uint64_t>(std::fegetround()), 0}; }
  void restore() const noexcept { std::fesetround(static_cast<int>(bits_)); }
#endif

  bool operator==(const FloatControl&) const = default;

 private:
  static constexpr uint32_t kRaised = 0x3f;  // of MXCSR
#if defined(__x86_64__)
  using Bits = uint32_t;
#else
  using Bits = uint64_t;
#endif
  FloatControl(Bits bits, uint16_t x87) noexcept : bits_(bits), x87_(x87) {}

  Bits bits_;
  uint16_t x87_;
};

// Where a call is too short to be worth the price.
struct KeepNothing {};

// At its end the thread computes as it did at its beginning. A few nanoseconds where nothing was changed.
class KeepFloatControl {
 public:
  KeepFloatControl() noexcept : before_(FloatControl::current()) {}
  ~KeepFloatControl() {
    if (FloatControl::current() != before_) [[unlikely]]
      before_.restore();
  }
  KeepFloatControl(const KeepFloatControl&) = delete;
  KeepFloatControl& operator=(const KeepFloatControl&) = delete;

 private:
  const FloatControl before_;
};

}  // namespace ltc
