#include "core/compile/cache.h"

#include <algorithm>

namespace ltc {
namespace {

uint64_t key_of(const Trace& trace, std::span<const Root> roots, uint32_t precision) {
  return hash_mix(hash_bytes(trace.hash, roots.data(), roots.size_bytes()), precision);
}

}  // namespace

const CachedProgram* ProgramCache::find(const Trace& trace, std::span<const Root> roots, uint32_t precision) {
  const auto [first, last] = by_hash_.equal_range(key_of(trace, roots, precision));
  for (auto it = first; it != last; ++it) {
    const Entry& entry = *it->second;
    const RecordedStep& step = *entry.program.step;
    if (step.trace == trace && step.precision == precision && std::ranges::equal(step.roots, roots)) {
      entries_.splice(entries_.begin(), entries_, it->second);
      return &it->second->program;
    }
  }
  return nullptr;
}

const CachedProgram* ProgramCache::insert(CachedProgram program) {
  if (entries_.size() >= capacity_) {
    const auto oldest = std::prev(entries_.end());
    const auto [first, last] = by_hash_.equal_range(oldest->key);
    by_hash_.erase(std::find_if(first, last, [&](const auto& item) { return item.second == oldest; }));
    entries_.erase(oldest);
  }
  const uint64_t key = key_of(program.step->trace, program.step->roots, program.step->precision);
  entries_.push_front({key, std::move(program)});
  by_hash_.emplace(key, entries_.begin());
  return &entries_.front().program;
}

}  // namespace ltc
