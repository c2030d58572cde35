// Attention of F32 with a running softmax, and its gradients, one head at a time. Any thread.
#pragma once
#include <cstdint>

namespace ltc::cpu {

// Rows of a matrix that lie `stride` elements apart, each of elements side by side.
struct Rows {
  const float* data;
  int64_t stride;
  const float* row(int64_t i) const { return data + i * stride; }
};

struct WritableRows {
  float* data;
  int64_t stride;
  float* row(int64_t i) const { return data + i * stride; }
};

// One number per row.
struct Numbers {
  float* data;
  int64_t stride;
  float& operator[](int64_t i) const { return data[i * stride]; }
};

// Added to the scores; null for nothing.
struct Mask {
  const float* data;
  int64_t row_stride, column_stride;
};

// One head of one sequence. With `causal`, query i sees the keys up to i.
struct AttentionHead {
  Rows queries, keys, values;
  int64_t query_count, key_count, size;
  float scale;
  bool causal;
  Mask mask;
};

struct AttentionGradients {
  Rows of_out, out;
  Numbers log_sums;
  WritableRows queries, keys, values;
};

inline constexpr int64_t kQueriesTogether = 256;  // at most, for which keys and values are laid out anew

// Writes the rows of `out` and `log_sums` of the queries first .. last, kQueriesTogether at most.
void attend(const AttentionHead& head, int64_t first, int64_t last, const WritableRows& out, const Numbers& log_sums,
            float* scratch);
void attend_backward(const AttentionHead& head, const AttentionGradients& gradients, float* scratch);

// Elements of the scratch memory, which begins at a cache line.
int64_t attention_scratch(const AttentionHead& head);
int64_t attention_backward_scratch(const AttentionHead& head);

}  // namespace ltc::cpu
