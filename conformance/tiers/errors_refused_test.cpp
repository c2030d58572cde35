// The errors tier: a refusal, or work that fails on submit, leaves no memory behind and consumes nothing.
#include <cmath>

#include "conformance/kit/heap.h"
#include "conformance/tiers/execute_fixture.h"

namespace ltc::conformance {
namespace {

class ErrorsRefused : public MemoryTest {
 protected:
  void expect_no_growth(const std::function<void()>& body) {
    const auto growth = growth_per_time(500, body);
    if (!growth) LTC_NOT_APPLICABLE("the allocator does not count");
    EXPECT_LT(*growth, kLeakBytes) << "bytes of host memory lost with each refusal";
  }
};

TEST_F(ErrorsRefused, refused_copies_leave_nothing_behind) {
  const Buffer buffer = device().buffer(DType::kF32, {4});
  expect_no_growth([&] {
    const float data[8] = {};
    Event done;
    EXPECT_TRUE(device().transfer(to_device(buffer, data, sizeof data), done));
  });
}

TEST_F(ErrorsRefused, buffers_too_large_leave_nothing_behind) {
  expect_no_growth([&] {
    Buffer buffer;
    EXPECT_TRUE(device().create_buffer(abi_type(DType::kF32, {int64_t{1} << 60}), buffer));
  });
}

// A run whose index tensor is out of range. Where the plugin does not look, nothing is known of it.
class ErrorsIndex : public Execute {
 protected:
  static constexpr const char* kGather =
      "graph(%0: f32[4] -> 0, %1: i64[4]) { %2: f32[4] = aten::gather(%0, %1) {dim=0,sparse_grad=false} return %2 }";
  void SetUp() override {
    Execute::SetUp();
    if (IsSkipped()) return;
    if (!device().supports(DType::kI64) || !claims(kGather)[0]) LTC_UNSUPPORTED_BY_PLUGIN("not claimed: ", kGather);
    executable_ = device().build(kGather);
    input_ = four();
    index_ = indices(99);
  }
  void TearDown() override {
    executable_.reset(), input_.reset(), index_.reset();
    Execute::TearDown();
  }
  Buffer indices(int64_t second) { return device().upload(Array::of<int64_t>(DType::kI64, {4}, {0, second, 0, 0})); }
  Device::Run run(std::vector<uint8_t> donate = {}) {
    return device().submit({executable_, {input_.get(), index_.get()}, 1, {}, std::move(donate)});
  }

  // Beside the ends, and at those of the numbers.
  static constexpr int64_t kBad[] = {4, 5, 99, int64_t{1} << 40, INT64_MAX, -1, -4, -5, INT64_MIN};

  Executable executable_;
  Buffer input_, index_;
};

TEST_F(ErrorsIndex, an_index_out_of_range_has_its_code_and_node) {
  int errors = 0;
  for (const int64_t bad : kBad) {
    index_ = indices(bad);
    const Device::Run failed = run();
    const Failure failure = failed.submitted ? failed.submitted : device().finish(failed.done);
    if (!failure) continue;
    ++errors;
    EXPECT_EQ(code_text(failure.code), "OUT_OF_RANGE") << "of the index " << bad << "; the program catches IndexError by it";
    EXPECT_TRUE(failure.node == LTC_NONE || failure.node == 0) << "the graph has one node; the error is of node " << failure.node;
  }
  if (errors == 0) LTC_NOT_APPLICABLE("the plugin does not look at indices");
}

// 24 bytes, behind which no allocator has room to spare; and other values around them.
TEST_F(ErrorsIndex, a_bad_index_without_an_error_reads_no_other_memory) {
  const Floats values{0x1.123456p5f, 0x1.234568p6f, -0x1.34567ap7f, 0x1.45678cp8f, -0x1.56789ap9f, 0x1.6789acp10f};
  const auto other = [&] { return device().upload(Array::floats(Floats(values.size(), 0x1.9p11f))); };
  executable_ =
      device().build("graph(%0: f32[6], %1: i64[4]) { %2: f32[4] = aten::gather(%0, %1) {dim=0,sparse_grad=false} return %2 }");
  std::vector<Buffer> others;
  for (int i = 0; i < 8; ++i) others.push_back(other());
  input_ = device().upload(Array::floats(values));
  for (int i = 0; i < 8; ++i) others.push_back(other());
  for (const int64_t bad : {int64_t{6}, int64_t{7}, int64_t{99}, int64_t{-1}, int64_t{-6}, int64_t{-7}, INT64_MAX, INT64_MIN}) {
    index_ = indices(bad);
    const Device::Run done = run();
    if (done.submitted || device().finish(done.done)) continue;
    const float picked = read(done.outputs[0])[1];
    if (picked == 0 || std::isnan(picked)) continue;  // a fill
    EXPECT_NE(std::ranges::find(values, picked), values.end()) << "the index " << bad << " of 6 elements gave " << picked
                                                               << ", which is none of them: memory outside the buffer was read";
  }
}

TEST_F(ErrorsIndex, a_run_that_fails_on_submit_consumes_no_donated_input) {
  const Device::Run failed = run({1, 0});
  if (!failed.submitted) {
    (void)input_.release();
    LTC_NOT_APPLICABLE("no run of this plugin fails on submit");
  }
  const Buffer other = device().upload(Array::floats({9, 9, 9, 9}));  // takes the memory that was freed too early
  EXPECT_EQ(read(input_), (Floats{1, 2, 3, 4})) << "the contract: a failed submit consumes nothing";
}

TEST_F(ErrorsIndex, a_donated_run_that_fails_says_so) {
  const Device::Run plain = run();
  if (!(plain.submitted ? plain.submitted : device().finish(plain.done)))
    LTC_NOT_APPLICABLE("the plugin does not look at indices");
  const Device::Run donated = run({1, 0});
  if (!donated.submitted) (void)input_.release();
  EXPECT_TRUE(donated.submitted ? donated.submitted : device().finish(donated.done))
      << "the same run without a donation fails, and with one it does not";
}

TEST_F(ErrorsIndex, failed_runs_leave_nothing_behind) {
  const auto growth = growth_per_time(500, [&] {
    const Device::Run failed = run();
    if (!failed.submitted) (void)device().finish(failed.done);
  });
  if (!growth) LTC_NOT_APPLICABLE("the allocator does not count");
  EXPECT_LT(*growth, kLeakBytes) << "bytes of host memory lost with each failed run";
}

}  // namespace
}  // namespace ltc::conformance
