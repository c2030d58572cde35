/* Extension 3: what a run does, kernel by kernel.
 *
 * The host chains an ltc_run_profile into ltc_execute_args::ext of a run that it wants to look into, for a plugin that lists the
 * kind in ltc_plugin_api::ext. The plugin tells it of each kernel, in the order in which they ran, and of the memory between
 * them. The results are those of any other run. Such a run may be slower, since kernels that overlap cannot be timed apart, and
 * execute may block until it is over. The host asks for few runs.
 *
 * A kernel is here the smallest thing that the plugin times: a launch, a call of a library, an operator. A plugin tells what it
 * knows: times of 0 are not measured, and one that calls nothing knows nothing. */
#ifndef LTC_PROFILE_H
#define LTC_PROFILE_H
#include "ltc/plugin.h"

#define LTC_EXTENSION_PROFILE 3u

/* One kernel of a run. Borrowed by the host until the call returns. */
typedef struct ltc_kernel_profile {
  size_t struct_size;
  ltc_string name; /* as the vendor's tools show it, or the ops that are in it; UTF-8 */
  ltc_string note; /* why it is not one with the kernel that makes its inputs, in a sentence; may be empty */
  size_t node_count;
  const uint32_t* nodes; /* of the graph that was lowered: those that it computes, ascending. May be NULL when node_count is 0.
                          * A node may be in several kernels, or in none: computed wherever it is read */
  uint64_t begin_ns;     /* when it ran, by the host's steady clock (CLOCK_MONOTONIC); 0: not measured */
  uint64_t end_ns;       /* not before begin_ns; 0: not measured */
  uint64_t bytes;        /* that it must read and write at least; 0: not known */
} ltc_kernel_profile;

/* A block of the memory between kernels. Borrowed by the host until the call returns. */
typedef struct ltc_scratch_profile {
  size_t struct_size;
  uint32_t node;         /* of the graph that was lowered: the block holds a result of it; LTC_NONE: work memory */
  uint32_t output;       /* which result */
  uint32_t first_kernel; /* which writes it: the number of calls of `kernel` in this run before that of this kernel */
  uint32_t last_kernel;  /* which reads it last; not before the first */
  uint64_t offset;       /* in the memory of the run, as if it were one block; blocks that are alive together do not overlap */
  uint64_t bytes;
} ltc_scratch_profile;

/* Chained into ltc_execute_args::ext. The functions may be called from any thread, one at a time, from the execute on until its
 * event is over; with a NULL event, until execute returns. Not after an execute that failed. */
typedef struct ltc_run_profile {
  ltc_extension head; /* kind LTC_EXTENSION_PROFILE, version 1 */
  void* profile;      /* first argument of both */
  void(LTC_CALL* kernel)(void* profile, const ltc_kernel_profile* kernel);
  void(LTC_CALL* scratch)(void* profile, const ltc_scratch_profile* block);
} ltc_run_profile;

#endif /* LTC_PROFILE_H */
