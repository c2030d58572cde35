#include "core/base/env.h"

#include <cstdlib>

namespace ltc::env {

std::string get(const char* name, const std::string& fallback) {
  const char* value = std::getenv(name);
  return value && *value ? value : fallback;
}

bool is_set(const char* name) { return get(name, "0") != "0"; }

}  // namespace ltc::env
