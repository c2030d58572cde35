/* The C ABI between the lazy tensor core (the host) and a hardware plugin. Version 1.0, released 2026-11-26.
 *
 * A plugin is one shared library that exports one function, ltc_plugin_entry, and imports nothing from the host. It answers
 * with a table of functions, ltc_plugin_api. Six of them make a plugin that holds memory while the host computes; six more
 * make one that computes; two more make it asynchronous. Nothing else is ever required within this major version.
 *
 * Contract for all that follows
 *
 * Version     The entry agrees on one version (ltc_entry_args::agreed). Neither side sends or calls anything newer than that: no
 *             flag, code, dtype, kind, slot or op. Fields newer than it are zero, whatever struct_size says.
 * Sizes       Structs that may grow lead with struct_size. The side that fills a struct zero-fills it and sets struct_size with
 *             LTC_SIZE_TO of the last field it knows. A side that reads or writes it touches only what lies inside both sides'
 *             sizes: a field newer than 1.0 is touched only after LTC_HAS. Arrays hold pointers to such structs, or frozen
 *             structs: ltc_string, ltc_scalar, ltc_version, ltc_sink never change. Struct layout is that of the platform's C
 *             compiler. No struct is passed by value.
 * Null        A pointer is non-null unless its comment says "may be NULL"; an array may be NULL where its count is 0.
 * Strings     UTF-8, `size` bytes, and a NUL behind them. An absent string is {NULL, 0} or {"", 0}. The host replaces bytes that
 *             are no UTF-8 by U+FFFD, and cuts messages at 64 kB.
 * Ownership   An object that a function hands out belongs to the caller, who ends it with the matching destroy or close. An
 *             argument is borrowed until the function returns; the few exceptions say so. Memory is freed by the side that
 *             made it. A handle is handed out once: a second owner would destroy it a second time. Its address may be handed
 *             out again after its destroy or, of an input, its donation.
 * Errors      A function that can fail returns an ltc_status, NULL for success, made with ltc_host_api::status_create; the
 *             receiver destroys it. After an error every out parameter is unchanged and nothing has been submitted or
 *             consumed; event_wait alone is different, and says how. No C++ exception leaves a function, and nothing ends or
 *             aborts the process. Any function may answer INTERNAL, and any that works on a device DEVICE_LOST; other codes as
 *             listed.
 * Unknowns    Flag bits and enumerators that the reader does not know are refused with LTC_UNSUPPORTED, never ignored. A status
 *             code that the host does not know reads as LTC_INTERNAL.
 * Vendors     Dtypes, attribute kinds, codes and flags from 0x10000 are vendors' own and never this ABI's. A vendor's extension
 *             kind is its vendor id (sdk/CHANGELOG.md lists them) << 16, and what it likes below. Names of options that begin
 *             with "ltc." are this ABI's.
 * Threads     The host calls one `transfer` or `execute` of a device at a time. Everything else may be called from any thread at
 *             any time, while other calls on the same objects run: a buffer_create during an execute of the same device, for
 *             example. Only an object's destroy or close comes alone. LTC_PLUGIN_ONE_CALL_AT_A_TIME lifts all this from a
 *             plugin. Functions of ltc_host_api may be called from any thread and never call back into the plugin.
 * Order       A device is one in-order queue. Work may run side by side and in any order as long as nobody can tell. An event is
 *             over only when all that was submitted to its device before it is; a NULL event says nothing of earlier work. Work
 *             goes on without further calls. buffer_destroy and executable_destroy take effect in queue order, so both are legal
 *             while submitted work still uses the object. There is no order between devices.
 * Failure     Work that fails while it runs reports through its event. It does not stop the queue: later work runs, what the
 *             failed work was to write is unspecified but allocated, and the host treats all that depends on it as failed.
 *             Kernels stay memory-safe for any contents of index tensors. DEVICE_LOST is sticky: every later submit fails
 *             with it, every wait ends in bounded time, destroys still work. The host closes a lost device once nothing uses it
 *             any more, and opens the ordinal again; what lived on it is lost.
 * Numbers     Loading the library and calling a function leave how the calling thread computes floating-point numbers as it was:
 *             rounding, subnormal numbers (FTZ, DAZ), trapped exceptions. It is a thread of the user's program. Beware of
 *             linking with -ffast-math: some compilers then add code that makes subnormal numbers zero in the thread that
 *             loads the library. The host puts back what loading it changed, and what a function that returns a status
 *             changed, but for an event_wait that only asks.
 * Process     The host does not unload a plugin at exit and calls nothing in a forked child. Two hosts in one process may
 *             enter one library: each gets its own ltc_plugin.
 *
 * The lines "Codes" name the codes that a caller can act upon. */
#ifndef LTC_PLUGIN_H
#define LTC_PLUGIN_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32)
#define LTC_EXPORT __declspec(dllexport)
#else
#define LTC_EXPORT __attribute__((visibility("default")))
#endif

/* The calling convention of every function here: the one that is the default everywhere but may be changed on 32-bit Windows. */
#if defined(_WIN32) && !defined(_WIN64)
#define LTC_CALL __cdecl
#else
#define LTC_CALL
#endif

/* The version that this header describes.
 * Minor: fields and slots appended, new codes, dtypes, attribute kinds, flags, extension kinds. Old and new then work together
 *        in both directions, because the older side's version is the one agreed on.
 * Major: anything else. */
#define LTC_ABI_MAJOR 1u
#define LTC_ABI_MINOR 0u

/* Size of `type` up to and including `last`, so that tail padding never counts. */
#define LTC_SIZE_TO(type, last) (offsetof(type, last) + sizeof(((type*)0)->last))
/* Whether the side that filled *p knew `field`. */
#define LTC_HAS(p, type, field) ((p)->struct_size >= LTC_SIZE_TO(type, field))
/* No value, no node, no alias. */
#define LTC_NONE UINT32_MAX
/* A timeout that never ends. */
#define LTC_FOREVER UINT64_MAX

/* ---- small things ------------------------------------------------------------------------------- */

/* Ordered by major, then minor. Frozen. */
typedef struct ltc_version {
  uint32_t major;
  uint32_t minor;
} ltc_version;

/* Head of every optional addition; chained into the `ext` field of the struct that it extends. The side that fills that struct
 * owns the chain, for as long as the struct.
 *
 * Each side lists the kinds that it reads: the plugin in ltc_plugin_api::ext, the host in ltc_host_api::ext. A list is a chain of
 * bare heads, unless the extension brings functions (ltc/collective.h); `version` is there the newest of the kind that its owner
 * reads. A sender sends only kinds that the other side lists, in at most that version, and `version` then says how much of the
 * extension is filled. A reader skips kinds that it does not know.
 *
 * Bit 31 of a kind, LTC_EXTENSION_REQUIRED, counts in the plugin's list only: without the kind the plugin cannot work, and a host
 * that does not know the kind refuses the plugin. Everywhere a kind is compared without that bit (LTC_EXTENSION_KIND). */
typedef struct ltc_extension {
  size_t struct_size;               /* of the whole extension; in a list of the head */
  uint32_t kind;                    /* from 0x10000: vendors' own */
  uint32_t version;                 /* of this kind, from 1 */
  const struct ltc_extension* next; /* may be NULL: the last */
} ltc_extension;
#define LTC_EXTENSION_REQUIRED 0x80000000u
#define LTC_EXTENSION_KIND(extension) ((extension)->kind & ~LTC_EXTENSION_REQUIRED)

/* Frozen. */
typedef struct ltc_string {
  const char* data; /* may be NULL when size is 0 */
  size_t size;      /* bytes, without the NUL */
} ltc_string;

/* Takes bytes piece by piece. `write` copies them and answers false when it can take no more, for want of memory or beyond a
 * limit: give up then and return NULL; the host knows what went wrong. Called only during the call that was given the sink, by
 * its thread. Frozen. */
typedef struct ltc_sink {
  void* context; /* handed back to write; may be NULL */
  bool(LTC_CALL* write)(void* context, const void* data, size_t size);
} ltc_sink;

/* A setting of a plugin's instance, given at the entry. Lower case, with '_' between words. */
typedef struct ltc_option {
  size_t struct_size;
  ltc_string name;
  ltc_string value;
} ltc_option;

/* A setting that a plugin has. */
typedef struct ltc_option_info {
  size_t struct_size;
  ltc_string name;
  ltc_string default_value;
  ltc_string about; /* what it does and which values it takes, in one line for people */
} ltc_option_info;

/* An error: the host's object, opaque to the plugin, owned by whoever receives it. NULL is success. */
typedef struct ltc_status ltc_status;

typedef uint32_t ltc_code;
enum {
  LTC_INVALID_ARGUMENT = 1,   /* the caller broke the contract: a count, a type, an option */
  LTC_NOT_FOUND = 2,          /* no such device, file, kernel */
  LTC_UNSUPPORTED = 3,        /* legal, but this plugin or device cannot do it */
  LTC_RESOURCE_EXHAUSTED = 4, /* out of memory or another resource; may work after some is freed */
  LTC_DEVICE_LOST = 5,        /* the device is gone; sticky */
  LTC_CANCELLED = 6,          /* given up on request or because the device closes */
  LTC_TIMEOUT = 7,            /* the device's own time limit ended the work; not the answer to a wait that is not over */
  LTC_DATA_CORRUPT = 8,       /* bytes fail their own checks: a saved executable, a file */
  LTC_INTERNAL = 9,           /* a defect; every code not listed reads as this */
  LTC_OUT_OF_RANGE = 10       /* an element of an index tensor is out of range */
};

/* The plugin's objects, opaque to the host. */
typedef struct ltc_plugin ltc_plugin;         /* an instance, from ltc_plugin_entry to plugin_close */
typedef struct ltc_device ltc_device;         /* an open device and its queue */
typedef struct ltc_buffer ltc_buffer;         /* the memory of one value, of a fixed type */
typedef struct ltc_program ltc_program;       /* a graph in the vendor's own form */
typedef struct ltc_executable ltc_executable; /* a program that is ready to run */
typedef struct ltc_event ltc_event;           /* work that was submitted: pending, done, or failed */

/* Element types. Ids are for ever. A BOOL is one byte, 0 or 1. Types ending in _X2 hold two 4-bit elements per byte, low bits
 * first; a size of 8 is 8 bytes and so 16 elements. Quantisation is expressed by ops with scale operands, not by a type. */
typedef uint32_t ltc_dtype;
enum {
  LTC_BOOL = 1,
  LTC_U8 = 2,
  LTC_I8 = 3,
  LTC_I16 = 4,
  LTC_I32 = 5,
  LTC_I64 = 6,
  LTC_F16 = 7,
  LTC_BF16 = 8,
  LTC_F32 = 9,
  LTC_F64 = 10,
  LTC_C64 = 11,
  LTC_C128 = 12,
  LTC_U16 = 13,
  LTC_U32 = 14,
  LTC_U64 = 15,
  LTC_C32 = 16,
  LTC_F8_E4M3FN = 17,
  LTC_F8_E5M2 = 18,
  LTC_F8_E4M3FNUZ = 19,
  LTC_F8_E5M2FNUZ = 20,
  LTC_F8_E8M0FNU = 21,
  LTC_F4_E2M1FN_X2 = 22,
  LTC_I4_X2 = 23,
  LTC_U4_X2 = 24
};

/* ---- the graph ----------------------------------------------------------------------------------
 *
 * A graph is a list of nodes over numbered values. Each value is a dense array: a dtype and sizes, no strides, no layout, no
 * device. Values are made once: by a param or by one node. The structs are borrowed for the call that is given them.
 *
 * Ops        keep ATen's names and semantics, without aliasing: nothing is a view, nothing is written in place, every output
 *            is a fresh value. A name is "aten::add.Tensor", without the dot where the overload name is empty ("aten::neg").
 *            ltc_node::op is the op's stable id from the op set (ltc/opset.h), or 0 for one that is known by its name only.
 *            The operands and attributes of an op with an id are those of its schema in docs/opset.md, in every release and
 *            with every PyTorch. Another meaning is another op, of another id and another name.
 *            A plugin claims a node only if it knows each of its attributes by name and kind, and its number of inputs. It
 *            declines a node with one that it does not know, an argument that a newer PyTorch has for an op without id for
 *            example.
 *            An op whose schema writes arguments ("aten::addr.out", a custom op) is sent where it has no twin that returns them:
 *            its inputs are what they held, its outputs what they hold then, in the order of the schema, one per tensor that is
 *            given, and after them its results that are no such argument. "mine::scale_(Tensor(a!) x, float by) -> ()" has one
 *            input, x as it was, and one output, x as it is then. A plugin may decline it like any other op.
 * Operands   follow the order of the schema's arguments:
 *            - Tensor, Tensor?    one input; LTC_NONE where an optional one is absent.
 *            - Tensor[]           an INT attribute "<argument>.count" and that many inputs; of Tensor?[], LTC_NONE for one
 *                                 absent.
 *            - Scalar, float      constant: an attribute of the argument's name, present also when it equals the default
 *                                 (INT, FLOAT, BOOL; complex: FLOATS of 2; NONE for a Scalar? or float? that is absent).
 *                                 Varying from run to run: no attribute but one input, which is a scalar param.
 *            - all others         an attribute of the argument's name, or none: then the default of the op set's schema holds,
 *                                 or of PyTorch's for an op without id.
 *                                 int: INT. bool: BOOL. str: STRING. ScalarType: DTYPE. int[], bool[]: INTS. float[]: FLOATS.
 *                                 str[]: STRINGS. An optional one that is given as None: NONE.
 *            memory_format, layout, device, pin_memory, non_blocking and generator are never sent.
 * Scalars    A scalar param has rank 0 and is F64, I64, BOOL or C128. As a tensor operand it is a Python number: it takes
 *            part in type promotion by its category only (bool < integer < float < complex), as PyTorch's wrapped numbers do.
 *            F32 tensor + F64 scalar param is F32.
 * Promotion  follows ATen of PyTorch 2.13: operands may differ in dtype, the op computes in the type that ATen would choose,
 *            and the type of its output says the result. Broadcasting likewise.
 * Outputs    A node's output may be LTC_NONE: not wanted. A graph's outputs are distinct values, and none is a param. The
 *            same value may be an input many times.
 * Movement   aten::as_strided, as_strided_scatter, view.dtype, reshape, permute, expand, slice.Tensor and their kind are
 *            functional and speak of the row-major contents of their operand; strides and offsets count its elements.
 * Random     "ltc::philox": uniform numbers. Inputs: seed, offset (I64 scalar params). Attributes: size (INTS), dtype
 *            (DTYPE). Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3; 2011), key
 *            {lo32(seed), hi32(seed)}. Block b has the counter {lo32(c), hi32(c), 0, 0}, c = offset + b modulo 2^64, and
 *            gives the words w[0..3].
 *              I32  element i, row-major: word i % 4 of block i / 4, as two's complement
 *              F32  element i: (that word >> 8) * 2^-24
 *              I64  element i: 64 bits, words 2 (i % 2) low and 2 (i % 2) + 1 high, of block i / 2
 *              F64  element i: (those bits >> 11) * 2^-53
 *            So a run uses the blocks from offset to offset + ceil(n / 4) or ceil(n / 2), exclusive, and every plugin gives
 *            the same bits.
 * Donation   has three parts. ltc_param::alias_output names the output that the param's buffer may become: same dtype, same
 *            size in bytes. ltc_execute_args::donate permits it for one run. After a submit that succeeded the input's handle
 *            is gone, whether its memory was reused or not. A donated input is no other input of the same run. A failed
 *            submit consumes nothing. */

/* The type of a value. */
typedef struct ltc_type {
  size_t struct_size;
  ltc_dtype dtype;
  uint32_t rank;
  const int64_t* sizes; /* rank of them, none negative; not NULL for rank 0 either */
} ltc_type;

typedef uint32_t ltc_attr_kind;
enum {
  LTC_ATTR_NONE = 1,   /* given as None; count 0 */
  LTC_ATTR_INT = 2,    /* value.ints[0]; count 1, as of all single values */
  LTC_ATTR_FLOAT = 3,  /* value.floats[0] */
  LTC_ATTR_BOOL = 4,   /* value.ints[0], 0 or 1 */
  LTC_ATTR_STRING = 5, /* value.strings[0] */
  LTC_ATTR_DTYPE = 6,  /* value.ints[0], an ltc_dtype */
  LTC_ATTR_INTS = 7,   /* value.ints[0..count) */
  LTC_ATTR_FLOATS = 8, /* value.floats[0..count) */
  LTC_ATTR_STRINGS = 9 /* value.strings[0..count) */
};

/* A constant argument of a node. */
typedef struct ltc_attr {
  size_t struct_size;
  ltc_string name; /* the argument's name in the schema */
  ltc_attr_kind kind;
  size_t count;
  union {
    const int64_t* ints;
    const double* floats;
    const ltc_string* strings;
  } value; /* NULL when count is 0 */
} ltc_attr;

/* One op applied. */
typedef struct ltc_node {
  size_t struct_size;
  uint32_t op;     /* the op set's id, or 0: known by name only */
  ltc_string name; /* "aten::mul.Tensor"; always given */
  size_t input_count;
  const uint32_t* inputs; /* value ids, or LTC_NONE: not given */
  size_t output_count;
  const uint32_t* outputs; /* value ids, or LTC_NONE: not wanted */
  size_t attr_count;
  const ltc_attr* const* attrs; /* find them by name */
  ltc_string location;          /* the user's source line, for messages; may be empty */
} ltc_node;

enum { LTC_PARAM_SCALAR = 1u /* passed by value in ltc_execute_args::scalars */ };

/* A value that a run is given. */
typedef struct ltc_param {
  size_t struct_size;
  uint32_t value;        /* value id */
  uint32_t flags;        /* LTC_PARAM_ bits */
  uint32_t alias_output; /* index into ltc_graph::outputs, or LTC_NONE; two params never name the same */
} ltc_param;

/* A program to be. */
typedef struct ltc_graph {
  size_t struct_size;
  const ltc_extension* ext; /* may be NULL, as every ext */
  size_t value_count;
  const ltc_type* const* types; /* by value id */
  size_t param_count;
  const ltc_param* const* params;
  size_t node_count;
  const ltc_node* const* nodes; /* operands before users */
  size_t output_count;
  const uint32_t* outputs; /* value ids, distinct, each made by a node */
} ltc_graph;

/* ---- what the host offers ----------------------------------------------------------------------- */

enum { LTC_LOG_TRACE = 0, LTC_LOG_DEBUG = 1, LTC_LOG_INFO = 2, LTC_LOG_WARN = 3, LTC_LOG_ERROR = 4 };

/* Filled by the host; valid from ltc_plugin_entry until plugin_close returns, or, where there is none, until the last device of
 * the instance is closed. All functions from any thread. All slots of the version that was agreed on are set. */
typedef struct ltc_host_api {
  size_t struct_size;
  const ltc_extension* ext; /* the extension kinds that the host reads; may be NULL */
  void* host;               /* first argument of the functions below; may be NULL */

  /* Makes an error. Never NULL, not even when memory is short.
   * code     decides which exception a PyTorch program catches: OUT_OF_RANGE is IndexError, UNSUPPORTED NotImplementedError.
   * node     index into the graph's nodes that the error is about, or LTC_NONE.
   * message  copied, at most 64 kB of it; `size` bytes of UTF-8, needs no NUL. Say what was wrong with which values; the host
   *          adds the user's line, the op, and the plugin's name. */
  ltc_status*(LTC_CALL* status_create)(void* host, ltc_code code, uint32_t node, const char* message, size_t size);

  /* The code of a status that the plugin holds; 0 for NULL, which is success. */
  ltc_code(LTC_CALL* status_code)(const ltc_status* status);

  /* Ends a status that the plugin made and does not return. NULL is allowed. */
  void(LTC_CALL* status_destroy)(ltc_status* status);

  /* Writes a line to the host's log, with the plugin's name. `message` is copied. Unknown levels read as LTC_LOG_ERROR. */
  void(LTC_CALL* log)(void* host, int32_t level, const char* message, size_t size);

  /* Whether such a line would be written; ask before building a costly one. */
  bool(LTC_CALL* log_enabled)(void* host, int32_t level);

  /* Data that a plugin makes besides executables and wants to find again in another process: compiled kernels, measured choices.
   * The host keeps it on disk, checks it, bounds its size, and forgets what was not used for long. Never needed to be right. Both
   * may read or write a disk.
   * key    all that the bytes depend on: versions, the device, the source. The host adds the plugin's name.
   * about  a line for people who list the cache.
   * cache_find hands the bytes to `value` in one write and answers whether there were any. */
  bool(LTC_CALL* cache_find)(void* host, const ltc_string* key, const ltc_sink* value);
  void(LTC_CALL* cache_insert)(void* host, const ltc_string* key, const ltc_string* about, const ltc_string* value);

  /* Whether a thread of the program waits for something that this plugin was given to do. While none does, the program is busy on
   * the host's processors: a plugin that computes on them, too, leaves it one. Changes at any time; costs no more than a load, so
   * it may be asked before each kernel. */
  bool(LTC_CALL* is_awaited)(void* host);
} ltc_host_api;

/* ---- arguments and facts ------------------------------------------------------------------------ */

/* A plugin with a sanitizer is refused by a host without it. */
enum { LTC_SANITIZER_ADDRESS = 1u, LTC_SANITIZER_THREAD = 2u, LTC_SANITIZER_MEMORY = 4u };

enum {
  /* The plugin has no locks: the host never enters two of its slots at once, of all its devices together. Only for a plugin
   * without event slots; with them the flag is refused. */
  LTC_PLUGIN_ONE_CALL_AT_A_TIME = 1u
};

/* Written by describe. Strings live until plugin_close returns, or, where there is none, until the last device of the instance is
 * closed. */
typedef struct ltc_plugin_info {
  size_t struct_size;
  const ltc_extension* ext;
  ltc_string name;          /* "OpenCL" */
  ltc_string version;       /* the plugin's own */
  ltc_string build_id;      /* tells two builds apart; may be empty */
  ltc_string why_no_device; /* for device_count 0: what is missing and what to do, in one sentence; else empty */
  uint32_t device_count;    /* at most 127, of all backends together: PyTorch numbers devices in 8 bits; more are refused */
  uint32_t sanitizers;      /* LTC_SANITIZER_ bits that it was built with */
  uint32_t flags;           /* LTC_PLUGIN_ bits */
  ltc_string licence;       /* SPDX expression, "Apache-2.0"; may be empty */
  size_t option_count;
  const ltc_option_info* const* options; /* those that the entry takes; live as the strings do */
} ltc_plugin_info;

typedef struct ltc_device_args {
  size_t struct_size;
  const ltc_extension* ext;
  uint32_t ordinal; /* below ltc_plugin_info::device_count */
} ltc_device_args;

enum {
  LTC_DEVICE_PEER_COPY = 1u,    /* LTC_ON_DEVICE transfers accept a source of another device of this instance */
  LTC_DEVICE_QUICK_COMPILE = 2u /* effort 0 is several times faster to compile than effort 1: the host asks for it where it does
                                 * not expect a program to run often, and for more once it does */
};

/* Written by device_open. Strings live until device_close returns. */
typedef struct ltc_device_info {
  size_t struct_size;
  const ltc_extension* ext;
  ltc_string name;        /* "NVIDIA H200" */
  ltc_string fingerprint; /* all that a saved executable depends on: driver, architecture, plugin build, and settings and
                           * environment that change what is claimed or made */
  uint64_t dtypes;        /* bit per ltc_dtype id that buffers may have, at least one: the host asks for no other; without F64 it
                           * sends F32 for it, for C128 C64 */
  uint64_t memory_bytes;  /* 0: unknown */
  uint64_t flags;         /* LTC_DEVICE_ bits */
} ltc_device_info;

typedef struct ltc_buffer_args {
  size_t struct_size;
  const ltc_extension* ext;
  const ltc_type* type;
} ltc_buffer_args;

typedef uint32_t ltc_direction;
enum { LTC_TO_DEVICE = 1, LTC_FROM_DEVICE = 2, LTC_ON_DEVICE = 3 };

/* A copy. The host side is dense row-major of the buffer's type; offsets and sizes count its bytes, whatever layout the
 * device keeps. */
typedef struct ltc_transfer_args {
  size_t struct_size;
  const ltc_extension* ext;
  ltc_direction direction;
  uint32_t flags;        /* there are none in this version: 0 */
  ltc_buffer* buffer;    /* the device side; for LTC_ON_DEVICE the one written */
  uint64_t offset_bytes; /* into buffer */
  uint64_t size_bytes;   /* may be 0 */
  const void* from;      /* LTC_TO_DEVICE: host memory to read; else NULL */
  void* to;              /* LTC_FROM_DEVICE: host memory to write; else NULL */
  ltc_buffer* source;    /* LTC_ON_DEVICE: the buffer to read, not `buffer`; else NULL */
  uint64_t source_offset_bytes;
} ltc_transfer_args;

typedef struct ltc_claims_args {
  size_t struct_size;
  const ltc_extension* ext;
  const ltc_graph* graph;
} ltc_claims_args;

typedef struct ltc_lower_args {
  size_t struct_size;
  const ltc_extension* ext;
  const ltc_graph* graph;
} ltc_lower_args;

typedef struct ltc_compile_args {
  size_t struct_size;
  const ltc_extension* ext;
  const ltc_program* program;
  uint32_t effort; /* 0: ready soon .. 3: runs fastest; larger reads as 3. Results do not depend on it beyond rounding */
} ltc_compile_args;

/* The value of a scalar param, by its dtype. Frozen, 16 bytes. */
typedef union ltc_scalar {
  int64_t i;   /* I64, BOOL (0 or 1) */
  uint64_t u;  /* the same bits */
  double f;    /* F64 */
  double c[2]; /* C128: real, imaginary */
} ltc_scalar;

typedef struct ltc_execute_args {
  size_t struct_size;
  const ltc_extension* ext;
  ltc_executable* executable;
  size_t input_count;
  ltc_buffer* const* inputs; /* the params without LTC_PARAM_SCALAR, in order; of the types in the graph */
  const uint8_t* donate;     /* per input, 1: its handle is given away; may be NULL: none is */
  size_t scalar_count;
  const ltc_scalar* scalars; /* the params with LTC_PARAM_SCALAR, in order */
  size_t output_count;       /* of the graph */
  uint64_t run_id;           /* for traces: the same in all that belongs to one step */
} ltc_execute_args;

typedef struct ltc_load_args {
  size_t struct_size;
  const ltc_extension* ext;
  const void* data; /* what executable_save wrote, at a multiple of 64; from a file, so it may be damaged */
  size_t size;
} ltc_load_args;

/* Written by memory_stats. The host fills the fields with UINT64_MAX, which means unknown: leave what you do not know. */
typedef struct ltc_memory_stats {
  size_t struct_size;
  uint64_t in_use_bytes;
  uint64_t peak_bytes;
  uint64_t limit_bytes;
  uint64_t largest_free_bytes;
} ltc_memory_stats;

/* ---- what the plugin offers ---------------------------------------------------------------------
 *
 * The first 14 slots are the required ones, in three groups: memory always, computing all or none, asynchronous all or none.
 * The host checks this when it enters the plugin and refuses by the name of the missing slot. A slot of an absent group, and
 * every slot after the groups, may be NULL; the comment says what the host then does. */
typedef struct ltc_plugin_api {
  size_t struct_size;
  const ltc_extension* ext; /* the extension kinds that it reads; may be NULL */

  /* -- memory: required of every plugin -- */

  /* Says what the plugin is and how many devices there are now.
   * info  out: the host set struct_size and zeroed the rest. Having no device is not an error: device_count 0 and
   *       why_no_device.
   * May be called often, before any device is open and after. Loads and starts no more than counting needs. */
  ltc_status*(LTC_CALL* describe)(ltc_plugin* plugin, ltc_plugin_info* info);

  /* Opens a device and its queue. Opening an ordinal twice gives two independent queues, or RESOURCE_EXHAUSTED.
   * info    out: what the device is.
   * device  out: the caller's, until device_close.
   * Codes: NOT_FOUND no such ordinal; RESOURCE_EXHAUSTED, also: it is open already, and can be open only once; DEVICE_LOST. */
  ltc_status*(LTC_CALL* device_open)(ltc_plugin* plugin, const ltc_device_args* args, ltc_device_info* info, ltc_device** device);

  /* Ends a device: waits until its queue is empty, joins its threads, frees it. Every object that came from it is destroyed
   * before. Also for a lost device, in bounded time. */
  void(LTC_CALL* device_close)(ltc_device* device);

  /* Makes memory for one value; its contents are unspecified. A type without elements gives a buffer too.
   * args    type: borrowed. Layout, padding and alignment are the plugin's business.
   * buffer  out: the caller's, until buffer_destroy or a donation.
   * Codes: UNSUPPORTED the dtype; RESOURCE_EXHAUSTED no memory. That may also be the error of the first work that uses the
   * buffer. The host then waits until the device is idle, drops what it keeps for later, and asks once more; here, and of
   * transfer, compile and execute. */
  ltc_status*(LTC_CALL* buffer_create)(ltc_device* device, const ltc_buffer_args* args, ltc_buffer** buffer);

  /* Ends a buffer, in queue order: work that was submitted before may still use it, and does so safely. Never waits. */
  void(LTC_CALL* buffer_destroy)(ltc_buffer* buffer);

  /* Submits a copy between host memory and a buffer, or between two buffers.
   * args  host memory stays valid until the event is over. `source` may be of another device of this instance where both devices
   *       have LTC_DEVICE_PEER_COPY: the host has waited for what was to write it, and neither destroys, donates nor writes it
   *       until the event is over. The copy is ordered in the queue of `buffer` alone. Submits to the source's device may run
   *       meanwhile.
   * done  out, preset to NULL: left alone when the copy is complete on return; else the caller's event. A plugin without event
   *       slots completes the copy, and all work submitted before it, before it returns.
   * Codes: INVALID_ARGUMENT a range outside the buffer; UNSUPPORTED a copy of a part of a buffer, which the host then makes by
   * copies of the whole; RESOURCE_EXHAUSTED. May block for room in the queue. */
  ltc_status*(LTC_CALL* transfer)(ltc_device* device, const ltc_transfer_args* args, ltc_event** done);

  /* -- computing: all six or none. None: the host computes, with transfers -- */

  /* Says which nodes the device will run. The last question before lower: no claimed node is changed afterwards.
   * cluster  out: node_count entries, zeroed by the host. 0: not here, the host decomposes the op or runs it. 1: yes,
   *          whatever happens to its neighbours. k >= 2: yes, if all nodes of the same k end in one graph; else none of them.
   * Deterministic for the life of the device, since its answer becomes part of cached programs. */
  ltc_status*(LTC_CALL* claims)(ltc_device* device, const ltc_claims_args* args, uint32_t* cluster);

  /* Translates a graph of claimed nodes. The cheap half: what depends on the graph only.
   * args     graph: borrowed; copy what is needed later.
   * program  out: the caller's, until program_destroy.
   * Codes: UNSUPPORTED with the index of a node: the host partitions again without it, so a claim that proves wrong is never
   * fatal; UNSUPPORTED without a node: the host runs the whole graph itself. */
  ltc_status*(LTC_CALL* lower)(ltc_device* device, const ltc_lower_args* args, ltc_program** program);

  /* Ends a program. Executables made from it live on. */
  void(LTC_CALL* program_destroy)(ltc_program* program);

  /* Makes a program ready to run. The costly half: may take minutes, blocks no other function.
   * args        program: borrowed; may be compiled several times, with different effort.
   * executable  out: the caller's, until executable_destroy.
   * Codes: UNSUPPORTED, with a node where one is to blame: the host runs the whole graph itself; RESOURCE_EXHAUSTED. */
  ltc_status*(LTC_CALL* compile)(ltc_device* device, const ltc_compile_args* args, ltc_executable** executable);

  /* Ends an executable, in queue order: runs that were submitted before complete. Never waits. */
  void(LTC_CALL* executable_destroy)(ltc_executable* executable);

  /* Submits one run and, in an asynchronous plugin, returns before it is done.
   * args     inputs and executable are borrowed in queue order: the caller may destroy them once this returns. scalars and
   *          all arrays are borrowed until this returns. A donated input's handle is gone when this succeeds.
   * outputs  out: output_count buffers made by the plugin, each the caller's, usable at once in further submits: the queue
   *          orders them. Each is a buffer of its own, of the type in the graph: no other output and no input but a donated
   *          one, whose handle is gone. The host refuses a run that gives one twice.
   * done     out, preset to NULL: left alone when the run is complete and went well; else the caller's event, which no other call
   *          gave that is not destroyed.
   * A run that fails after it was submitted reports in its event: this returns NULL, every output is a valid buffer with
   * unspecified contents, donated inputs are consumed. One that has consumed nothing and made nothing had better answer with a
   * status: the host then repeats the step op by op, and only what depends on the op that failed is lost. So wait for what may
   * fail before donated memory is overwritten. A plugin that runs synchronously may give an event that is complete.
   * Codes: INVALID_ARGUMENT a count or type differs from the graph's; RESOURCE_EXHAUSTED no memory for an output; OUT_OF_RANGE an
   * index out of range, here or from the event, if the plugin looks: else the result is unspecified. May block for room in the
   * queue. */
  ltc_status*(LTC_CALL* execute)(ltc_device* device, const ltc_execute_args* args, ltc_buffer** outputs, ltc_event** done);

  /* -- asynchronous: both, or neither and every event stays NULL -- */

  /* Waits for submitted work.
   * timeout_ns  0: only asks; LTC_FOREVER: no limit.
   * finished    out, preset to false: true when the work is over, false when the time ran out, which is not an error.
   * With *finished true returns the error of the work: a new status each time, however often and from however many threads it is
   * asked. An error with *finished false: the wait itself failed, and the work may go on. Once the work is over no host memory of
   * it is touched any more, on a lost device too. Several threads may wait at once. For a lost device: DEVICE_LOST, in bounded
   * time. */
  ltc_status*(LTC_CALL* event_wait)(ltc_event* event, uint64_t timeout_ns, bool* finished);

  /* Ends an event. One that is pending is only forgotten: its work goes on. Not while a wait on it runs. */
  void(LTC_CALL* event_destroy)(ltc_event* event);

  /* -- optional; in brackets what the host does where the slot is NULL -- */

  /* Ends the instance, after its last device was closed. No call to ltc_host_api after it returns. [nothing: the last
   * device_close ends it] */
  void(LTC_CALL* plugin_close)(ltc_plugin* plugin);

  /* Writes the program as text for people, in the vendor's own notation. [prints the graph] */
  ltc_status*(LTC_CALL* program_text)(const ltc_program* program, const ltc_sink* sink);

  /* Writes the executable as bytes that executable_load accepts on a device of the same fingerprint, in another process too.
   * The sink takes at most 256 MB: larger ones are not kept.
   * Codes: UNSUPPORTED this one cannot be saved. [not kept on disk] */
  ltc_status*(LTC_CALL* executable_save)(const ltc_executable* executable, const ltc_sink* sink);

  /* Makes an executable from saved bytes. Checks them: they may be truncated, damaged, or of another version.
   * Every error means: compile again. Codes: DATA_CORRUPT, UNSUPPORTED another version. [compiles again] */
  ltc_status*(LTC_CALL* executable_load)(ltc_device* device, const ltc_load_args* args, ltc_executable** executable);

  /* Says how much memory the device's buffers and executables use. Never waits for the queue. [unknown] */
  ltc_status*(LTC_CALL* memory_stats)(ltc_device* device, ltc_memory_stats* stats);

  /* Says which outputs of a run that failed are good all the same: they hold what the graph says. Called after event_wait gave
   * the error of that run, and before event_destroy. good  out: output_count entries, as many as the run has, zeroed by the host.
   * 1: that output is good. [none is: the host computes again what it can, and the rest is lost] */
  ltc_status*(LTC_CALL* event_good_outputs)(ltc_event* event, size_t output_count, uint8_t* good);
} ltc_plugin_api;

/* ---- the entry ---------------------------------------------------------------------------------- */

/* The fields up to `reason`, ltc_version, ltc_string and the name of the entry are the same in every major version; what else
 * they point to is of the major version of the ranges. */
typedef struct ltc_entry_args {
  size_t struct_size;
  const ltc_extension* ext; /* the host's; may be NULL */
  const ltc_host_api* host; /* of the ranges' major version; valid as it says itself */
  ltc_version oldest;       /* in: the range that the host speaks. out, also on refusal: the range that the plugin speaks */
  ltc_version newest;       /* both of one major version: a host of several enters once for each, the newest first */
  /* out, zeroed by the host */
  ltc_version agreed;        /* the newest version in both ranges */
  const ltc_plugin_api* api; /* for that version; lives as long as the library */
  ltc_plugin* plugin;        /* this host's instance, the caller's until plugin_close; may be NULL for a plugin without state */
  const char* reason; /* on refusal: why, ends with NUL; the host copies it before its next call. May be NULL where the ranges say
                       * it all */
  /* in, of the ranges' major version: each name once. Refuse one that you do not know, with a reason that lists those that you
   * do, and a value that is not legal, with a reason that says which are. */
  size_t option_count;
  const ltc_option* const* options;
} ltc_entry_args;

/* The one exported function. Reads the host's range, writes its own, and either fills the rest and returns true, or returns
 * false: then there is no instance. ltc_agree of ltc/entry.h does the first half. Does little: devices are looked for in describe
 * and opened in device_open. Any thread; several hosts may enter. The library is a regular file, for the processor of the host.
 */
typedef bool LTC_CALL ltc_plugin_entry_fn(ltc_entry_args* args);
LTC_EXPORT bool LTC_CALL ltc_plugin_entry(ltc_entry_args* args);

#ifdef __cplusplus
}
#endif
#endif /* LTC_PLUGIN_H */
