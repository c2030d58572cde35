// The head of ltc/archive.hpp around any fields: otherwise its checksum would keep nearly all inputs from the readers of fields.
#pragma once

#include "fuzz/target.h"
#include "ltc/archive.hpp"

namespace ltc::fuzz {

inline constexpr size_t kHeadBytes = 2 * sizeof(uint64_t);

// The fields as saved bytes of the same format as `model`.
inline std::string sealed(const std::string& model, std::string_view fields) {
  uint64_t sum = plugin::checksum(fields);
  plugin::Archive head;
  head(sum);
  return model.substr(0, sizeof sum) + head.bytes() + std::string(fields);
}

}  // namespace ltc::fuzz
