#define _POSIX_C_SOURCE 200809L
#include "profile.h"

#include <string.h>
#include <time.h>

uint64_t profile_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void profile_tell(const ltc_run_profile* profile, const char* op, uint32_t node, uint64_t begin_ns) {
  const ltc_kernel_profile kernel = {
      .struct_size = LTC_SIZE_TO(ltc_kernel_profile, bytes),
      .name = {op, strlen(op)},
      .node_count = 1,
      .nodes = &node,
      .begin_ns = begin_ns,
      .end_ns = profile_now(),
  };
  profile->kernel(profile->profile, &kernel);
}
