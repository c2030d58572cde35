#include "core/host/validation/objects.h"

namespace ltc::host::validation {

Registry& Registry::instance() {
  static auto* registry = new Registry();  // leaked: plugins call until the end of the process
  return *registry;
}

void Registry::add(Object* object) {
  std::lock_guard lock(lock_);
  objects_.emplace(object, object);
}

Object* Registry::find_locked(const void* handle, Kind kind) const {
  const auto found = objects_.find(handle);
  return found != objects_.end() && found->second->kind == kind ? found->second : nullptr;
}

Object* Registry::find(const void* handle, Kind kind) {
  std::lock_guard lock(lock_);
  return find_locked(handle, kind);
}

Object* Registry::begin_use(const void* handle, Kind kind) {
  std::lock_guard lock(lock_);
  Object* const object = find_locked(handle, kind);
  if (!object || !object->alive) return nullptr;
  ++object->uses;
  return object;
}

void Registry::end_use(Object* object) {
  std::lock_guard lock(lock_);
  --object->uses;
}

std::pair<Object*, uint32_t> Registry::end(const void* handle, Kind kind) {
  std::lock_guard lock(lock_);
  Object* const object = find_locked(handle, kind);
  if (!object || !object->alive) return {nullptr, 0};
  object->alive = false;
  // The caller still reads it; it is the newest of the ended ones, so it is not freed soon.
  if (kind != Kind::kInstance && kind != Kind::kDevice) retire(object);
  return {object, object->uses};
}

void Registry::retire(Object* object) {
  ended_.push_back(object);
  if (ended_.size() <= kMostEnded) return;
  Object* const oldest = ended_.front();
  ended_.pop_front();
  if (oldest->uses > 0) {
    ended_.push_back(oldest);
    return;
  }
  objects_.erase(oldest);
  delete oldest;
}

}  // namespace ltc::host::validation
