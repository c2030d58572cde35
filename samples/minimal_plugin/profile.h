/* Tells the host of a run's kernels, where it asks (ltc/profile.h): here each node is one. */
#ifndef MINIMAL_PROFILE_H
#define MINIMAL_PROFILE_H

#include "ltc/profile.h"

/* The host's steady clock. */
uint64_t profile_now(void);

/* A node that has just been computed, since `begin_ns`. */
void profile_tell(const ltc_run_profile* profile, const char* op, uint32_t node, uint64_t begin_ns);

#endif
