// How the core's symbols are declared where the defaults will not do.
#pragma once

// Marks the exports of libltc_core.so: the few things that the Python module and C++ programs call. All else is hidden.
#define LTC_API __attribute__((visibility("default")))

// For what is read at every recorded op: found without a call. Small things only, such as pointers: a library that is opened at
// run time gets few bytes of this kind.
#define LTC_THREAD_LOCAL thread_local __attribute__((tls_model("initial-exec")))

// For the few small functions on the way of each call, which the compiler would call otherwise.
#define LTC_ALWAYS_INLINE inline __attribute__((always_inline))
