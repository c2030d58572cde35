#include "core/compile/cache.h"

#include <algorithm>

namespace ltc {
namespace {

uint64_t key_of(const Trace& trace, std::span<const Root> roots) {
  return hash_bytes(trace.hash, roots.data(), roots.size_bytes());
}

}  // namespace

const CachedProgram* ProgramCache::find(const Trace& trace, std::span<const Root> roots) {
  const auto [first, last] = by_hash_.equal_range(key_of(trace, roots));
  for (auto it = first; it != last; ++it) {
    if (it->second->trace == trace && std::ranges::equal(it->second->roots, roots)) {
      entries_.splice(entries_.begin(), entries_, it->second);
      return &it->second->program;
    }
  }
  return nullptr;
}

const CachedProgram* ProgramCache::insert(Trace trace, std::vector<Root> roots, CachedProgram program) {
  if (entries_.size() >= capacity_) {
    const auto oldest = std::prev(entries_.end());
    const auto [first, last] = by_hash_.equal_range(oldest->key);
    by_hash_.erase(std::find_if(first, last, [&](const auto& item) { return item.second == oldest; }));
    entries_.erase(oldest);
  }
  const uint64_t key = key_of(trace, roots);
  entries_.push_front({key, std::move(trace), std::move(roots), std::move(program)});
  by_hash_.emplace(key, entries_.begin());
  return &entries_.front().program;
}

}  // namespace ltc
