/* The runtime of archives: runs the functions of a file that ltc.export has written, without Python and without PyTorch.
 *
 * Link with libltc_runtime.so, or with libltc_runtime_lean.so, which compiles nothing: it runs the executables of an archive, and
 * refuses a function, or a size, that has none (LTC_UNSUPPORTED). A plugin computes, as in training: one of LTC_PLUGIN_PATH, or
 * of the folder `plugins` beside this library.
 *
 * Threads     A model may be used from any thread, a session from one at a time.
 * Ownership   Every object that a function here gives is the caller's, who gives it to the function that ends it. Pointers of
 *             ltcr_tensor_info and names are the model's and valid as long as it is. A session keeps its model alive.
 * Errors      A function that can fail returns null or an error. Where it fails, it has done nothing, and its outputs are as they
 *             were; of ltcr_session_run see there.
 * Numbers     As in ltc/plugin.h: ltc_dtype, little-endian, row-major without gaps.
 */
#ifndef LTC_RUNTIME_H
#define LTC_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

#include "ltc/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

#define LTCR_API __attribute__((visibility("default")))

typedef struct ltcr_error ltcr_error;
typedef struct ltcr_model ltcr_model;     /* an archive, compiled for a device */
typedef struct ltcr_session ltcr_session; /* a state of a model */

LTCR_API ltc_code ltcr_error_code(const ltcr_error* error);
LTCR_API const char* ltcr_error_message(const ltcr_error* error); /* UTF-8; valid as long as the error */
LTCR_API void ltcr_error_destroy(ltcr_error* error);              /* null: nothing */

LTCR_API const char* ltcr_version(void); /* "0.9.0" */

/* Sessions of one instance of a model take turns. Those of several run at once, in threads of the caller's: where the plugin
 * computes on the thread that calls, as many as there are processors. Each instance opens the device anew and has a copy of the
 * archive's values in its memory. */
typedef struct ltcr_model_options {
  size_t struct_size;  /* of this struct, as the caller knows it */
  const char* backend; /* one entry as in LTC_BACKEND: a name or a path, with options. Null: LTC_BACKEND, else torchscript */
  uint32_t flags;      /* LTCR_RUN_EXECUTABLES, LTCR_TRUST_GRAPHS */
  uint32_t instances;  /* of the model, over which sessions are spread in turn; 0 is 1 */
} ltcr_model_options;

/* Takes the executables that `ltc compile` has put into the archive, where they fit host, plugin and device. They are code of the
 * plugin's: set it for archives of a trusted source only. Without it, each function is compiled, or found in the disk cache. */
enum { LTCR_RUN_EXECUTABLES = 1u };

/* Takes graphs as they are. Without it, the types of each node are to follow from its operands, and an op that no rule says the
 * types of is refused: a graph that was written by hand could make the plugin read beyond a value. Set it for archives of a
 * trusted source that need such an op; docs/archive.md lists them. */
enum { LTCR_TRUST_GRAPHS = 2u };

/* Opens the archive, loads the plugin, and compiles each function. `options` may be null.
 * Errors: LTC_NOT_FOUND for a file or a plugin that is not there, LTC_DATA_CORRUPT for a file that is no archive or is damaged,
 * LTC_UNSUPPORTED for a newer format, for an op without a rule (LTCR_TRUST_GRAPHS), and for a function of which the plugin does
 * not run every op, or that is to be compiled by a runtime without a compiler; the plugin's own. */
LTCR_API ltcr_error* ltcr_model_load(const char* path, const ltcr_model_options* options, ltcr_model** model);
LTCR_API void ltcr_model_destroy(ltcr_model* model); /* null: nothing */

typedef struct ltcr_tensor_info {
  const char* name;
  ltc_dtype dtype;
  uint32_t rank;
  const int64_t* sizes; /* -1 for one that varies from call to call */
  size_t size_bytes;    /* 0 where a size varies */
} ltcr_tensor_info;

/* Functions and states have numbers, from 0. A number that is too large gives null, or 0. */
LTCR_API size_t ltcr_function_count(const ltcr_model* model);
LTCR_API const char* ltcr_function_name(const ltcr_model* model, size_t function);
LTCR_API size_t ltcr_input_count(const ltcr_model* model, size_t function);
LTCR_API size_t ltcr_result_count(const ltcr_model* model, size_t function);
LTCR_API const ltcr_tensor_info* ltcr_input(const ltcr_model* model, size_t function, size_t input);
LTCR_API const ltcr_tensor_info* ltcr_result(const ltcr_model* model, size_t function, size_t result);
LTCR_API size_t ltcr_state_count(const ltcr_model* model);
LTCR_API const ltcr_tensor_info* ltcr_state(const ltcr_model* model, size_t state);

/* A size that varies from call to call. The inputs say what it is in a call, and all sizes of the function follow from that. */
typedef struct ltcr_dimension {
  const char* name;
  int64_t min, max; /* INT64_MAX: no limit */
} ltcr_dimension;

/* The dimensions of a function. A function of fixed sizes has none. */
LTCR_API size_t ltcr_dimension_count(const ltcr_model* model, size_t function);
LTCR_API const ltcr_dimension* ltcr_function_dimension(const ltcr_model* model, size_t function, size_t dimension);
/* The dimension that the size `dim` of an input is; null for a fixed size. */
LTCR_API const ltcr_dimension* ltcr_input_dimension(const ltcr_model* model, size_t function, size_t input, size_t dim);

/* Errors: LTC_NOT_FOUND, with the names that there are. */
LTCR_API ltcr_error* ltcr_find_function(const ltcr_model* model, const char* name, size_t* function);
LTCR_API ltcr_error* ltcr_find_state(const ltcr_model* model, const char* name, size_t* state);

/* A text that the archive has under that key, as `metadata` of ltc.export; null where it has none. */
LTCR_API const char* ltcr_metadata(const ltcr_model* model, const char* key);

/* A session begins with the state of the archive. */
LTCR_API ltcr_error* ltcr_session_create(ltcr_model* model, ltcr_session** session);
LTCR_API void ltcr_session_destroy(ltcr_session* session); /* null: nothing */

/* A tensor in the caller's memory. */
typedef struct ltcr_tensor {
  ltc_dtype dtype;
  uint32_t rank;
  const int64_t* sizes; /* `rank` of them; may be null for rank 0 */
  void* data;           /* read of an input, written of a result */
  size_t size_bytes;    /* of `data` */
} ltcr_tensor;

/* The sizes, and the bytes, of a result of a call with such inputs, whose data are not read and may be null. `sizes` has as many
 * places as the result's rank. `size_bytes` may be null. Computes nothing, and needs no session.
 * Errors: LTC_INVALID_ARGUMENT as ltcr_session_run. */
LTCR_API ltcr_error* ltcr_result_sizes(const ltcr_model* model, size_t function, const ltcr_tensor* inputs, size_t input_count,
                                       size_t result, int64_t* sizes, size_t* size_bytes);

/* Runs a function; returns when the results are written. `inputs` and `results` have as many as the function; null may stand for
 * a list of none. A result whose data is null is not written. The first call with other sizes of the dimensions compiles the
 * function for them, or finds its program; a model keeps those of the last 64 sizes.
 * Errors: LTC_INVALID_ARGUMENT for another number, dtype, shape or size, for a dimension that is out of its range or differs
 * between inputs, with both; the plugin's own. A call that fails changes no state. Where the plugin had taken over the memory of
 * a value already, that one is lost: the message says so, and calls that need it fail with LTC_CANCELLED until it is set, loaded
 * or reset. After LTC_DEVICE_LOST the next call opens the device again, with the archive's values. Values of the state that lived
 * on the lost device are lost in the same way. */
LTCR_API ltcr_error* ltcr_session_run(ltcr_session* session, size_t function, const ltcr_tensor* inputs, size_t input_count,
                                      const ltcr_tensor* results, size_t result_count);

/* Copies a value of the state. */
LTCR_API ltcr_error* ltcr_session_get_state(ltcr_session* session, size_t state, const ltcr_tensor* to);
LTCR_API ltcr_error* ltcr_session_set_state(ltcr_session* session, size_t state, const ltcr_tensor* from);

/* All of the state as a safetensors file, which others read too. The file is replaced as a whole. Loading sets all of it. */
LTCR_API ltcr_error* ltcr_session_save(ltcr_session* session, const char* path);
LTCR_API ltcr_error* ltcr_session_load(ltcr_session* session, const char* path);
LTCR_API void ltcr_session_reset(ltcr_session* session); /* to the state of the archive */

#ifdef __cplusplus
}
#endif

#endif /* LTC_RUNTIME_H */
