/* For libraries of tests that compute on the host: their work in the order of a stream, where the driver is the emulator. */
#pragma once
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <stdlib.h>

typedef int stub_launch(void* stream, void (*work)(void*), void* data);

/* Calls work(data). `data` is the callee's from here on, made with malloc. A graph may run it several times, so it stays where
   there is a stream to wait for. Any other driver of the tests has no such function: then the work is done at once. */
static inline int stub_in_stream(void* stream, void (*work)(void*), void* data) {
  static struct kept {
    void* data;
    struct kept* next;
  } * all;
  stub_launch* const launch = (stub_launch*)dlsym(RTLD_DEFAULT, "cuLaunchHostFunc");
  if (!launch) {
    work(data);
    free(data);
    return 0;
  }
  struct kept* const kept = (struct kept*)malloc(sizeof *kept);
  kept->data = data;
  kept->next = __atomic_load_n(&all, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(&all, &kept->next, kept, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) continue;
  return launch(stream, work, data);
}
