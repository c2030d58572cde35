/* A driver with two devices for tests: memory, copies, streams and events, on the host. A stream runs when somebody waits for it
   and no sooner, and whatever it waits for first, so that an order that nobody asked for is seldom met. It computes nothing. */
#include <cuda.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

enum { kDevices = 2 };

struct CUctx_st {
  int device, pushed;
};
struct work {
  enum { kCopy, kFree, kWait } kind;
  void* to;
  const void* from;
  size_t bytes;
  struct CUstream_st* other;
  size_t until;
};
struct CUstream_st {
  struct work* queue; /* from `done` on */
  size_t submitted, done, room;
};
struct CUevent_st {
  struct CUstream_st* stream;
  size_t place;
};
struct CUmemPoolHandle_st {
  int device, readers;
};

static struct CUctx_st contexts[kDevices] = {{0, 0}, {1, 0}};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local struct CUctx_st* current[8];
static _Thread_local int depth;

/* ---- streams */

static void submit(struct CUstream_st* stream, struct work work) {
  pthread_mutex_lock(&lock);
  const size_t count = stream->submitted - stream->done;
  if (count == stream->room) stream->queue = realloc(stream->queue, (stream->room = 2 * count + 16) * sizeof work);
  stream->queue[count] = work;
  ++stream->submitted;
  pthread_mutex_unlock(&lock);
}
static void run_locked(struct CUstream_st* stream, size_t until) {
  while (stream->done < until) {
    const struct work work = stream->queue[0];
    memmove(stream->queue, stream->queue + 1, (stream->submitted - ++stream->done) * sizeof work);
    if (work.kind == kCopy) memmove(work.to, work.from, work.bytes);
    if (work.kind == kFree) free(work.to);
    if (work.kind == kWait) run_locked(work.other, work.until);
  }
}
static void run(struct CUstream_st* stream, size_t until) {
  pthread_mutex_lock(&lock);
  run_locked(stream, until);
  pthread_mutex_unlock(&lock);
}
static CUresult copy(CUstream stream, void* to, const void* from, size_t bytes) {
  const struct work work = {kCopy, to, from, bytes, NULL, 0};
  if (depth == 0) return CUDA_ERROR_INVALID_CONTEXT;
  submit(stream, work);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuStreamCreate(CUstream* stream, unsigned flags) {
  (void)flags;
  return (*stream = calloc(1, sizeof **stream)) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
EXPORT CUresult cuStreamDestroy_v2(CUstream stream) {
  run(stream, stream->submitted);
  free(stream->queue);
  free(stream);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuStreamSynchronize(CUstream stream) { return run(stream, stream->submitted), CUDA_SUCCESS; }
EXPORT CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
  const struct work work = {kWait, NULL, NULL, 0, event->stream, event->place};
  if (flags || !event->stream) return CUDA_ERROR_INVALID_VALUE;
  submit(stream, work);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuEventCreate(CUevent* event, unsigned flags) {
  (void)flags;
  return (*event = calloc(1, sizeof **event)) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
EXPORT CUresult cuEventDestroy_v2(CUevent event) { return free(event), CUDA_SUCCESS; }
EXPORT CUresult cuEventRecord(CUevent event, CUstream stream) {
  event->stream = stream;
  event->place = stream->submitted;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuEventQuery(CUevent event) { return event->stream->done >= event->place ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY; }
EXPORT CUresult cuEventSynchronize(CUevent event) { return run(event->stream, event->place), CUDA_SUCCESS; }

/* ---- devices */

EXPORT CUresult cuInit(unsigned flags) { return flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS; }
EXPORT CUresult cuDriverGetVersion(int* version) { return *version = 13000, CUDA_SUCCESS; }
EXPORT CUresult cuGetErrorName(CUresult error, const char** text) {
  *text = error == CUDA_ERROR_NOT_SUPPORTED ? "CUDA_ERROR_NOT_SUPPORTED" : "CUDA_ERROR";
  return CUDA_SUCCESS;
}
EXPORT CUresult cuGetErrorString(CUresult error, const char** text) {
  (void)error;
  return *text = "refused by the stub", CUDA_SUCCESS;
}
EXPORT CUresult cuDeviceGetCount(int* count) { return *count = kDevices, CUDA_SUCCESS; }
EXPORT CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  *device = ordinal;
  return ordinal < kDevices ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
EXPORT CUresult cuDeviceGetName(char* name, int length, CUdevice device) {
  snprintf(name, (size_t)length, "stub %d", device);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  (void)device;
  *value =
      attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? 9 : attribute == CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
  (void)device;
  return *bytes = (size_t)1 << 30, CUDA_SUCCESS;
}
EXPORT CUresult cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) { return *can = device != peer, CUDA_SUCCESS; }
EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  return *context = &contexts[device], CUDA_SUCCESS;
}
EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) { return (void)device, CUDA_SUCCESS; }
EXPORT CUresult cuCtxPushCurrent_v2(CUcontext context) {
  if (depth == 8) abort();
  current[depth++] = context;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuCtxPopCurrent_v2(CUcontext* context) {
  if (depth == 0) abort();
  *context = current[--depth];
  return CUDA_SUCCESS;
}

/* ---- memory */

EXPORT CUresult cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* properties) {
  if (!(*pool = calloc(1, sizeof **pool))) return CUDA_ERROR_OUT_OF_MEMORY;
  (*pool)->device = properties->location.id;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuMemPoolDestroy(CUmemoryPool pool) { return free(pool), CUDA_SUCCESS; }
EXPORT CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t bytes) { return (void)pool, (void)bytes, CUDA_SUCCESS; }
EXPORT CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc* access, size_t count) {
  const int ok = count == 1 && access->location.type == CU_MEM_LOCATION_TYPE_DEVICE && access->location.id != pool->device &&
                 !(pool->readers >> access->location.id & 1); /* once per pair */
  if (ok) pool->readers |= 1 << access->location.id;
  return ok ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
EXPORT CUresult cuMemAllocFromPoolAsync(CUdeviceptr* memory, size_t bytes, CUmemoryPool pool, CUstream stream) {
  void* made = bytes > (size_t)1 << 30 ? NULL : malloc(bytes);
  (void)stream;
  if (depth == 0 || current[depth - 1]->device != pool->device) return CUDA_ERROR_INVALID_CONTEXT;
  *memory = (CUdeviceptr)made;
  return made ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
EXPORT CUresult cuMemFreeAsync(CUdeviceptr memory, CUstream stream) {
  const struct work work = {kFree, (void*)memory, NULL, 0, NULL, 0};
  submit(stream, work);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuMemHostAlloc(void** memory, size_t bytes, unsigned flags) {
  (void)flags;
  return (*memory = malloc(bytes)) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
EXPORT CUresult cuMemFreeHost(void* memory) { return free(memory), CUDA_SUCCESS; }
EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  return copy(stream, (void*)to, from, bytes);
}
EXPORT CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return copy(stream, to, (const void*)from, bytes);
}
EXPORT CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return copy(stream, (void*)to, (const void*)from, bytes);
}
EXPORT CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes,
                                  CUstream stream) {
  if (!to_context || !from_context) return CUDA_ERROR_INVALID_CONTEXT;
  return copy(stream, (void*)to, (const void*)from, bytes);
}

/* ---- what it cannot do */

#define REFUSE(name, ...) \
  EXPORT CUresult name(__VA_ARGS__) { return CUDA_ERROR_NOT_SUPPORTED; }
REFUSE(cuStreamBeginCapture_v2, CUstream a, CUstreamCaptureMode b)
REFUSE(cuStreamEndCapture, CUstream a, CUgraph* b)
REFUSE(cuModuleLoadData, CUmodule* a, const void* b)
REFUSE(cuModuleGetFunction, CUfunction* a, CUmodule b, const char* c)
REFUSE(cuModuleUnload, CUmodule a)
REFUSE(cuLaunchKernel, CUfunction a, unsigned b, unsigned c, unsigned d, unsigned e, unsigned f, unsigned g, unsigned h,
       CUstream i, void** j, void** k)
REFUSE(cuGraphCreate, CUgraph* a, unsigned b)
REFUSE(cuGraphDestroy, CUgraph a)
REFUSE(cuGraphAddKernelNode_v2, CUgraphNode* a, CUgraph b, const CUgraphNode* c, size_t d, const CUDA_KERNEL_NODE_PARAMS* e)
REFUSE(cuGraphAddChildGraphNode, CUgraphNode* a, CUgraph b, const CUgraphNode* c, size_t d, CUgraph e)
REFUSE(cuGraphInstantiateWithFlags, CUgraphExec* a, CUgraph b, unsigned long long c)
REFUSE(cuGraphExecKernelNodeSetParams_v2, CUgraphExec a, CUgraphNode b, const CUDA_KERNEL_NODE_PARAMS* c)
REFUSE(cuGraphExecDestroy, CUgraphExec a)
REFUSE(cuGraphLaunch, CUgraphExec a, CUstream b)
