#include "torchscript/ops/attention.h"

#include <ATen/EmptyTensor.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "cpu_kernels/attention.h"
#include "torchscript/threads/threads.h"

namespace ltc::torchscript {
namespace {

// Fewer queries are not worth to lay out keys and values anew.
constexpr int64_t kFewQueries = 8;
constexpr int64_t kManyKeys = 64;

constexpr int64_t kAttentionGrain = 1 << 20;  // multiplications; what takes less than waking a thread does is not divided

bool is_float(const at::Tensor& tensor) { return tensor.scalar_type() == at::kFloat && !tensor.is_neg() && tensor.numel() > 0; }

bool fits(const std::optional<at::Tensor>& mask, const at::Tensor& query, const at::Tensor& key) {
  if (!mask || !mask->defined()) return true;
  const int64_t rank = mask->dim(), scores[] = {query.size(0), query.size(1), query.size(2), key.size(2)};
  if (!is_float(*mask) || (rank != 2 && rank != 4)) return false;
  for (int64_t i = 4 - rank; i < 4; ++i) {
    if (const int64_t size = mask->size(i - (4 - rank)); size != 1 && size != scores[i]) return false;
  }
  return true;
}

bool is_ours(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, double dropout_p,
             const std::optional<at::Tensor>& mask) {
  return is_float(query) && is_float(key) && is_float(value) && query.dim() == 4 && key.dim() == 4 &&
         key.sizes() == value.sizes() && query.size(0) == key.size(0) && query.size(1) == key.size(1) &&
         query.size(3) == key.size(3) && dropout_p == 0 && fits(mask, query, key);
}

// Whether its rows are elements side by side.
bool has_rows(const at::Tensor& tensor) { return tensor.stride(3) == 1 || tensor.size(3) == 1; }

at::Tensor with_rows(const at::Tensor& tensor) { return has_rows(tensor) ? tensor : tensor.contiguous(); }

// ATen's kernels take for granted that rows are elements side by side and lie apart. Its callers see to it in eager.
at::Tensor for_aten(const at::Tensor& tensor) {
  const bool is_as_wanted = tensor.dim() != 4 || (tensor.stride(3) == 1 && tensor.stride(2) >= tensor.size(3));
  return is_as_wanted ? tensor : tensor.clone(at::MemoryFormat::Contiguous);
}

// A row of a mask may repeat one number.
std::optional<at::Tensor> mask_for_aten(const std::optional<at::Tensor>& mask) {
  if (!mask || !mask->defined() || mask->dim() == 0 || mask->size(-1) == 1 || mask->stride(-1) <= 1) return mask;
  return mask->contiguous();
}

// Laid out anew in the order of the tensor's dims in memory, but for the last, which has rows: what is made of a query is read as
// the query was written, often through the same views.
at::Tensor rows_like(const at::Tensor& tensor) {
  std::array<int64_t, 4> order = {0, 1, 2, 3}, back{}, sizes{};
  std::stable_sort(order.begin(), order.end() - 1, [&](int64_t a, int64_t b) { return tensor.stride(a) > tensor.stride(b); });
  for (size_t i = 0; i < order.size(); ++i) {
    back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
    sizes[i] = tensor.size(order[i]);
  }
  return at::Tensor(at::detail::empty_cpu(sizes, at::kFloat)).permute(back);
}

// A tensor [batch, heads, steps, size] of which one head is asked for at a time.
template <typename Rows, typename Element>
class HeadsOf {
 public:
  HeadsOf(Element* data, const at::Tensor& tensor)
      : data_(data), batch_(tensor.stride(0)), head_(tensor.stride(1)), row_(tensor.stride(2)) {}
  Rows operator()(int64_t batch, int64_t head) const { return {data_ + batch * batch_ + head * head_, row_}; }

 private:
  Element* const data_;
  const int64_t batch_, head_, row_;
};

HeadsOf<cpu::Rows, const float> heads_of(const at::Tensor& tensor) { return {tensor.const_data_ptr<float>(), tensor}; }
HeadsOf<cpu::WritableRows, float> writable_heads_of(const at::Tensor& tensor) {
  return {tensor.mutable_data_ptr<float>(), tensor};
}
HeadsOf<cpu::Numbers, float> numbers_of(const at::Tensor& tensor) {
  return {const_cast<float*>(tensor.const_data_ptr<float>()), tensor};
}

class Attention {
 public:
  Attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, bool is_causal,
            const std::optional<at::Tensor>& mask, std::optional<double> scale)
      : heads(query.size(1)),
        count(query.size(0) * heads),
        query_(with_rows(query)),
        key_(with_rows(key)),
        value_(with_rows(value)),
        queries_(heads_of(query_)),
        keys_(heads_of(key_)),
        values_(heads_of(value_)) {
    any_.query_count = query.size(2);
    any_.key_count = key.size(2);
    any_.size = query.size(3);
    any_.scale = static_cast<float>(scale.value_or(1 / std::sqrt(static_cast<double>(any_.size))));
    any_.causal = is_causal;
    any_.mask = {};
    if (!mask || !mask->defined()) return;
    mask_ = mask->expand({query.size(0), heads, any_.query_count, any_.key_count});
    any_.mask = {mask_.const_data_ptr<float>(), mask_.stride(2), mask_.stride(3)};
  }

  cpu::AttentionHead head(int64_t i) const {
    const int64_t batch = i / heads, head = i % heads;
    cpu::AttentionHead one = any_;
    one.queries = queries_(batch, head);
    one.keys = keys_(batch, head);
    one.values = values_(batch, head);
    if (one.mask.data) one.mask.data += batch * mask_.stride(0) + head * mask_.stride(1);
    return one;
  }

  // The shape of any of the heads.
  const cpu::AttentionHead& shape() const { return any_; }
  int64_t multiplications() const { return any_.query_count * any_.key_count * any_.size; }

  const int64_t heads, count;

 private:
  at::Tensor query_, key_, value_, mask_;
  HeadsOf<cpu::Rows, const float> queries_, keys_, values_;
  cpu::AttentionHead any_;
};

// Calls work(chunk, scratch) for all chunks.
template <typename Work>
void divide_with_scratch(int64_t chunks, int64_t multiplications_each, int64_t scratch_size, Work work) {
  divide(chunks, std::max<int64_t>(1, kAttentionGrain / multiplications_each), [&](int64_t begin, int64_t end) {
    at::Tensor scratch(at::detail::empty_cpu({scratch_size}, at::kFloat));
    float* const memory = scratch.mutable_data_ptr<float>();
    for (int64_t i = begin; i < end; ++i) work(i, memory);
  });
}

}  // namespace

std::tuple<at::Tensor, at::Tensor> attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                                             double dropout_p, bool is_causal, const std::optional<at::Tensor>& attn_mask,
                                             std::optional<double> scale) {
  const bool is_lookup =
      query.dim() == 4 && key.dim() == 4 && !is_causal && query.size(2) < kFewQueries && key.size(2) >= kManyKeys;
  if (is_lookup || !is_ours(query, key, value, dropout_p, attn_mask)) {
    return at::_scaled_dot_product_flash_attention_for_cpu(for_aten(query), for_aten(key), for_aten(value), dropout_p, is_causal,
                                                           mask_for_aten(attn_mask), scale);
  }
  const Attention all(query, key, value, is_causal, attn_mask, scale);
  at::Tensor out = rows_like(query);
  at::Tensor log_sums =
      at::Tensor(at::detail::empty_cpu({query.size(0), query.size(2), query.size(1)}, at::kFloat)).transpose(1, 2);
  const auto to = writable_heads_of(out);
  const auto to_log_sums = numbers_of(log_sums);
  const int64_t queries = query.size(2), blocks = (queries + cpu::kQueriesTogether - 1) / cpu::kQueriesTogether;
  divide_with_scratch(all.count * blocks, 2 * all.multiplications() / blocks, cpu::attention_scratch(all.shape()),
                      [&](int64_t i, float* scratch) {
                        const int64_t block = i % blocks, head = i / blocks, batch = head / all.heads;
                        cpu::attend(all.head(head), queries * block / blocks, queries * (block + 1) / blocks,
                                    to(batch, head % all.heads), to_log_sums(batch, head % all.heads), scratch);
                      });
  return {std::move(out), std::move(log_sums)};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> attention_backward(const at::Tensor& grad_out, const at::Tensor& query,
                                                                  const at::Tensor& key, const at::Tensor& value,
                                                                  const at::Tensor& out, const at::Tensor& logsumexp,
                                                                  double dropout_p, bool is_causal,
                                                                  const std::optional<at::Tensor>& attn_mask,
                                                                  std::optional<double> scale) {
  const bool fits = is_float(grad_out) && is_float(out) && is_float(logsumexp) && grad_out.sizes() == query.sizes() &&
                    out.sizes() == query.sizes() && logsumexp.sizes() == query.sizes().slice(0, 3);
  if (!fits || !is_ours(query, key, value, dropout_p, attn_mask)) {
    return at::_scaled_dot_product_flash_attention_for_cpu_backward(for_aten(grad_out), for_aten(query), for_aten(key),
                                                                    for_aten(value), for_aten(out), logsumexp, dropout_p,
                                                                    is_causal, mask_for_aten(attn_mask), scale);
  }
  const Attention all(query, key, value, is_causal, attn_mask, scale);
  const at::Tensor of_out = with_rows(grad_out), own_out = with_rows(out);
  at::Tensor of_query = rows_like(query), of_key = rows_like(key), of_value = rows_like(value);
  const auto of_outs = heads_of(of_out), outs = heads_of(own_out);
  const auto log_sums = numbers_of(logsumexp);
  const auto of_queries = writable_heads_of(of_query), of_keys = writable_heads_of(of_key),
             of_values = writable_heads_of(of_value);
  divide_with_scratch(
      all.count, 5 * all.multiplications(), cpu::attention_backward_scratch(all.shape()), [&](int64_t i, float* scratch) {
        const int64_t batch = i / all.heads, head = i % all.heads;
        const cpu::AttentionGradients gradients{of_outs(batch, head),    outs(batch, head),    log_sums(batch, head),
                                                of_queries(batch, head), of_keys(batch, head), of_values(batch, head)};
        cpu::attend_backward(all.head(i), gradients, scratch);
      });
  return {std::move(of_query), std::move(of_key), std::move(of_value)};
}

}  // namespace ltc::torchscript
