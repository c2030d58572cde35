// Texts by which the ranks of a group tell each other what they are at.
#pragma once

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <string>
#include <vector>

#include "core/base/error.h"

namespace ltc::collectives {

inline void set_text(c10d::Store& store, const std::string& key, const std::string& value) {
  store.set(key, std::vector<uint8_t>(value.begin(), value.end()));
}

inline std::string get_text(c10d::Store& store, const std::string& key) {
  const std::vector<uint8_t> bytes = store.get(key);
  return {bytes.begin(), bytes.end()};
}

// A collective of a rank: "all_reduce sum of Float[3, 4]", and its line, which may be empty.
struct CallText {
  std::string what, where;
};

inline std::string at_line(const CallText& call) { return call.where.empty() ? call.what : cat(call.what, " at ", call.where); }

inline std::string difference_text(int rank, const CallText& call, int other_rank, const CallText& other) {
  return cat("the ranks call different collectives: rank ", rank, " ", at_line(call), ", rank ", other_rank, " ", at_line(other));
}

}  // namespace ltc::collectives
