// Each class of instructions of one thread, against values computed in C++.
#include <gmock/gmock.h>

#include <bit>
#include <cmath>
#include <limits>

#include "cuda/emulator/test_device.h"

namespace ltc::emulator {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInfinity = std::numeric_limits<float>::infinity();

template <typename T>
const char* register_of() {
  if constexpr (std::is_same_v<T, float>) return "f32";
  if constexpr (std::is_same_v<T, double>) return "f64";
  return sizeof(T) == 8 ? "b64" : sizeof(T) == 4 ? "b32" : "b16";
}
template <typename T>
const char* type_of() {
  if constexpr (std::is_same_v<T, bool>) return "u8";
  if constexpr (std::is_floating_point_v<T>) return register_of<T>();
  return sizeof(T) == 8 ? "u64" : sizeof(T) == 4 ? "u32" : "u16";
}

// One thread: `body` computes %d from %a0, %a1 and so on; predicates among them are %p0 and so on, and the result is %q.
template <typename Result, typename... Operands>
Result run(const std::string& body, Operands... operands) {
  std::string text = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 to";
  std::string registers = ".reg .b64 %to; .reg .b16 %bit, %s<4>; .reg .b32 %t<4>; .reg .b64 %u<4>; .reg .pred %q, %v<4>;\n";
  registers += std::string(".reg .") + register_of<Result>() + " %d;\n";
  std::string loads = "ld.param.u64 %to, [to];\n";
  [[maybe_unused]] int i = 0;
  [[maybe_unused]] const auto add = [&]<typename T>(T) {
    const std::string number = std::to_string(i++);
    text += std::string(", .param .") + type_of<T>() + " x" + number;
    if constexpr (std::is_same_v<T, bool>) {
      registers += ".reg .pred %p" + number + ";\n";
      loads += "ld.param.u8 %bit, [x" + number + "];\nsetp.ne.s16 %p" + number + ", %bit, 0;\n";
    } else {
      registers += std::string(".reg .") + register_of<T>() + " %a" + number + ";\n";
      loads += std::string("ld.param.") + type_of<T>() + " %a" + number + ", [x" + number + "];\n";
    }
  };
  (add(operands), ...);
  const std::string store = std::is_same_v<Result, bool> ? "selp.u16 %bit, 1, 0, %q;\nst.global.u8 [%to], %bit;\n"
                                                         : std::string("st.global.") + type_of<Result>() + " [%to], %d;\n";
  text += ")\n{\n" + registers + loads + body + "\n" + store + "ret;\n}\n";
  TestDevice device;
  const CUdeviceptr to = device.allocate(sizeof(Result));
  EXPECT_EQ(device.launch(device.load(text), {}, to, operands...), CUDA_SUCCESS);
  Result result{};
  EXPECT_EQ(TestDevice::api().cuMemcpyDtoHAsync_v2(&result, to, sizeof result, device.stream), CUDA_SUCCESS) << body;
  return result;
}

float f32(uint32_t bits) { return std::bit_cast<float>(bits); }
uint32_t bits(float x) { return std::bit_cast<uint32_t>(x); }

TEST(EmulatorIntegers, are_added_and_multiplied) {
  EXPECT_EQ(run<int32_t>("add.s32 %d, %a0, %a1;", INT32_MAX, 1), INT32_MIN);
  EXPECT_EQ(run<int64_t>("sub.s64 %d, %a0, %a1;", int64_t{5}, int64_t{7}), -2);
  EXPECT_EQ(run<int16_t>("mul.lo.s16 %d, %a0, %a1;", int16_t{-300}, int16_t{300}), static_cast<int16_t>(-90000));
  EXPECT_EQ(run<int32_t>("mul.hi.s32 %d, %a0, %a1;", -5, 1 << 30), static_cast<int32_t>((int64_t{-5} << 30) >> 32));
  EXPECT_EQ(run<uint64_t>("mul.hi.u64 %d, %a0, %a1;", ~uint64_t{0}, ~uint64_t{0}), ~uint64_t{0} - 1);
  EXPECT_EQ(run<int64_t>("mul.wide.s32 %d, %a0, %a1;", -7, 1 << 30), int64_t{-7} << 30);
  EXPECT_EQ(run<int32_t>("mul.wide.s16 %d, %a0, %a1;", int16_t{-7}, int16_t{9999}), -69993);
  EXPECT_EQ(run<int32_t>("mad.lo.s32 %d, %a0, %a1, %a2;", -7, 9, 5), -58);
  EXPECT_EQ(run<uint64_t>("mad.wide.u32 %d, %a0, %a1, %a2;", ~0U, ~0U, uint64_t{3}), uint64_t{~0U} * ~0U + 3);
  EXPECT_EQ(run<int32_t>("add.sat.s32 %d, %a0, %a1;", INT32_MAX, 1), INT32_MAX);
}

TEST(EmulatorIntegers, are_divided_compared_and_negated) {
  EXPECT_EQ(run<int32_t>("div.s32 %d, %a0, %a1;", -7, 2), -3);
  EXPECT_EQ(run<int32_t>("rem.s32 %d, %a0, %a1;", -7, 2), -1);
  EXPECT_EQ(run<int32_t>("div.s32 %d, %a0, %a1;", INT32_MIN, -1), INT32_MIN);
  EXPECT_EQ(run<uint16_t>("rem.u16 %d, %a0, %a1;", uint16_t{60000}, uint16_t{7}), 60000 % 7);
  EXPECT_EQ(run<int64_t>("abs.s64 %d, %a0;", int64_t{-3}), 3);
  EXPECT_EQ(run<int16_t>("min.s16 %d, %a0, %a1;", int16_t{-3}, int16_t{2}), -3);
  EXPECT_EQ(run<uint32_t>("max.u32 %d, %a0, %a1;", ~0U, 2U), ~0U);
  EXPECT_EQ(run<int32_t>("neg.s32 %d, %a0;", 7), -7);
}

TEST(EmulatorIntegers, of_several_registers_carry) {
  EXPECT_EQ(run<uint32_t>("add.cc.u32 %t0, %a0, %a1; addc.u32 %d, %a2, 0;", ~0U, 1U, 5U), 6U);
  EXPECT_EQ(run<uint32_t>("sub.cc.u32 %t0, %a0, %a1; subc.u32 %d, %a2, 0;", 0U, 1U, 5U), 4U);
  EXPECT_EQ(run<uint32_t>("mad.lo.cc.u32 %t0, %a0, %a1, %a2; madc.hi.u32 %d, %a0, %a1, 0;", ~0U, ~0U, ~0U),
            static_cast<uint32_t>((uint64_t{~0U} * ~0U + ~0U) >> 32));
}

TEST(EmulatorBits, are_shifted_and_chosen) {
  EXPECT_EQ(run<uint32_t>("shl.b32 %d, %a0, %a1;", 1U, 40U), 0U);
  EXPECT_EQ(run<int32_t>("shr.s32 %d, %a0, %a1;", -8, 40U), -1);
  EXPECT_EQ(run<uint16_t>("shr.u16 %d, %a0, %a1;", uint16_t{0x8000}, 15U), 1);
  EXPECT_EQ(run<uint64_t>("bfi.b64 %d, %a0, %a1, %a2, %a3;", uint64_t{0xff}, uint64_t{0}, 8U, 4U), uint64_t{0xf00});
  EXPECT_EQ(run<int32_t>("bfe.s32 %d, %a0, %a1, %a2;", 0xf0, 4U, 4U), -1);
  EXPECT_EQ(run<uint32_t>("bfe.u32 %d, %a0, %a1, %a2;", 0xf0U, 4U, 4U), 15U);
  EXPECT_EQ(run<uint32_t>("popc.b64 %d, %a0;", ~uint64_t{0}), 64U);
  EXPECT_EQ(run<uint32_t>("clz.b32 %d, %a0;", 1U), 31U);
  EXPECT_EQ(run<uint32_t>("brev.b32 %d, %a0;", 1U), 0x80000000U);
  EXPECT_EQ(run<uint32_t>("bfind.u32 %d, %a0;", 0x900U), 11U);
  EXPECT_EQ(run<uint32_t>("prmt.b32 %d, %a0, %a1, 0x7610;", 0x33221100U, 0x77665544U), 0x77661100U);
  EXPECT_EQ(run<uint32_t>("lop3.b32 %d, %a0, %a1, %a2, 0xe8;", 12U, 10U, 6U), 14U);
  EXPECT_EQ(run<uint32_t>("shf.l.wrap.b32 %d, %a0, %a1, 8;", 0xaa000000U, 0x11U), 0x11aaU);
  EXPECT_EQ(run<uint32_t>("not.b32 %d, %a0;", 5U), ~5U);
  EXPECT_EQ(run<int32_t>("selp.b32 %d, %a0, %a1, %p2;", 1, 2, false), 2);
  EXPECT_EQ(run<uint64_t>("mov.b64 %d, {%a0, %a1};", 1U, 2U), uint64_t{2} << 32 | 1);
  EXPECT_EQ(run<uint32_t>("mov.b64 {%t0, %d}, %a0;", uint64_t{2} << 32 | 1), 2U);
}

TEST(EmulatorPredicates, have_minus_one_for_true) {
  EXPECT_FALSE(run<bool>("xor.pred %q, %p0, -1;", true));
  EXPECT_TRUE(run<bool>("mov.pred %q, -1;"));
  EXPECT_TRUE(run<bool>("mov.pred %q, 0; @!%q mov.pred %q, -1;"));
}

TEST(EmulatorFloats, are_rounded_as_asked) {
  const float third = 1.0F / 3;
  EXPECT_EQ(run<float>("add.rn.f32 %d, %a0, %a1;", 1.0F, 0x1p-24F), 1.0F);
  EXPECT_EQ(run<float>("add.rp.f32 %d, %a0, %a1;", 1.0F, 0x1p-24F), std::nextafter(1.0F, 2.0F));
  EXPECT_EQ(run<float>("add.rz.f32 %d, %a0, %a1;", 1.0F, -0x1p-26F), std::nextafter(1.0F, 0.0F));
  const double exact = static_cast<double>(third) * third - 1;
  const float down = run<float>("fma.rm.f32 %d, %a0, %a1, %a2;", third, third, -1.0F);
  EXPECT_TRUE(down <= exact && std::nextafter(down, 0.0F) > exact);
  EXPECT_EQ(run<float>("fma.rn.f32 %d, %a0, %a1, %a2;", third, 3.0F, -1.0F), std::fma(third, 3.0F, -1.0F));
  EXPECT_EQ(run<double>("div.rn.f64 %d, %a0, %a1;", 1.0, 3.0), 1.0 / 3);
  EXPECT_EQ(run<double>("sqrt.rn.f64 %d, %a0;", 2.0), std::sqrt(2.0));
  EXPECT_EQ(run<float>("mul.ftz.f32 %d, %a0, %a1;", 0x1p-100F, 0x1p-40F), 0.0F);
  EXPECT_EQ(run<float>("add.sat.f32 %d, %a0, %a1;", 1.0F, 1.0F), 1.0F);
}

TEST(EmulatorFloats, keep_signs_and_leave_out_nan) {
  EXPECT_EQ(run<float>("min.f32 %d, %a0, %a1;", kNan, 2.0F), 2.0F);
  EXPECT_TRUE(std::isnan(run<float>("max.NaN.f32 %d, %a0, %a1;", kNan, 2.0F)));
  EXPECT_TRUE(std::signbit(run<float>("min.f32 %d, %a0, %a1;", 0.0F, -0.0F)));
  EXPECT_EQ(run<double>("copysign.f64 %d, %a0, %a1;", -1.0, 5.0), -5.0);
  EXPECT_EQ(run<float>("abs.f32 %d, %a0;", -kInfinity), kInfinity);
  EXPECT_TRUE(run<bool>("testp.subnormal.f32 %q, %a0;", 0x1p-140F));
}

TEST(EmulatorFloats, have_approximate_functions) {
  EXPECT_EQ(run<float>("ex2.approx.ftz.f32 %d, %a0;", 3.0F), 8.0F);
  EXPECT_EQ(run<float>("lg2.approx.f32 %d, %a0;", 8.0F), 3.0F);
  EXPECT_EQ(run<float>("rsqrt.approx.f32 %d, %a0;", 16.0F), 0.25F);
  EXPECT_EQ(std::bit_cast<uint64_t>(run<double>("rcp.approx.ftz.f64 %d, %a0;", 3.0)) & 0xffffffff, 0U);
  EXPECT_NEAR(run<double>("rcp.approx.ftz.f64 %d, %a0;", 3.0), 1.0 / 3, 1e-6);
}

TEST(EmulatorComparisons, differ_for_nan) {
  for (const char* holds : {"neu", "ltu", "geu", "nan"})
    EXPECT_TRUE(run<bool>(std::string("setp.") + holds + ".f32 %q, %a0, %a1;", kNan, 1.0F));
  for (const char* fails : {"ne", "lt", "ge", "eq", "num"})
    EXPECT_FALSE(run<bool>(std::string("setp.") + fails + ".f32 %q, %a0, %a1;", kNan, 1.0F));
  EXPECT_TRUE(run<bool>("setp.lt.s16 %q, %a0, %a1;", int16_t{-1}, int16_t{1}));
  EXPECT_FALSE(run<bool>("setp.lo.u32 %q, %a0, %a1;", ~0U, 1U));
  EXPECT_FALSE(run<bool>("setp.eq.and.s32 %q, %a0, %a1, %p2;", 3, 3, false));
  EXPECT_FALSE(run<bool>("setp.eq.s32 %v0|%q, %a0, %a1;", 3, 3));
}

TEST(EmulatorConversions, round_and_saturate) {
  EXPECT_EQ(run<int32_t>("cvt.rni.s32.f32 %d, %a0;", 2.5F), 2);
  EXPECT_EQ(run<int32_t>("cvt.rzi.s32.f32 %d, %a0;", 1e20F), INT32_MAX);
  EXPECT_EQ(run<int32_t>("cvt.rzi.s32.f32 %d, %a0;", kNan), 0);
  EXPECT_EQ(run<int64_t>("cvt.rzi.s64.f64 %d, %a0;", std::nan("")), INT64_MIN);
  EXPECT_EQ(run<uint32_t>("cvt.rmi.u32.f32 %d, %a0;", -3.5F), 0U);
  EXPECT_EQ(run<float>("cvt.rpi.f32.f32 %d, %a0;", 1.25F), 2.0F);
  EXPECT_EQ(run<float>("cvt.rna.tf32.f32 %d, %a0;", 1 + 0x1p-11F), 1 + 0x1p-10F);
  EXPECT_EQ(run<float>("cvt.rna.tf32.f32 %d, %a0;", -1 - 0x1.8p-12F), -1.0F);
  EXPECT_EQ(run<float>("cvt.rn.f32.s64 %d, %a0;", (int64_t{1} << 53) + 1), 0x1p53F);
  EXPECT_EQ(run<float>("cvt.rz.f32.f64 %d, %a0;", 1 + 0x1p-24 + 0x1p-30), 1.0F);
  EXPECT_EQ(run<int32_t>("cvt.s32.s8 %d, %a0;", 0x1ff), -1);
  EXPECT_EQ(run<int64_t>("cvt.s64.s32 %d, %a0;", -5), -5);
  EXPECT_EQ(run<uint64_t>("cvt.u64.u32 %d, %a0;", ~0U), uint64_t{~0U});
  EXPECT_EQ(run<float>("cvt.sat.f32.f32 %d, %a0;", kNan), 0.0F);
  EXPECT_EQ(run<uint32_t>("cvt.sat.u32.s32 %d, %a0;", -1), 0U);
}

// To the nearest even one; overflow, subnormal numbers, NaN.
TEST(EmulatorHalves, are_rounded_once) {
  const auto half = [](float x) { return run<uint16_t>("cvt.rn.f16.f32 %d, %a0;", x); };
  EXPECT_EQ(half(1 + 0x1p-11F), 0x3c00);
  EXPECT_EQ(half(1 + 0x3p-11F), 0x3c02);
  EXPECT_EQ(half(65520.0F), 0x7c00);
  EXPECT_EQ(half(65519.0F), 0x7bff);
  EXPECT_EQ(half(-0x1p-24F), 0x8001);
  EXPECT_EQ(half(kNan), 0x7fff);
  EXPECT_EQ(run<uint16_t>("cvt.rz.f16.f32 %d, %a0;", 1e9F), 0x7bff);
  EXPECT_EQ(run<float>("cvt.f32.f16 %d, %a0;", uint16_t{0x0001}), 0x1p-24F);
  EXPECT_EQ(run<uint16_t>("cvt.rn.bf16.f32 %d, %a0;", f32(0x3f808000)), 0x3f80);
  EXPECT_EQ(run<uint16_t>("cvt.rn.bf16.f32 %d, %a0;", f32(0x3f818000)), 0x3f82);
  EXPECT_EQ(run<uint32_t>("cvt.rn.f16x2.f32 %d, %a0, %a1;", 2.0F, 1.0F), 0x40003c00U);
  EXPECT_EQ(run<uint16_t>("fma.rn.f16 %d, %a0, %a1, %a2;", uint16_t{0x4000}, uint16_t{0x4200}, uint16_t{0x3c00}), 0x4700);
  EXPECT_EQ(run<uint32_t>("add.bf16x2 %d, %a0, %a1;", 0x3f804000U, 0x3f803f80U), 0x40004040U);
}

TEST(EmulatorAccesses, keep_signs_and_vectors) {
  EXPECT_EQ(
      run<int32_t>(".local .align 16 .b8 room[16]; mov.u64 %u0, room; st.local.u8 [%u0+3], %a0; ld.local.s8 %d, [%u0+3];", 0x80),
      -128);
  EXPECT_EQ(run<uint32_t>(".shared .align 16 .b8 room[16]; mov.u32 %t0, room; st.shared.v4.u32 [%t0], {%a0, %a0, %a1, %a0};"
                          "cvt.u64.u32 %u0, %t0; cvta.shared.u64 %u0, %u0; ld.u32 %d, [%u0+8];",
                          1U, 2U),
            2U);
  EXPECT_EQ(
      run<uint32_t>(
          "st.global.u32 [%to], %a0; atom.global.add.u32 %t0, [%to], 5; ld.global.u32 %t1, [%to]; add.s32 %d, %t0, %t1;", 3U),
      11U);
  EXPECT_EQ(run<uint32_t>("st.global.u32 [%to], %a0; atom.global.cas.b32 %t0, [%to], 3, 9; ld.global.u32 %d, [%to];", 3U), 9U);
  EXPECT_EQ(bits(run<float>("st.global.f32 [%to], %a0; red.global.add.f32 [%to], 0f3F800000; ld.global.f32 %d, [%to];", 2.0F)),
            bits(3.0F));
}

TEST(EmulatorModules, name_what_is_not_known) {
  TestDevice device;
  const char* text =
      ".version 8.0\n.target sm_90\n.address_size 64\n.entry my_kernel() {\n.reg .b32 %r<2>;\nfrobnicate.s32 %r0, "
      "%r1;\nret;\n}\n";
  testing::internal::CaptureStderr();
  CUmodule module = nullptr;
  EXPECT_EQ(TestDevice::api().cuModuleLoadData(&module, text), CUDA_ERROR_INVALID_PTX);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::HasSubstr("the instruction frobnicate.s32 in my_kernel is not known"));
}

}  // namespace
}  // namespace ltc::emulator
