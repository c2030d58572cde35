/* A cuDNN for tests, on memory of the host, F32, F64, F16 and BF16: convolutions as its documentation defines them, one term
   after the other. It refuses what the real one refuses: sizes that do not agree, an algorithm that was not offered, no stream.
 */
#include "elements.h"
#include "in_stream.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { kMost = 5, kBad = 3000, kAlgorithm = 7, kBF16 = 9, kExact = 3 };

typedef struct {
  int type, rank, sizes[kMost], strides[kMost];
} Tensor;
typedef struct {
  int dims, padding[kMost], stride[kMost], dilation[kMost], groups, math, offered, compute;
} How;
typedef struct {
  void* stream;
} Context;
typedef struct {
  int algorithm, status;
  float time;
  size_t memory;
  int determinism, math, reserved[3];
} Found;

int cudnnCreate(Context** handle) { return (*handle = calloc(1, sizeof(Context))) ? 0 : kBad; }
int cudnnDestroy(Context* handle) { return free(handle), 0; }
int cudnnSetStream(Context* handle, void* stream) { return handle->stream = stream, 0; }
const char* cudnnGetErrorString(int status) { return status == 0 ? "success" : "refused by the stub"; }

int cudnnCreateTensorDescriptor(Tensor** tensor) { return (*tensor = calloc(1, sizeof(Tensor))) ? 0 : kBad; }
int cudnnDestroyTensorDescriptor(Tensor* tensor) { return free(tensor), 0; }
int cudnnSetTensorNdDescriptor(Tensor* tensor, int type, int rank, const int* sizes, const int* strides) {
  if (rank < 4 || rank > kMost) return kBad;
  tensor->type = type;
  tensor->rank = rank;
  memcpy(tensor->sizes, sizes, (size_t)rank * sizeof *sizes);
  memcpy(tensor->strides, strides, (size_t)rank * sizeof *strides);
  return 0;
}
int cudnnCreateFilterDescriptor(Tensor** filter) { return cudnnCreateTensorDescriptor(filter); }
int cudnnDestroyFilterDescriptor(Tensor* filter) { return free(filter), 0; }
int cudnnSetFilterNdDescriptor(Tensor* filter, int type, int format, int rank, const int* sizes) {
  int strides[kMost], stride = 1;
  if (format != 0 || rank < 4 || rank > kMost) return kBad;
  for (int i = rank; i-- > 0; stride *= sizes[i]) strides[i] = stride;
  return cudnnSetTensorNdDescriptor(filter, type, rank, sizes, strides);
}

int cudnnCreateConvolutionDescriptor(How** how) { return (*how = calloc(1, sizeof(How))) ? 0 : kBad; }
int cudnnDestroyConvolutionDescriptor(How* how) { return free(how), 0; }
int cudnnSetConvolutionNdDescriptor(How* how, int dims, const int* padding, const int* stride, const int* dilation, int mode,
                                    int compute) {
  if (dims < 2 || dims > 3 || mode != 1 || compute > kF64) return kBad;
  how->compute = compute;
  how->dims = dims;
  how->groups = 1;
  memcpy(how->padding, padding, (size_t)dims * sizeof *padding);
  memcpy(how->stride, stride, (size_t)dims * sizeof *stride);
  memcpy(how->dilation, dilation, (size_t)dims * sizeof *dilation);
  return 0;
}
int cudnnSetConvolutionMathType(How* how, int math) { return how->math = math, 0; }
int cudnnSetConvolutionGroupCount(How* how, int groups) { return how->groups = groups, 0; }

static int agree(const Tensor* x, const Tensor* w, const How* how, const Tensor* y) {
  const int rank = how->dims + 2;
  const int type = x->type;
  if (type != kF32 && type != kF64 && type != kF16 && type != kBF16) return 0;
  if (w->type != type || y->type != type || (type == kF64) != (how->compute == kF64) || x->rank != rank || w->rank != rank ||
      y->rank != rank)
    return 0;
  if (x->sizes[0] != y->sizes[0] || x->sizes[1] != w->sizes[1] * how->groups || y->sizes[1] != w->sizes[0]) return 0;
  for (int i = 0; i < how->dims; ++i) {
    const int reach = x->sizes[i + 2] + 2 * how->padding[i] - how->dilation[i] * (w->sizes[i + 2] - 1) - 1;
    if (reach / how->stride[i] + 1 != y->sizes[i + 2]) return 0;
  }
  return 1;
}

/* The quickest is not deterministic, the next wants too much room. */
static int offer(int fits, How* how, int asked, int* count, Found* found) {
  if (!fits || asked < 3) return kBad;
  const Found all[3] = {
      {1, 0, 1, 0, 0, 0, {0}}, {2, 0, 2, (size_t)1 << 40, 1, 0, {0}}, {kAlgorithm, 0, 3, 64, 1, how->math, {0}}};
  memcpy(found, all, sizeof all);
  how->offered = how->math;
  *count = 3;
  return 0;
}
int cudnnGetConvolutionForwardAlgorithm_v7(Context* handle, Tensor* x, Tensor* w, How* how, Tensor* y, int asked, int* count,
                                           Found* found) {
  return handle ? offer(agree(x, w, how, y), how, asked, count, found) : kBad;
}
int cudnnGetConvolutionBackwardDataAlgorithm_v7(Context* handle, Tensor* w, Tensor* dy, How* how, Tensor* dx, int asked,
                                                int* count, Found* found) {
  return handle ? offer(agree(dx, w, how, dy), how, asked, count, found) : kBad;
}
int cudnnGetConvolutionBackwardFilterAlgorithm_v7(Context* handle, Tensor* x, Tensor* dy, How* how, Tensor* dw, int asked,
                                                  int* count, Found* found) {
  return handle ? offer(agree(x, dw, how, dy), how, asked, count, found) : kBad;
}

static long elements(const Tensor* t) {
  long count = 1;
  for (int i = 0; i < t->rank; ++i) count *= t->sizes[i];
  return count;
}

/* Where the mathematics are not those of F32, what TF32 keeps. */
static double operand(const How* how, const void* memory, int type, long at) {
  const double value = load_element(memory, type, at);
  return how->math == kExact || type != kF32 ? value : to_tf32(value);
}

/* A convolution with all that describes it, since that may change before the stream comes to it. */
typedef struct {
  Tensor x, w, y;
  How how;
  void *xs, *ws, *ys;
  char written;
} Call;

/* Called for each element of y and of the filter that meet. */
static void add(const Call* call, double* sums, long in_y, long in_x, long in_w) {
  const int type = call->x.type;
  const double x = call->written == 'x' ? 0 : operand(&call->how, call->xs, type, in_x);
  const double w = call->written == 'w' ? 0 : operand(&call->how, call->ws, type, in_w);
  const double y = call->written == 'y' ? 0 : operand(&call->how, call->ys, type, in_y);
  double* to = sums + (call->written == 'x' ? in_x : call->written == 'w' ? in_w : in_y);
  const double term = call->written == 'x' ? y * w : call->written == 'w' ? y * x : x * w;
  *to = type == kF64 ? *to + term : (double)((float)*to + (float)term);
}
/* The written one is a sum of products of the other two. */
static void convolve(void* data) {
  const Call* call = data;
  const Tensor *x = &call->x, *w = &call->w, *y = &call->y;
  const How* how = &call->how;
  void* to = call->written == 'x' ? call->xs : call->written == 'w' ? call->ws : call->ys;
  const long count = elements(call->written == 'x' ? x : call->written == 'w' ? w : y);
  double* sums = calloc((size_t)count, sizeof *sums);
  const int dims = how->dims, per_group = w->sizes[0] / how->groups;
  for (long i = 0; i < elements(y); ++i) {
    for (long j = 0; j < elements(w) / w->sizes[0]; ++j) {
      long rest_y = i, rest_w = j, at = 0;
      int inside = 1;
      for (int d = dims; d-- > 0;) {
        const int from = (int)(rest_y % y->sizes[d + 2]) * how->stride[d] - how->padding[d] +
                         (int)(rest_w % w->sizes[d + 2]) * how->dilation[d];
        inside = inside && from >= 0 && from < x->sizes[d + 2];
        at += (long)from * x->strides[d + 2];
        rest_y /= y->sizes[d + 2];
        rest_w /= w->sizes[d + 2];
      }
      const int out = (int)(rest_y % y->sizes[1]), group = out / per_group;
      at += rest_y / y->sizes[1] * x->strides[0] + (long)(group * w->sizes[1] + (int)rest_w) * x->strides[1];
      if (inside) add(call, sums, i, at, (long)out * w->strides[0] + j);
    }
  }
  for (long i = 0; i < count; ++i) store_element(to, x->type, i, sums[i]);
  free(sums);
}
static int submit(const Context* handle, const Tensor* x, void* xs, const Tensor* w, void* ws, const How* how, int algorithm,
                  const void* alpha, const void* beta, const Tensor* y, void* ys, char written) {
  if (!agree(x, w, how, y) || algorithm != kAlgorithm || how->math != how->offered || !handle->stream ||
      !is_number(x->type == kF64, alpha, 1) || !is_number(x->type == kF64, beta, 0))
    return kBad;
  const Call call = {*x, *w, *y, *how, xs, ws, ys, written};
  Call* kept = malloc(sizeof call);
  memcpy(kept, &call, sizeof call);
  return stub_in_stream(handle->stream, convolve, kept);
}
int cudnnConvolutionForward(Context* handle, const void* alpha, Tensor* x, void* xs, Tensor* w, void* ws, How* how, int algorithm,
                            void* workspace, size_t bytes, const void* beta, Tensor* y, void* ys) {
  return workspace && bytes >= 64 ? submit(handle, x, xs, w, ws, how, algorithm, alpha, beta, y, ys, 'y') : kBad;
}
int cudnnConvolutionBackwardData(Context* handle, const void* alpha, Tensor* w, void* ws, Tensor* dy, void* ys, How* how,
                                 int algorithm, void* workspace, size_t bytes, const void* beta, Tensor* dx, void* xs) {
  return workspace && bytes >= 64 ? submit(handle, dx, xs, w, ws, how, algorithm, alpha, beta, dy, ys, 'x') : kBad;
}
int cudnnConvolutionBackwardFilter(Context* handle, const void* alpha, Tensor* x, void* xs, Tensor* dy, void* ys, How* how,
                                   int algorithm, void* workspace, size_t bytes, const void* beta, Tensor* dw, void* ws) {
  return workspace && bytes >= 64 ? submit(handle, x, xs, dw, ws, how, algorithm, alpha, beta, dy, ys, 'w') : kBad;
}
