/* C++ source to machine code of this process, by clang and LLVM.
 *
 * LLVM is large, and other libraries of a process bring other versions of it. So it is linked statically into a shared object of
 * its own, libltc_host_compiler.so, which exports the functions below and nothing else, and which is opened with dlopen where it
 * is there. All functions may be called from any thread, several at a time. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Receives text or bytes, at most once per call of a function. */
typedef struct ltc_hc_sink {
  void* context;
  void (*write)(void* context, const char* data, size_t size);
} ltc_hc_sink;

/* A loaded object. */
typedef struct ltc_hc_module ltc_hc_module;

/* Writes all that objects compiled for `cpu` depend on besides their source: version of LLVM, instruction sets. For keys of
 * caches. `cpu` is an architecture's name that clang knows, such as "x86-64-v3", or "native". */
void ltc_hc_describe(const char* cpu, ltc_hc_sink text);

/* Compiles C++17 without headers and libraries to an object of position-independent code. Loops are left as they are. False:
 * `diagnostics` got the reason. */
bool ltc_hc_compile(const char* source, const char* cpu, ltc_hc_sink object, ltc_hc_sink diagnostics);

/* Makes an object's functions callable; symbols that it lacks are those of the process. Null: `diagnostics` got the reason. The
 * object is copied. */
ltc_hc_module* ltc_hc_load(const char* object, size_t size, ltc_hc_sink diagnostics);
/* Null: there is no such function. */
void* ltc_hc_find(ltc_hc_module* module, const char* name);
/* Its functions are gone. */
void ltc_hc_unload(ltc_hc_module* module);

/* In the order of the declarations, for dlsym. */
#define LTC_HC_FUNCTIONS(X) X(describe) X(compile) X(load) X(find) X(unload)

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
