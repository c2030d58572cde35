// The bytes of a saved executable.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "core/host/sized.h"

namespace ltc::conformance {

// Bytes at a multiple of 64, as the host hands them to executable_load.
class LoadBytes {
 public:
  explicit LoadBytes(const std::string& bytes) : lines_(bytes.size() / sizeof(Line) + 1), size_(bytes.size()) {
    std::ranges::copy(bytes, lines_[0].bytes);
  }
  ltc_load_args args() const {
    auto args = host::sized<ltc_load_args>();
    args.data = lines_.data();
    args.size = size_;
    return args;
  }
  void scribble() { std::memset(lines_.data(), 0xee, lines_.size() * sizeof(Line)); }

 private:
  struct alignas(64) Line {
    char bytes[64];
  };
  std::vector<Line> lines_;
  size_t size_;
};

}  // namespace ltc::conformance
