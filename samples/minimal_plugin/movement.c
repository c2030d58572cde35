/* Ops that only move elements, of whatever dtype. Each says where in its operand, or in its result, an element lies. */
#include "minimal.h"

static bool read_strided(struct call* call, const int64_t* strides, int64_t offset) {
  const struct array* out = call->out[0];
  const size_t bytes = element_bytes(out->dtype);
  int64_t to_strides[MAX_RANK];
  dense_strides(out->rank, out->sizes, to_strides);
  const char* from = (const char*)call->in[0]->data + offset * (int64_t)bytes;
  copy_strided(bytes, out->rank, out->sizes, out->data, to_strides, from, strides);
  return true;
}

/* Writes all of `from` into a part of the result. */
static void write_strided(struct call* call, const struct array* from, const int64_t* strides, int64_t offset) {
  const size_t bytes = element_bytes(from->dtype);
  int64_t from_strides[MAX_RANK];
  dense_strides(from->rank, from->sizes, from_strides);
  char* to = (char*)call->out[0]->data + offset * (int64_t)bytes;
  copy_strided(bytes, from->rank, from->sizes, to, strides, from->data, from_strides);
}

static int64_t wrap(int64_t dim, const struct array* x) { return dim < 0 ? dim + x->rank : dim; }

/* reshape, and view.dtype of the same bytes. */
static bool copy_all(struct call* call) {
  const struct array* out = call->out[0];
  memcpy(out->data, call->in[0]->data, (size_t)out->count * element_bytes(out->dtype));
  return true;
}

static bool permute(struct call* call) {
  const struct array* x = call->in[0];
  int64_t dense[MAX_RANK], strides[MAX_RANK];
  dense_strides(x->rank, x->sizes, dense);
  for (uint32_t dim = 0; dim < x->rank; ++dim) strides[dim] = dense[wrap(call->attrs[0].values[dim].i, x)];
  return read_strided(call, strides, 0);
}

static bool expand(struct call* call) {
  const struct array *x = call->in[0], *out = call->out[0];
  const uint32_t lacking = out->rank - x->rank;
  int64_t dense[MAX_RANK], strides[MAX_RANK] = {0};
  dense_strides(x->rank, x->sizes, dense);
  for (uint32_t dim = 0; dim < x->rank; ++dim) strides[lacking + dim] = x->sizes[dim] == 1 ? 0 : dense[dim];
  return read_strided(call, strides, 0);
}

static bool slice(struct call* call) {
  const struct array* x = call->in[0];
  const int64_t dim = wrap(attr_int(&call->attrs[0], 0), x), size = x->sizes[dim];
  int64_t start = attr_int(&call->attrs[1], 0), strides[MAX_RANK];
  if (start < 0) start += size;
  start = start < 0 ? 0 : start > size ? size : start;
  dense_strides(x->rank, x->sizes, strides);
  const int64_t offset = start * strides[dim];
  strides[dim] *= attr_int(&call->attrs[2], 1);
  return read_strided(call, strides, offset);
}

static bool flip(struct call* call) {
  const struct array* x = call->in[0];
  int64_t strides[MAX_RANK], offset = 0;
  dense_strides(x->rank, x->sizes, strides);
  for (size_t i = 0; i < call->attrs[0].count && x->rank > 0; ++i) {
    const int64_t dim = wrap(call->attrs[0].values[i].i, x);
    offset += (x->sizes[dim] - 1) * strides[dim];
    strides[dim] = -strides[dim];
  }
  return read_strided(call, strides, offset);
}

static bool as_strided(struct call* call) {
  int64_t strides[MAX_RANK];
  for (size_t i = 0; i < call->attrs[0].count; ++i) strides[i] = call->attrs[0].values[i].i;
  return read_strided(call, strides, attr_int(&call->attrs[1], 0));
}

static bool as_strided_scatter(struct call* call) {
  int64_t strides[MAX_RANK];
  for (size_t i = 0; i < call->attrs[0].count; ++i) strides[i] = call->attrs[0].values[i].i;
  copy_all(call);
  write_strided(call, call->in[1], strides, attr_int(&call->attrs[1], 0));
  return true;
}

static bool cat(struct call* call) {
  const struct array* out = call->out[0];
  const int64_t dim = wrap(attr_int(&call->attrs[0], 0), out);
  int64_t strides[MAX_RANK], offset = 0;
  dense_strides(out->rank, out->sizes, strides);
  for (size_t i = 0; i < call->in_count; ++i) {
    if (call->in[i]->rank != out->rank) continue; /* an empty vector, which joins anything */
    write_strided(call, call->in[i], strides, offset);
    offset += call->in[i]->sizes[dim] * strides[dim];
  }
  return true;
}

/* A negative amount crops. */
static bool pad(struct call* call) {
  const struct array *x = call->in[0], *out = call->out[0];
  const size_t bytes = element_bytes(out->dtype);
  const struct attr* amounts = &call->attrs[0]; /* before and after, from the last dim on */
  uint64_t element = 0;
  int64_t sizes[MAX_RANK], from_strides[MAX_RANK], to_strides[MAX_RANK], from = 0, to = 0;
  dense_strides(x->rank, x->sizes, from_strides);
  dense_strides(out->rank, out->sizes, to_strides);
  memcpy(sizes, x->sizes, sizeof sizes);
  for (size_t i = 0; i < amounts->count; ++i) {
    const uint32_t dim = x->rank - 1 - (uint32_t)i / 2;
    const int64_t amount = amounts->values[i].i, cropped = amount < 0 ? -amount : 0;
    sizes[dim] = sizes[dim] > cropped ? sizes[dim] - cropped : 0;
    if (i % 2 == 0) from += cropped * from_strides[dim], to += (amount + cropped) * to_strides[dim];
  }
  read_number(call->in[1], &call->attrs[1], out->dtype, &element);
  for (int64_t i = 0; i < out->count; ++i) memcpy((char*)out->data + i * (int64_t)bytes, &element, bytes);
  copy_strided(bytes, x->rank, sizes, (char*)out->data + to * (int64_t)bytes, to_strides,
               (const char*)x->data + from * (int64_t)bytes, from_strides);
  return true;
}

const struct op movement_ops[] = {
    {"aten::view.dtype", "B:B", {0}, {copy_all}},
    {"aten::reshape", "T:T", {0}, {ALL(copy_all)}},
    {"aten::permute", "T:T", {"dims"}, {ALL(permute)}},
    {"aten::expand", "T:T", {0}, {ALL(expand)}},
    {"aten::slice.Tensor", "T:T", {"dim", "start", "step"}, {ALL(slice)}},
    {"aten::constant_pad_nd", "Ts:T", {"pad", "value"}, {ALL(pad)}},
    {"aten::cat", "+:T", {"dim"}, {ALL(cat)}},
    {"aten::flip", "T:T", {"dims"}, {ALL(flip)}},
    {"aten::as_strided", "T:T", {"stride", "storage_offset"}, {ALL(as_strided)}},
    {"aten::as_strided_scatter", "TT:T", {"stride", "storage_offset"}, {ALL(as_strided_scatter)}},
    {0},
};
