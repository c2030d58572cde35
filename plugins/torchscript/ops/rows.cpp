#include "torchscript/ops/rows.h"

#include <ATen/EmptyTensor.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/WrapDimUtilsMulti.h>
#include <ATen/ops/_softmax.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/native_layer_norm.h>
#include <ATen/ops/sum.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "cpu_kernels/rows.h"
#include "torchscript/threads/threads.h"

namespace ltc::torchscript {
namespace {

constexpr int64_t kColumns = 512;            // columns walked together: their sums stay in the L1 cache
constexpr int64_t kRows = 64;                // rows added up in float before they join the others
constexpr int64_t kParallelGrain = 1 << 16;  // elements; what takes less than waking a thread does is not divided

constexpr int64_t kSoftmaxSteps = 4;  // of the others, as long as one of softmax takes

int64_t grain(int64_t elements_each) { return std::max<int64_t>(1, kParallelGrain / std::max<int64_t>(1, elements_each)); }

void sum_rows(const float* x, int64_t rows, int64_t length, double scale, float* out) {
  const int64_t chunks = (length + cpu::kPiece - 1) / cpu::kPiece;
  if (rows >= chunks) {
    divide(rows, grain(length),
           [&](int64_t begin, int64_t end) { cpu::sum_rows(x + begin * length, end - begin, length, scale, out + begin); });
    return;
  }
  // Few and long: the chunks of each side by side.
  std::vector<float> sums(static_cast<size_t>(chunks));
  for (int64_t row = 0; row < rows; ++row) {
    const float* const from = x + row * length;
    divide(chunks, grain(cpu::kPiece), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        cpu::sum_rows(from + i * cpu::kPiece, 1, std::min(cpu::kPiece, length - i * cpu::kPiece), 1,
                      &sums[static_cast<size_t>(i)]);
      }
    });
    double total = 0;
    for (const float sum : sums) total += sum;
    out[row] = static_cast<float>(total * scale);
  }
}

void sum_columns(const float* x, int64_t rows, int64_t columns, double scale, float* out) {
  // Two threads at least get some.
  const int64_t width = std::clamp<int64_t>((columns / 2 + 63) / 64 * 64, 64, kColumns);
  const auto block = [&](int64_t first) {
    const int64_t count = std::min(width, columns - first);
    double totals[kColumns] = {};
    for (int64_t row = 0; row < rows; row += kRows) {
      float sums[kColumns] = {};
      cpu::add_rows(sums, x + row * columns + first, std::min(kRows, rows - row), count, columns);
      for (int64_t i = 0; i < count; ++i) totals[i] += sums[i];
    }
    for (int64_t i = 0; i < count; ++i) out[first + i] = static_cast<float>(totals[i] * scale);
  };
  divide((columns + width - 1) / width, grain(rows * width), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) block(i * width);
  });
}

// A reduction of a plain tensor: sums of rows where the last dims are reduced, of columns where the first ones are.
struct Reduction {
  Reduction(const at::Tensor& self, at::OptionalIntArrayRef dim, bool keepdim) {
    const auto mask = at::dim_list_to_bitset(dim && !dim->empty() ? dim : std::nullopt, static_cast<size_t>(self.dim()));
    std::vector<bool> reduced;  // of the dims that have more than one element
    for (int64_t i = 0; i < self.dim(); ++i) {
      if (self.size(i) != 1) reduced.push_back(mask[i]);
      if (!mask[i]) kept *= self.size(i);
      if (!mask[i] || keepdim) sizes.push_back(mask[i] ? 1 : self.size(i));
    }
    of_rows = std::is_sorted(reduced.begin(), reduced.end());
    of_columns = !of_rows && std::is_sorted(reduced.rbegin(), reduced.rend());
  }

  std::vector<int64_t> sizes;  // of the result
  int64_t kept = 1;            // its elements
  bool of_rows, of_columns;
};

// Columns that are few lie too near each other for loops over them.
constexpr int64_t kFewColumns = 32;

template <typename Theirs>
at::Tensor reduce(const at::Tensor& self, at::OptionalIntArrayRef dim, bool keepdim, std::optional<at::ScalarType> dtype,
                  bool is_mean, Theirs theirs) {
  if (!is_plain(self) || (dtype && *dtype != at::kFloat)) return theirs();
  const Reduction how(self, dim, keepdim);
  if (!how.of_rows && (!how.of_columns || how.kept < kFewColumns)) return theirs();
  at::Tensor out(at::detail::empty_cpu(how.sizes, at::kFloat));
  const int64_t each = self.numel() / how.kept;
  const double scale = is_mean ? 1.0 / static_cast<double>(each) : 1.0;
  const auto* const from = self.const_data_ptr<float>();
  auto* const to = out.mutable_data_ptr<float>();
  how.of_rows ? sum_rows(from, how.kept, each, scale, to) : sum_columns(from, each, how.kept, scale, to);
  return out;
}

}  // namespace

bool is_plain(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kFloat && tensor.is_contiguous() && !tensor.is_neg() && tensor.numel() > 0;
}

void add_to_rows(at::Tensor& x, const at::Tensor& bias, const at::Tensor& other, bool relu) {
  const int64_t length = x.size(-1);
  float* const to = x.mutable_data_ptr<float>();
  const float *const term = bias.const_data_ptr<float>(), *const more = other.defined() ? other.const_data_ptr<float>() : nullptr;
  divide(x.numel() / length, grain(length), [&](int64_t begin, int64_t end) {
    const int64_t first = begin * length;
    cpu::add_to_rows(to + first, end - begin, length, term, more ? more + first : nullptr, relu);
  });
}

at::Tensor sum(const at::Tensor& self, at::OptionalIntArrayRef dim, bool keepdim, std::optional<at::ScalarType> dtype) {
  return reduce(self, dim, keepdim, dtype, false, [&] { return at::sum(self, dim, keepdim, dtype); });
}

at::Tensor mean(const at::Tensor& self, at::OptionalIntArrayRef dim, bool keepdim, std::optional<at::ScalarType> dtype) {
  return reduce(self, dim, keepdim, dtype, true, [&] { return at::mean(self, dim, keepdim, dtype); });
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> native_layer_norm(const at::Tensor& input, at::IntArrayRef normalized_shape,
                                                                 const std::optional<at::Tensor>& weight,
                                                                 const std::optional<at::Tensor>& bias, double eps) {
  const auto rank = static_cast<int64_t>(normalized_shape.size());
  const auto data_of = [](const std::optional<at::Tensor>& tensor) {
    return tensor && tensor->defined() ? tensor->const_data_ptr<float>() : nullptr;
  };
  const auto fits = [&](const std::optional<at::Tensor>& tensor) {
    return !tensor || !tensor->defined() || (is_plain(*tensor) && tensor->sizes() == normalized_shape);
  };
  const bool is_ours = is_plain(input) && rank > 0 && rank <= input.dim() &&
                       input.sizes().slice(input.dim() - rank) == normalized_shape && fits(weight) && fits(bias) &&
                       (data_of(weight) || !data_of(bias));
  if (!is_ours) return at::native_layer_norm(input, normalized_shape, weight, bias, eps);
  std::vector<int64_t> rows_sizes(input.sizes().begin(), input.sizes().end());
  std::fill(rows_sizes.end() - rank, rows_sizes.end(), 1);
  at::Tensor out(at::detail::empty_cpu(input.sizes(), at::kFloat));
  at::Tensor means(at::detail::empty_cpu(rows_sizes, at::kFloat)), scales(at::detail::empty_cpu(rows_sizes, at::kFloat));
  const int64_t rows = means.numel(), length = input.numel() / rows;
  const auto* const from = input.const_data_ptr<float>();
  float *const to = out.mutable_data_ptr<float>(), *const mean_of = means.mutable_data_ptr<float>(),
               *const scale_of = scales.mutable_data_ptr<float>();
  const float *const weights = data_of(weight), *const biases = data_of(bias);
  divide(rows, grain(length), [&](int64_t begin, int64_t end) {
    cpu::layer_norm(from + begin * length, end - begin, length, weights, biases, eps,
                    {to + begin * length, mean_of + begin, scale_of + begin});
  });
  return {std::move(out), std::move(means), std::move(scales)};
}

at::Tensor embedding(const std::vector<c10::IValue>& operands) {
  const at::Tensor& weight = operands[0].toTensor();
  const bool is_ours = weight.dim() == 2 && weight.is_contiguous() && !weight.is_neg() && !weight.is_conj() &&
                       operands[1].toTensor().scalar_type() == at::kLong;
  if (!is_ours) return at::embedding(weight, operands[1].toTensor());
  const at::Tensor indices = operands[1].toTensor().contiguous();
  c10::SmallVector<int64_t, 4> sizes(indices.sizes().begin(), indices.sizes().end());
  sizes.push_back(weight.size(1));
  at::Tensor out(at::detail::empty_cpu(sizes, weight.scalar_type()));
  const int64_t rows = weight.size(0), row_bytes = weight.size(1) * static_cast<int64_t>(weight.element_size());
  const auto* const index = indices.const_data_ptr<int64_t>();
  const auto* const from = static_cast<const char*>(weight.const_data_ptr());
  auto* const to = static_cast<char*>(out.mutable_data_ptr());
  const auto is_bad = [rows](int64_t row) { return row < 0 || row >= rows; };
  TORCH_CHECK_INDEX(std::none_of(index, index + indices.numel(), is_bad), "index out of range in self");
  if (row_bytes == 0) return out;
  divide(indices.numel(), grain(weight.size(1)), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      std::memcpy(to + i * row_bytes, from + index[i] * row_bytes, static_cast<size_t>(row_bytes));
  });
  return out;
}

at::Tensor softmax(const at::Tensor& self, int64_t dim, bool half_to_float) {
  const bool is_ours =
      is_plain(self) && !half_to_float && self.dim() > 0 && at::maybe_wrap_dim(dim, self.dim()) == self.dim() - 1;
  if (!is_ours) return at::_softmax(self, dim, half_to_float);
  at::Tensor out(at::detail::empty_cpu(self.sizes(), at::kFloat));
  const auto* const from = self.const_data_ptr<float>();
  auto* const to = out.mutable_data_ptr<float>();
  const int64_t length = self.size(-1);
  divide(self.numel() / length, grain(kSoftmaxSteps * length),
         [&](int64_t begin, int64_t end) { cpu::softmax(from + begin * length, end - begin, length, to + begin * length); });
  return out;
}

}  // namespace ltc::torchscript
