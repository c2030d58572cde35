// A struct of the C ABI as a host of another date would have it: with more behind it than this version knows.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "core/host/sized.h"

namespace ltc::conformance {

template <typename Struct>
class Guarded {
 public:
  Guarded() {
    std::memset(memory_, kGuard, sizeof memory_);
    *get() = host::sized<Struct>();
    std::memset(memory_ + host::kAbiSize<Struct>, kGuard, sizeof memory_ - host::kAbiSize<Struct>);
  }

  Struct* get() { return reinterpret_cast<Struct*>(memory_); }
  Struct* operator->() { return get(); }
  const Struct* operator->() const { return reinterpret_cast<const Struct*>(memory_); }

  // As a newer side fills it: struct_size covers fields that this version does not know.
  void grow() { get()->struct_size = sizeof memory_; }

  void expect_untouched(const char* what) const {
    const auto* end = memory_ + sizeof memory_;
    EXPECT_TRUE(std::all_of(memory_ + host::kAbiSize<Struct>, end, [](unsigned char byte) { return byte == kGuard; }))
        << what << "; the contract: touch only what lies inside both sides' sizes";
  }

 private:
  static constexpr unsigned char kGuard = 0xa5;
  alignas(Struct) unsigned char memory_[sizeof(Struct) + 64];
};

}  // namespace ltc::conformance
