#include "core/compile/cache/cache.h"

#include <algorithm>

#include "core/base/disk_cache.h"

namespace ltc {
namespace {

constexpr uint64_t kNodeBytes = 256;        // with its lists of values
constexpr uint64_t kExecutableBytes = 768;  // per node: about what the torchscript plugin takes

uint64_t graph_bytes(const Graph& graph) {
  return graph.nodes.size() * kNodeBytes + graph.params.size() * sizeof(Param) + graph.types.size() * sizeof(TypeId);
}

uint64_t key_of(const Trace& trace, std::span<const Root> roots, uint32_t precision) {
  return hash_mix(hash_bytes(trace.hash, roots.data(), roots.size_bytes()), precision);
}

}  // namespace

uint64_t program_bytes(const Program& program) {
  uint64_t bytes = sizeof program + graph_bytes(program.graph) + program.slots.size() * sizeof(TypeId);
  for (const Step& step : program.steps) {
    bytes += sizeof step + graph_bytes(step.graph) +
             (step.on_device || program.is_interim ? step.graph.nodes.size() * kExecutableBytes : 0);
  }
  return bytes;
}

ProgramCache::EntryIterator ProgramCache::find_entry(const Trace& trace, std::span<const Root> roots, uint32_t precision) {
  const auto [first, last] = by_hash_.equal_range(key_of(trace, roots, precision));
  for (auto it = first; it != last; ++it) {
    const RecordedStep& step = *it->second->program.step;
    if (step.trace == trace && step.precision == precision && std::ranges::equal(step.roots, roots)) return it->second;
  }
  return entries_.end();
}

const CachedProgram* ProgramCache::find(const Trace& trace, std::span<const Root> roots, uint32_t precision) {
  const EntryIterator entry = find_entry(trace, roots, precision);
  if (entry == entries_.end()) return nullptr;
  const Program& program = *entry->program.program;
  if (program.failed_at_first && !program.saved_as.empty()) [[unlikely]] {
    if (DiskCache* disk = DiskCache::instance()) disk->remove(program.saved_as);
    erase(entry);
    return nullptr;
  }
  entries_.splice(entries_.begin(), entries_, entry);
  return &entry->program;
}

const CachedProgram* ProgramCache::insert(CachedProgram program) {
  const RecordedStep& step = *program.step;
  const uint64_t key = key_of(step.trace, step.roots, step.precision);
  if (const EntryIterator before = find_entry(step.trace, step.roots, step.precision); before != entries_.end()) erase(before);
  const uint64_t bytes = sizeof(Entry) + step.trace.records.size() * sizeof(Record) +
                         (step.trace.operands.size() + step.locations.size()) * sizeof(uint32_t) +
                         step.roots.size() * sizeof(Root) + program_bytes(*program.program);
  while (!entries_.empty() && (entries_.size() >= capacity_ || bytes_ + bytes > limit_bytes_)) erase(std::prev(entries_.end()));
  entries_.push_front({key, std::move(program), bytes});
  by_hash_.emplace(key, entries_.begin());
  bytes_ += bytes;
  return &entries_.front().program;
}

void ProgramCache::erase(EntryIterator entry) {
  bytes_ -= entry->bytes;
  const auto [first, last] = by_hash_.equal_range(entry->key);
  by_hash_.erase(std::find_if(first, last, [&](const auto& item) { return item.second == entry; }));
  entries_.erase(entry);
}

}  // namespace ltc
