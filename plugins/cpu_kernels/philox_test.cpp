#include "cpu_kernels/philox.h"

#include <gmock/gmock.h>

#include <vector>

#include "cpu_kernels/testing/each_set.h"

namespace ltc::cpu {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

class PhiloxTest : public EachSet {
 protected:
  static std::vector<int32_t> words(const Philox& philox, int64_t first, int64_t count) {
    std::vector<int32_t> out(static_cast<size_t>(count));
    philox.bits(out.data(), first, first + count);
    return out;
  }
};
LTC_FOR_EACH_SET(PhiloxTest);

// The known answer of Random123 for counter 0 and key 0.
TEST_P(PhiloxTest, KnownAnswers) {
  const Philox zero{0, 0};
  const auto signed_word = [](uint32_t word) { return static_cast<int32_t>(word); };
  EXPECT_THAT(words(zero, 0, 4),
              ElementsAre(signed_word(0x6627e8d5), signed_word(0xe169c58d), signed_word(0xbc57ac4c), signed_word(0x9b00dbd8)));
  int64_t pairs[2];
  zero.bits(pairs, 0, 2);
  EXPECT_THAT(pairs, ElementsAre(static_cast<int64_t>(0xe169c58d6627e8d5), static_cast<int64_t>(0x9b00dbd8bc57ac4c)));
  float single;
  zero.uniform(&single, 0, 1);
  EXPECT_EQ(single, static_cast<float>(0x6627e8) * 0x1p-24f);
  double twice;
  zero.uniform(&twice, 0, 1);
  EXPECT_EQ(twice, static_cast<double>(0xe169c58d6627e8d5 >> 11) * 0x1p-53);
}

TEST_P(PhiloxTest, APartIsAsTheWhole) {
  const Philox philox{0xFEDCBA9876543210, 0xFFFFFFF0};  // the counter's low word overflows
  const auto all = words(philox, 0, 5000);
  for (const int64_t first : {0, 4, 64, 1000}) {
    for (const int64_t count : {1, 3, 5, 63, 64, 65, 1001}) {
      EXPECT_THAT(words(philox, first, count), ElementsAreArray(all.begin() + first, all.begin() + first + count));
    }
  }
  const Philox later{philox.seed, philox.offset + 25};
  EXPECT_THAT(words(later, 0, 300), ElementsAreArray(all.begin() + 100, all.begin() + 400));
}

}  // namespace
}  // namespace ltc::cpu
