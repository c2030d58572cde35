// Against sums in double.
#include "cpu_kernels/attention.h"

#include <cmath>
#include <limits>
#include <vector>

#include "cpu_kernels/testing/each_set.h"

namespace ltc::cpu {
namespace {

struct Shape {
  int64_t queries, keys, size;
};

// One block and several, whole vectors and not.
constexpr Shape kShapes[] = {{1, 1, 1}, {9, 17, 8}, {33, 64, 33}, {40, 150, 64}, {270, 300, 16}};
constexpr double kWorst = 1e-4;

class AttentionTest : public EachSet {
 protected:
  using Matrix = std::vector<double>;

  struct Operands {
    const Noise &queries, &keys, &values, &mask;
  };

  // The weights of a query's keys; all 0 if it sees none.
  static std::vector<double> weights(const AttentionHead& head, int64_t query, double& log_sum) {
    const int64_t seen = head.causal ? std::min(query + 1, head.key_count) : head.key_count;
    std::vector<double> scores(static_cast<size_t>(head.key_count));
    double sum = 0;
    for (int64_t key = 0; key < seen; ++key) {
      double score = head.mask.data ? head.mask.data[query * head.mask.row_stride + key * head.mask.column_stride] : 0;
      for (int64_t i = 0; i < head.size; ++i) score += double{head.scale} * head.queries.row(query)[i] * head.keys.row(key)[i];
      sum += scores[static_cast<size_t>(key)] = std::exp(score);
    }
    for (double& score : scores) score /= sum;
    log_sum = std::log(sum);
    return scores;
  }

  void check(const Shape& shape, bool causal, bool has_mask) {
    const auto [queries, keys, size] = shape;
    const Noise query = noise(queries * size), key = noise(keys * size), value = noise(keys * size), mask = noise(queries * keys);
    const AttentionHead head{{query.get(), size},
                             {key.get(), size},
                             {value.get(), size},
                             queries,
                             keys,
                             size,
                             static_cast<float>(1 / std::sqrt(size)),
                             causal,
                             has_mask ? Mask{mask.get(), keys, 1} : Mask{}};
    const Noise out = noise(queries * size), log_sums = noise(queries), gradient = noise(queries * size);
    const Noise of_query = noise(query.size), of_key = noise(key.size), of_value = noise(value.size);
    const Noise scratch(std::max(attention_scratch(head), attention_backward_scratch(head)));
    for (int64_t first = 0; first < queries; first += kQueriesTogether) {
      attend(head, first, std::min(first + kQueriesTogether, queries), {out.get(), size}, {log_sums.get(), 1}, scratch.get());
    }
    attend_backward(head,
                    {{gradient.get(), size},
                     {out.get(), size},
                     {log_sums.get(), 1},
                     {of_query.get(), size},
                     {of_key.get(), size},
                     {of_value.get(), size}},
                    scratch.get());
    Matrix wanted_key(static_cast<size_t>(key.size)), wanted_value(wanted_key.size());
    for (int64_t i = 0; i < queries; ++i) {
      double log_sum = 0;
      const std::vector<double> weight = weights(head, i, log_sum);
      EXPECT_NEAR(log_sums[i], log_sum, kWorst);
      std::vector<double> row(static_cast<size_t>(size)), of_row(row.size()), of_weight(weight.size());
      double product = 0;
      for (int64_t k = 0; k < keys; ++k) {
        for (int64_t j = 0; j < size; ++j) {
          row[static_cast<size_t>(j)] += weight[static_cast<size_t>(k)] * value[k * size + j];
          of_weight[static_cast<size_t>(k)] += double{gradient[i * size + j]} * value[k * size + j];
          wanted_value[static_cast<size_t>(k * size + j)] += weight[static_cast<size_t>(k)] * gradient[i * size + j];
        }
        product += of_weight[static_cast<size_t>(k)] * weight[static_cast<size_t>(k)];
      }
      for (int64_t k = 0; k < keys; ++k) {
        const double of_score = weight[static_cast<size_t>(k)] * (of_weight[static_cast<size_t>(k)] - product) * head.scale;
        for (int64_t j = 0; j < size; ++j) {
          of_row[static_cast<size_t>(j)] += of_score * key[k * size + j];
          wanted_key[static_cast<size_t>(k * size + j)] += of_score * query[i * size + j];
        }
      }
      for (int64_t j = 0; j < size; ++j) {
        EXPECT_NEAR(out[i * size + j], row[static_cast<size_t>(j)], kWorst);
        EXPECT_NEAR(of_query[i * size + j], of_row[static_cast<size_t>(j)], kWorst);
      }
    }
    for (int64_t i = 0; i < key.size; ++i) {
      EXPECT_NEAR(of_key[i], wanted_key[static_cast<size_t>(i)], kWorst);
      EXPECT_NEAR(of_value[i], wanted_value[static_cast<size_t>(i)], kWorst);
    }
  }
};
LTC_FOR_EACH_SET(AttentionTest);

TEST_P(AttentionTest, ResultsAndGradients) {
  for (const Shape& shape : kShapes) {
    for (const bool causal : {false, true}) {
      for (const bool has_mask : {false, true}) check(shape, causal, has_mask);
    }
  }
}

// A NaN shows in its query's result, even if nothing else is seen; a query that sees nothing has the result 0.
TEST_P(AttentionTest, Nan) {
  constexpr int64_t kKeys = 70, kSize = 16;
  const Noise query = noise(2 * kSize), key = noise(kKeys * kSize), value = noise(kKeys * kSize), out = noise(2 * kSize),
              log_sums = noise(2), mask = noise(2 * kKeys);
  for (int64_t i = 0; i < 2 * kKeys; ++i) mask.get()[i] = -std::numeric_limits<float>::infinity();
  mask.get()[3] = std::numeric_limits<float>::quiet_NaN();
  const AttentionHead head{{query.get(), kSize},  {key.get(), kSize}, {value.get(), kSize}, 2, kKeys, kSize, 1, false,
                           {mask.get(), kKeys, 1}};
  const Noise scratch(attention_scratch(head));
  attend(head, 0, 2, {out.get(), kSize}, {log_sums.get(), 1}, scratch.get());
  for (int64_t i = 0; i < kSize; ++i) {
    EXPECT_TRUE(std::isnan(out[i]));
    EXPECT_EQ(out[kSize + i], 0);
  }
}

}  // namespace
}  // namespace ltc::cpu
