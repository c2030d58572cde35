#include "torchscript/testing/plugin_test.h"

namespace ltc::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

class PhiloxTest : public TorchscriptTest {
 protected:
  template <typename T>
  std::vector<T> draw(ltc_dtype dtype, int64_t count, int64_t seed, int64_t offset) {
    GraphBuilder g;
    const uint32_t s = g.scalar(LTC_I64), o = g.scalar(LTC_I64);
    std::string text;
    ltc_executable* executable = device.build(
        g.finish({g.node("ltc::philox", {s, o}, {{"size", std::vector<int64_t>{count}}, Attr::dtype(dtype)}, dtype, {count})}),
        &text);
    EXPECT_THAT(text, HasSubstr("philox"));
    std::vector<ltc_buffer*> out(1);
    Device::expect_ok(device.execute(executable, {}, {integer(seed), integer(offset)}, out).release());
    auto values = device.download<T>(out[0], static_cast<size_t>(count));
    device.api->buffer_destroy(out[0]);
    device.api->executable_destroy(executable);
    return values;
  }
};

// The known answer of Random123 for counter 0 and key 0.
TEST_F(PhiloxTest, KnownAnswers) {
  EXPECT_THAT(draw<uint32_t>(LTC_I32, 4, 0, 0), ElementsAre(0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8));
  EXPECT_THAT(draw<uint64_t>(LTC_I64, 2, 0, 0), ElementsAre(0xe169c58d6627e8d5, 0x9b00dbd8bc57ac4c));
  EXPECT_THAT(draw<float>(LTC_F32, 1, 0, 0), ElementsAre(static_cast<float>(0x6627e8) * 0x1p-24f));
  EXPECT_THAT(draw<double>(LTC_F64, 1, 0, 0), ElementsAre(static_cast<double>(0xe169c58d6627e8d5 >> 11) * 0x1p-53));
}

// An element depends on seed, offset and index alone: not on the size drawn, nor on how threads share the work.
TEST_F(PhiloxTest, ElementsAreIndependentOfTheSize) {
  const int64_t seed = -1234567890123, offset = 0xFFFFFFF0;  // the counter's low word overflows
  const auto many = draw<uint32_t>(LTC_I32, 300007, seed, offset);
  for (int64_t count : {1, 3, 5, 63, 64, 65, 1001}) {
    const auto few = draw<uint32_t>(LTC_I32, count, seed, offset);
    EXPECT_THAT(few, ElementsAreArray(many.begin(), many.begin() + count)) << count;
  }
  const auto later = draw<uint32_t>(LTC_I32, 100, seed, offset + 50000);
  EXPECT_THAT(later, ElementsAreArray(many.begin() + 200000, many.begin() + 200100));
  const auto wide = draw<uint64_t>(LTC_I64, 1001, seed, offset);
  for (size_t i : {0u, 1u, 500u, 1000u}) EXPECT_EQ(wide[i], many[2 * i] | uint64_t{many[2 * i + 1]} << 32);
}

}  // namespace
}  // namespace ltc::testing
