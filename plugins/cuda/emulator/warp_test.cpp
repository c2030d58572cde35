// Instructions of a warp and of tensor cores, and meetings of a block.
#include <gmock/gmock.h>

#include <bit>

#include "cuda/emulator/test_device.h"

namespace ltc::emulator {
namespace {

using ::testing::Each;
using ::testing::ElementsAreArray;

// Each thread of a block gets an element of `in` as %a and leaves one in %d; %i is its number.
std::vector<uint32_t> run(const std::string& body, const std::vector<uint32_t>& in) {
  std::string text = R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 from, .param .u64 to) {
.reg .b64 %u<4>; .reg .b32 %a, %d, %i, %t<16>; .reg .pred %p<4>; .reg .f32 %f<8>;
mov.u32 %i, %tid.x;
mul.wide.u32 %u0, %i, 4;
ld.param.u64 %u1, [from];
ld.param.u64 %u2, [to];
add.s64 %u1, %u1, %u0;
add.s64 %u2, %u2, %u0;
ld.global.u32 %a, [%u1];
)";
  text.append(body).append("\nst.global.u32 [%u2], %d;\nret;\n}\n");
  TestDevice device;
  const CUdeviceptr from = device.upload(in), to = device.allocate(in.size() * 4);
  EXPECT_EQ(device.launch(device.load(text), {1, static_cast<unsigned>(in.size())}, from, to), CUDA_SUCCESS);
  std::vector<uint32_t> out(in.size());
  EXPECT_EQ(device.download(out, to), CUDA_SUCCESS) << body;
  return out;
}

std::vector<uint32_t> numbers(uint32_t count, uint32_t factor = 1) {
  std::vector<uint32_t> made(count);
  for (uint32_t i = 0; i < count; ++i) made[i] = factor * i;
  return made;
}
template <typename F>
std::vector<uint32_t> each_lane(F f) {
  std::vector<uint32_t> made(32);
  for (uint32_t i = 0; i < 32; ++i) made[i] = f(i);
  return made;
}

std::string after(std::string text, const char* rest) { return text.append(rest); }

TEST(EmulatorWarps, shuffle) {
  const auto in = numbers(32, 10);
  EXPECT_THAT(run("shfl.sync.bfly.b32 %d, %a, 3, 31, -1;", in),
              ElementsAreArray(each_lane([](uint32_t i) { return 10 * (i ^ 3); })));
  EXPECT_THAT(run("shfl.sync.up.b32 %d, %a, 2, 0, -1;", in),
              ElementsAreArray(each_lane([](uint32_t i) { return 10 * (i < 2 ? i : i - 2); })));
  // Segments of 8: the upper bits of the mask are set.
  EXPECT_THAT(run("shfl.sync.down.b32 %d|%p0, %a, 1, 0x181f, -1; @!%p0 mov.u32 %d, 7;", in),
              ElementsAreArray(each_lane([](uint32_t i) { return i % 8 == 7 ? 7 : 10 * (i + 1); })));
  EXPECT_THAT(run("shfl.sync.idx.b32 %d, %a, 5, 0x181f, -1;", in),
              ElementsAreArray(each_lane([](uint32_t i) { return 10 * (i / 8 * 8 + 5); })));
}

TEST(EmulatorWarps, vote_and_match) {
  const auto in = numbers(32);
  EXPECT_THAT(run("setp.lt.u32 %p0, %a, 5; vote.sync.ballot.b32 %d, %p0, -1;", in), Each(31U));
  EXPECT_THAT(run("setp.lt.u32 %p0, %a, 5; vote.sync.any.pred %p1, %p0, -1; selp.b32 %d, 1, 0, %p1;", in), Each(1U));
  EXPECT_THAT(run("setp.lt.u32 %p0, %a, 5; vote.sync.all.pred %p1, %p0, -1; selp.b32 %d, 1, 0, %p1;", in), Each(0U));
  EXPECT_THAT(run("and.b32 %t0, %a, 1; match.any.sync.b32 %d, %t0, -1;", in),
              ElementsAreArray(each_lane([](uint32_t i) { return i % 2 ? 0xaaaaaaaaU : 0x55555555U; })));
}

// The halves of a warp go different ways, and meet among themselves.
TEST(EmulatorWarps, part_and_meet_by_their_masks) {
  EXPECT_THAT(run(R"(mov.u32 %t0, %laneid;
setp.ge.u32 %p0, %t0, 16;
@%p0 bra UPPER;
shfl.sync.bfly.b32 %d, %a, 1, 31, 0xffff;
bra.uni END;
UPPER:
shfl.sync.bfly.b32 %d, %a, 2, 31, 0xffff0000;
END:)",
                  numbers(32)),
              ElementsAreArray(each_lane([](uint32_t i) { return i < 16 ? i ^ 1 : i ^ 2; })));
}

TEST(EmulatorBlocks, meet) {
  const auto out = run(R"(.shared .align 4 .b8 room[1024];
mov.u32 %t0, room;
shl.b32 %t1, %i, 2;
add.s32 %t2, %t0, %t1;
st.shared.u32 [%t2], %a;
bar.sync 0;
sub.s32 %t3, 255, %i;
shl.b32 %t3, %t3, 2;
add.s32 %t3, %t0, %t3;
ld.shared.u32 %d, [%t3];)",
                       numbers(256, 3));
  for (uint32_t i = 0; i < 256; ++i) EXPECT_EQ(out[i], 3 * (255 - i));
}

TEST(EmulatorBlocks, copy_ahead) {
  const auto out = run(R"(.shared .align 16 .b8 room[128];
mov.u32 %t0, room;
shl.b32 %t1, %i, 2;
add.s32 %t2, %t0, %t1;
cp.async.ca.shared.global [%t2], [%u1], 4;
cp.async.commit_group;
cp.async.wait_group 0;
bar.sync 0;
xor.b32 %t3, %t1, 4;
add.s32 %t3, %t0, %t3;
ld.shared.u32 %d, [%t3];)",
                       numbers(32, 3));
  EXPECT_THAT(out, ElementsAreArray(each_lane([](uint32_t i) { return 3 * (i ^ 1); })));
}

// Lane i holds elements 2i and 2i + 1 of each matrix of 8 x 8, by rows or by columns.
TEST(EmulatorTensorCores, load_matrices) {
  const std::string body = R"(.shared .align 16 .b8 room[512];
mov.u32 %t0, room;
shl.b32 %t1, %i, 4;
add.s32 %t2, %t0, %t1;
shl.b32 %t4, %i, 3;
add.s32 %t5, %t4, 1; add.s32 %t6, %t4, 2; add.s32 %t7, %t4, 3;
add.s32 %t8, %t4, 4; add.s32 %t9, %t4, 5; add.s32 %t10, %t4, 6; add.s32 %t11, %t4, 7;
shl.b32 %t5, %t5, 16; or.b32 %t4, %t4, %t5;
shl.b32 %t7, %t7, 16; or.b32 %t6, %t6, %t7;
shl.b32 %t9, %t9, 16; or.b32 %t8, %t8, %t9;
shl.b32 %t11, %t11, 16; or.b32 %t10, %t10, %t11;
st.shared.v4.u32 [%t2], {%t4, %t6, %t8, %t10};
bar.sync 0;
)";
  const auto plain = run(after(body, "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%t4, %t5, %t6, %d}, [%t2];"), numbers(32));
  const auto turned = run(after(body, "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%d, %t5, %t6, %t4}, [%t2];"), numbers(32));
  for (uint32_t i = 0; i < 32; ++i) {
    const uint32_t first = 8 * (24 + i / 4) + 2 * (i % 4), row = 8 * (2 * (i % 4)) + i / 4;
    EXPECT_EQ(plain[i], first | (first + 1) << 16);
    EXPECT_EQ(turned[i], row | (row + 8) << 16);
  }
}

// Small whole numbers, exact as BF16.
TEST(EmulatorTensorCores, multiply) {
  const auto out = run(R"(mov.u32 %t0, %laneid;
mov.b32 %f0, 0f00000000; mov.b32 %f1, 0f3F800000;
mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f4, %f5, %f6, %f7}, {%a, %a, %a, %a}, {%a, %a}, {%f0, %f1, %f0, %f0};
add.rn.f32 %f2, %f4, 0f00000000;
mov.b32 %d, %f5;)",
                       std::vector<uint32_t>(32, 0x40003f80));  // 1 and 2, by turns
  // Rows of a are 1 2 1 2 ..., and so are the columns of b: 8 (1 + 4), and the sum's 1.
  EXPECT_THAT(out, Each(std::bit_cast<uint32_t>(41.0F)));
}

// 1 in each place of a and b, from bits of which TF32 has the upper ones: 8, and the sum's 1.
TEST(EmulatorTensorCores, multiply_upper_bits) {
  const auto out = run(R"(mov.b32 %f0, 0f3F800000;
mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f4, %f5, %f6, %f7}, {%a, %a, %a, %a}, {%a, %a}, {%f0, %f0, %f0, %f0};
mov.b32 %d, %f7;)",
                       std::vector<uint32_t>(32, 0x3f801fff));
  EXPECT_THAT(out, Each(std::bit_cast<uint32_t>(9.0F)));
}

}  // namespace
}  // namespace ltc::emulator
