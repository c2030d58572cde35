// The execute tier: donated inputs.
#include "conformance/kit/heap.h"
#include "conformance/tiers/execute_fixture.h"

namespace ltc::conformance {
namespace {

// ---- donation

class ExecuteDonation : public Execute {
 protected:
  // Runs with input 0 donated; its handle is gone.
  std::vector<Buffer> run_donating(const Executable& executable, Buffer& first, std::vector<ltc_buffer*> others = {},
                                   size_t output_count = 1) {
    std::vector<ltc_buffer*> inputs{first.get()};
    inputs.insert(inputs.end(), others.begin(), others.end());
    std::vector<uint8_t> donate(inputs.size(), 0);
    donate[0] = 1;
    auto outputs = device().run({executable, inputs, output_count, {}, donate});
    (void)first.release();
    return outputs;
  }
};

constexpr const char* kAliased =
    "graph(%0: f32[4] -> 0, %1: f32[4]) { %2: f32[4] = aten::add.Tensor(%0, %1) {alpha=1} return %2 }";

TEST_F(ExecuteDonation, a_donated_input_becomes_the_output) {
  const Executable executable = device().build(kAliased);
  Buffer a = four();
  const Buffer b = four();
  EXPECT_EQ(read(run_donating(executable, a, {b.get()})[0]), (Floats{2, 4, 6, 8}));
  EXPECT_EQ(read(b), (Floats{1, 2, 3, 4}));
}

TEST_F(ExecuteDonation, a_donation_without_an_alias_is_freed) {
  const Executable executable = device().build(kAdd4);
  Buffer a = four();
  const Buffer b = four();
  EXPECT_EQ(read(run_donating(executable, a, {b.get()})[0]), (Floats{2, 4, 6, 8}));
}

TEST_F(ExecuteDonation, an_alias_that_is_not_donated_keeps_its_contents) {
  const Executable executable = device().build(kAliased);
  const Buffer a = four(), b = four();
  EXPECT_EQ(read(device().run({executable, {a.get(), b.get()}})[0]), (Floats{2, 4, 6, 8}));
  EXPECT_EQ(read(a), (Floats{1, 2, 3, 4})) << "alias_output permits nothing without ltc_execute_args::donate";
  EXPECT_EQ(read(device().run({executable, {a.get(), b.get()}, 1, {}, {0, 0}})[0]), (Floats{2, 4, 6, 8}));
  EXPECT_EQ(read(a), (Floats{1, 2, 3, 4})) << "donate is 0 for it";
}

TEST_F(ExecuteDonation, a_donated_input_that_is_read_late_is_read_right) {
  const Executable executable =
      device().build("graph(%0: f32[4] -> 0) { %1: f32[4] = aten::neg(%0) %2: f32[4] = aten::mul.Tensor(%0, %1) return %1, %2 }");
  Buffer a = four();
  const auto outputs = run_donating(executable, a, {}, 2);
  EXPECT_EQ(read(outputs[0]), (Floats{-1, -2, -3, -4}));
  EXPECT_EQ(read(outputs[1]), (Floats{-1, -4, -9, -16})) << "the input's memory was reused before its last reader";
}

TEST_F(ExecuteDonation, the_second_of_two_outputs_may_take_the_memory) {
  const Executable executable = device().build(
      "graph(%0: f32[4] -> 1, %1: f32[4]) { %2: f32[4] = aten::neg(%0) %3: f32[4] = aten::add.Tensor(%0, %1) {alpha=1} return "
      "%2, %3 }");
  Buffer a = four();
  const Buffer b = device().upload(Array::floats({10, 20, 30, 40}));
  const auto outputs = run_donating(executable, a, {b.get()}, 2);
  EXPECT_EQ(read(outputs[0]), (Floats{-1, -2, -3, -4})) << "output 0 is not the one that the alias names";
  EXPECT_EQ(read(outputs[1]), (Floats{11, 22, 33, 44}));
}

TEST_F(ExecuteDonation, two_params_donate_to_two_outputs_crosswise) {
  const Executable executable = device().build(
      "graph(%0: f32[4] -> 1, %1: f32[4] -> 0) { %2: f32[4] = aten::neg(%0) %3: f32[4] = aten::neg(%1) return %2, %3 }");
  Buffer a = four(), b = device().upload(Array::floats({5, 6, 7, 8}));
  const auto outputs = device().run({executable, {a.get(), b.get()}, 2, {}, {1, 1}});
  (void)a.release(), (void)b.release();
  EXPECT_EQ(read(outputs[0]), (Floats{-1, -2, -3, -4}));
  EXPECT_EQ(read(outputs[1]), (Floats{-5, -6, -7, -8}));
}

TEST_F(ExecuteDonation, a_parameter_is_updated_in_place_for_many_steps) {
  const Executable executable = device().build(kAliased);
  Buffer value = four();
  const Buffer one = device().upload(Array::floats({1, 1, 1, 1}));
  for (int i = 0; i < 200; ++i) value = std::move(run_donating(executable, value, {one.get()})[0]);
  EXPECT_EQ(read(value), (Floats{201, 202, 203, 204}));
}

TEST_F(ExecuteDonation, a_donation_of_another_size_is_freed) {
  const Executable executable = device().build("graph(%0: f32[3], %1: f32[4]) { %2: f32[4] = aten::neg(%1) return %2 }");
  Buffer a = device().upload(Array::floats({1, 2, 3}));
  const Buffer b = four();
  EXPECT_EQ(read(run_donating(executable, a, {b.get()})[0]), (Floats{-1, -2, -3, -4}));
}

TEST_F(ExecuteDonation, donations_leave_nothing_behind) {
  const Executable executable = device().build(kAliased), plain = device().build(kAdd4);
  const Buffer one = four();
  const auto growth = growth_per_time(1000, [&] {
    Buffer a = four(), b = four();
    (void)run_donating(executable, a, {one.get()});
    (void)run_donating(plain, b, {one.get()});
  });
  if (!growth) LTC_NOT_APPLICABLE("the allocator does not count");
  EXPECT_LT(*growth, kLeakBytes) << "bytes of host memory lost with each donation: its handle is gone, so the plugin frees it";
}

}  // namespace
}  // namespace ltc::conformance
