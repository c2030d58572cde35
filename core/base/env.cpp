#include "core/base/env.h"

#include <cstdlib>

namespace ltc::env {

std::string get(const char* name, const std::string& fallback) {
  const char* value = std::getenv(name);
  return value && *value ? value : fallback;
}

}  // namespace ltc::env
