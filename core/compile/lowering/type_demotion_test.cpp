#include "core/compile/lowering/type_demotion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/compile/lowering/compiler.h"
#include "core/ir/text.h"
#include "core/ir/verify.h"
#include "core/testing/test_plugins.h"

namespace ltc {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

constexpr uint64_t bit(DType dtype) { return uint64_t{1} << static_cast<uint32_t>(dtype); }
constexpr uint64_t kAll = bit(DType::kF32) | bit(DType::kF64) | bit(DType::kC64) | bit(DType::kC128) | bit(DType::kBF16);
constexpr uint64_t kSingle = bit(DType::kF32) | bit(DType::kC64) | bit(DType::kBF16);

const TypeDemotion kNoDouble(kSingle, TypeDemotion::Bf16::kNo);
const TypeDemotion kBf16(kAll, TypeDemotion::Bf16::kYes);

// Compares up to the numbering of values, and looks at the whole as a plugin's verifier would.
void expect_demoted(const TypeDemotion& demotion, std::string_view from, std::string_view to,
                    std::initializer_list<uint32_t> origin) {
  const Graph graph = parse(from);
  const DemotedGraph demoted = demote(graph, demotion);
  verify(demoted.graph(), "demote");
  EXPECT_TRUE(same(demoted.graph(), parse(to))) << print(demoted.graph());
  EXPECT_THAT(demoted.origin, ::testing::ElementsAreArray(origin));
}

TEST(TypeDemotion, OfTypes) {
  EXPECT_EQ(TypeDemotion().storage_dtype(DType::kF64), DType::kF64);
  EXPECT_EQ(TypeDemotion(kAll, TypeDemotion::Bf16::kNo).storage_dtype(DType::kF64), DType::kF64);
  EXPECT_EQ(kNoDouble.storage_dtype(DType::kF64), DType::kF32);
  EXPECT_EQ(kNoDouble.storage_dtype(DType::kC128), DType::kC64);
  EXPECT_EQ(kNoDouble.storage_dtype(DType::kI64), DType::kI64);
  EXPECT_EQ(kBf16.storage_dtype(DType::kF64), DType::kBF16);
  EXPECT_EQ(kBf16.storage_dtype(DType::kF32), DType::kBF16);
  EXPECT_EQ(kBf16.storage_dtype(DType::kC128), DType::kC128);
  EXPECT_EQ(TypeDemotion(bit(DType::kI64), TypeDemotion::Bf16::kNo).storage_dtype(DType::kF64),
            DType::kF64);  // nothing to keep it in
  const int64_t sizes[] = {2, 3}, strides[] = {1, 2};
  const Type& kept = type_of(kNoDouble.storage_type(intern_type(DType::kF64, sizes, strides)));
  EXPECT_EQ(kept.dtype, DType::kF32);
  EXPECT_THAT(kept.strides, ElementsAre(1, 2));
}

TEST(TypeDemotion, DoubleBecomesSingleEverywhereButInNumbers) {
  expect_demoted(kNoDouble, R"(graph(%0: f64[2] -> 0, %1: f64 scalar, %2: f32[2], %3: i64 scalar) {
    %4: f64[2] = aten::mul.Tensor(%0, %1)
    %5: f64[2] = aten::_to_copy(%2) {dtype=f64}
    %6: f64[2] = aten::add.Tensor(%4, %5) {alpha=1}
    %7: f64[4] = ltc::philox(%3, %3) {size=[4], dtype=f64}
    return %6, %7 })",
                 R"(graph(%0: f32[2] -> 0, %1: f64 scalar, %2: f32[2], %3: i64 scalar) {
    %4: f32[2] = aten::mul.Tensor(%0, %1)
    %5: f32[2] = aten::_to_copy(%2) {dtype=f32}
    %6: f32[2] = aten::add.Tensor(%4, %5) {alpha=1}
    %7: f32[4] = ltc::philox(%3, %3) {size=[4], dtype=f32}
    return %6, %7 })",
                 {0, 1, 2, 3});
}

// An op that reads nothing narrow would make a float: it does, and the float is cast.
TEST(TypeDemotion, Bf16CastsWhatComesFromElsewhere) {
  expect_demoted(kBf16, R"(graph(%0: f32[4], %1: i64[4], %2: i64 scalar, %3: f64[4]) {
    %4: f32[4] = ltc::philox(%2, %2) {size=[4], dtype=f32}
    %5: f32[4] = aten::div.Tensor(%1, %1)
    %6: f32[4] = aten::mul.Tensor(%4, %0)
    %7: f64[] = aten::sum(%6) {dtype=f64}
    %8: f64[4] = ltc::philox(%2, %2) {size=[4], dtype=f64}
    %9: bool[4] = aten::lt.Tensor(%3, %0)
    return %5, %6, %7, %8, %9 })",
                 R"(graph(%0: bf16[4], %1: i64[4], %2: i64 scalar, %3: bf16[4]) {
    %10: f32[4] = ltc::philox(%2, %2) {size=[4], dtype=f32}
    %4: bf16[4] = aten::_to_copy(%10) {dtype=bf16}
    %11: f32[4] = aten::div.Tensor(%1, %1)
    %5: bf16[4] = aten::_to_copy(%11) {dtype=bf16}
    %6: bf16[4] = aten::mul.Tensor(%4, %0)
    %7: bf16[] = aten::sum(%6) {dtype=bf16}
    %12: f32[4] = ltc::philox(%2, %2) {size=[4], dtype=f32}
    %8: bf16[4] = aten::_to_copy(%12) {dtype=bf16}
    %9: bool[4] = aten::lt.Tensor(%3, %0)
    return %5, %6, %7, %8, %9 })",
                 {0, 0, 1, 1, 2, 3, 4, 4, 5});
}

TEST(TypeDemotion, StatisticsOfAttentionAreFloatBesideBf16) {
  expect_demoted(kBf16, R"(graph(%0: f32[1,1,2,4]) {
    %1: f32[1,1,2,4], %2: f32[1,1,2] = aten::_scaled_dot_product_flash_attention_for_cpu(%0, %0, %0, none)
    %3: f32[1,1,2,4], _, _ = aten::_scaled_dot_product_flash_attention_for_cpu_backward(%0, %0, %0, %0, %1, %2, none)
    return %1, %2, %3 })",
                 R"(graph(%0: bf16[1,1,2,4]) {
    %1: bf16[1,1,2,4], %4: f32[1,1,2] = aten::_scaled_dot_product_flash_attention_for_cpu(%0, %0, %0, none)
    %2: bf16[1,1,2] = aten::_to_copy(%4) {dtype=bf16}
    %5: f32[1,1,2] = aten::_to_copy(%2) {dtype=f32}
    %3: bf16[1,1,2,4], _, _ = aten::_scaled_dot_product_flash_attention_for_cpu_backward(%0, %0, %0, %0, %1, %5, none)
    return %1, %2, %3 })",
                 {0, 0, 1, 1});
}

TEST(TypeDemotion, WhatCannotBeDemotedStaysWide) {
  const Graph graph = parse(R"(graph(%0: f32[4], %1: f16[4], %2: c64[4], %3: i64[2]) {
    %4: i32[4] = aten::view.dtype(%0) {dtype=i32}
    %5: f32[4] = aten::add.Tensor(%0, %1)
    %6: c64[4] = aten::mul.Tensor(%0, %2)
    %7: f16[4] = aten::_to_copy(%0) {dtype=f16}
    %8: f64[2] = aten::view.dtype(%3) {dtype=f64}
    %9: f32[4] = aten::abs(%2)
    %10: c64[3] = aten::_fft_r2c(%0) {dim=[0], normalization=0, onesided=true}
    return %4, %5, %6, %7, %8, %9, %10 })");
  EXPECT_THAT(not_demotable(graph, kBf16), ElementsAre(true, true, true, false, true, false, true));
  EXPECT_THAT(not_demotable(graph, kNoDouble), ElementsAre(false, false, false, false, true, false, false));
  EXPECT_THAT(not_demotable(graph, TypeDemotion()), Each(false));
}

TEST(TypeDemotion, ThePluginGetsTheDemotedGraphAndTheProgramKeepsItsTypes) {
  const auto device = ltc::testing::load_plugin("test_no_double")->open_device(0);
  const TypeDemotion demotion = TypeDemotion::of(*device);
  const auto program = compile(parse(R"(graph(%0: f64[2], %1: f64 scalar) {
    %2: f64[2] = aten::mul.Tensor(%0, %1)
    %3: f64[2] = aten::sin(%2)
    return %3 })"),
                               {*device, demotion});
  ASSERT_EQ(program->steps.size(), 2u);
  EXPECT_TRUE(program->steps[0].on_device);  // of f64 the plugin would claim nothing
  EXPECT_FALSE(program->steps[1].on_device);
  for (const Step& step : program->steps) EXPECT_EQ(step.graph.type(step.graph.outputs[0]).dtype, DType::kF64);
}

}  // namespace
}  // namespace ltc
