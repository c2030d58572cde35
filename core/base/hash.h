// Hashing for keys that live in this process. Not stable across versions and not for untrusted input.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ltc {

// One multiply and a fold: cheap enough for once per recorded op (constant: 2^64 divided by the golden ratio).
constexpr uint64_t hash_mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15ull;
  return hash ^ (hash >> 32);
}

inline uint64_t hash_bytes(uint64_t hash, const void* data, size_t size_bytes) {
  const auto* bytes = static_cast<const unsigned char*>(data);
  const auto word = [&] {
    uint64_t value;
    std::memcpy(&value, bytes, 8);
    bytes += 8;
    return value;
  };
  // Four chains, since each step waits for the one before.
  if (size_bytes >= 64) {
    uint64_t lanes[4] = {hash, hash + 1, hash + 2, hash + 3};
    for (; size_bytes >= 32; size_bytes -= 32) {
      for (uint64_t& lane : lanes) lane = hash_mix(lane, word());
    }
    hash = hash_mix(hash_mix(hash_mix(lanes[0], lanes[1]), lanes[2]), lanes[3]);
  }
  for (; size_bytes >= 8; size_bytes -= 8) hash = hash_mix(hash, word());
  uint64_t tail = 0;
  if (size_bytes > 0) std::memcpy(&tail, bytes, size_bytes);
  return hash_mix(hash, tail ^ (uint64_t{size_bytes} << 56));
}

}  // namespace ltc
