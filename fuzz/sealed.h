// The head of ltc/archive.hpp around any fields: otherwise its checksum would keep nearly all inputs from the readers of fields.
#pragma once

#include "fuzz/target.h"
#include "ltc/archive.hpp"

namespace ltc::fuzz {

inline constexpr size_t kHeadBytes = 2 * sizeof(uint64_t);

// The fields as saved bytes of the same format as `model`.
inline std::string sealed(const std::string& model, std::string_view fields) {
  const uint64_t sum = plugin::checksum(fields);
  return model.substr(0, sizeof sum) + std::string(reinterpret_cast<const char*>(&sum), sizeof sum) + std::string(fields);
}

}  // namespace ltc::fuzz
