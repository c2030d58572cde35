#include "core/run/device/varying_offsets.h"

#include <atomic>
#include <mutex>
#include <shared_mutex>
#include <unordered_set>

namespace ltc {
namespace {

// Only grows: at most one entry for each line and geometry of the program.
struct Known {
  std::atomic<bool> any = false;  // so that programs without such accesses take no lock
  std::shared_mutex mutex;
  std::unordered_set<uint64_t> accesses;
};

Known& known() {
  static auto* instance = new Known();
  return *instance;
}

uint64_t key_of(LocationId where, TypeId geometry) { return uint64_t{where} << 32 | geometry; }

}  // namespace

bool offset_varies(LocationId where, TypeId geometry) {
  if (!known().any.load(std::memory_order_relaxed)) [[likely]]
    return false;
  std::shared_lock lock(known().mutex);
  return known().accesses.contains(key_of(where, geometry));
}

void note_varying_offsets(std::span<const StridedAccess> accesses) {
  if (accesses.empty()) return;
  std::unique_lock lock(known().mutex);
  for (const auto& [where, geometry] : accesses) known().accesses.insert(key_of(where, geometry));
  known().any = true;
}

}  // namespace ltc
