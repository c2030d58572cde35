#include "core/run/reads/host_values.h"

#include <gtest/gtest.h>

#include <cstring>

namespace ltc {
namespace {

int g_runs = 0;

// The sum of everything that the graph takes.
std::vector<HostValue> sum_of_all(const Graph& graph, std::span<const HostValue> inputs, std::span<const Scalar> scalars) {
  ++g_runs;
  int64_t sum = 0;
  for (const HostValue& input : inputs) sum += *static_cast<const int64_t*>(input.data.get());
  for (const Scalar& scalar : scalars) sum += scalar.i;
  HostValue value = allocate_host_value(graph.types.at(graph.outputs.at(0)));
  std::memcpy(value.data.get(), &sum, sizeof sum);
  return {value};
}

int64_t number_in(const HostValue& value) { return *static_cast<const int64_t*>(value.data.get()); }

class HostValuesTest : public ::testing::Test {
 protected:
  HostValuesTest() { set_host_runner(sum_of_all), g_runs = 0; }
  ~HostValuesTest() override { set_host_runner(nullptr); }

  ValueId scalar(int64_t number) {
    scalars.push_back({.i = number});
    return trace.add_param(kOpScalar, i64);
  }
  ValueId add(std::initializer_list<ValueId> inputs, TypeId type) {
    static const OpId op = intern_op("aten::add.Tensor");
    return trace.add_node(op, type, kNoAttrs, std::span(inputs.begin(), inputs.size()));
  }
  ValueId add(std::initializer_list<ValueId> inputs) { return add(inputs, i64); }
  std::optional<HostSlice> slice_of(ValueId value) { return host_slice(trace, {}, scalars, value); }

  const TypeId i64 = scalar_type(DType::kI64), f32 = scalar_type(DType::kF32);
  Trace trace;
  std::vector<Scalar> scalars;
  HostValues values;
};

TEST_F(HostValuesTest, AValueOfNumbersIsComputedOnce) {
  for (int turn = 0; turn < 3; ++turn) {
    trace.clear(), scalars.clear();
    const ValueId other = scalar(100 + turn), used = scalar(7);  // the first is of no use to the value
    add({other});
    const auto slice = slice_of(add({add({used}), used}));
    ASSERT_TRUE(slice);
    EXPECT_EQ(slice->trace.records.size(), 3u);
    EXPECT_EQ(number_in(values.compute(*slice)), 7);
  }
  EXPECT_EQ(g_runs, 1);
}

TEST_F(HostValuesTest, OtherNumbersAreAnotherValue) {
  const auto first = slice_of(add({scalar(1)})), second = slice_of(add({scalar(2)}));
  EXPECT_EQ(number_in(values.compute(*first)), 1);
  EXPECT_EQ(number_in(values.compute(*second)), 2);
  EXPECT_EQ(number_in(values.compute(*first)), 1);
  EXPECT_EQ(g_runs, 2);
}

TEST_F(HostValuesTest, TheDeviceComputesFloatsAndWhatIsUnknown) {
  const ValueId number = scalar(1);
  EXPECT_FALSE(slice_of(add({number}, f32)));
  EXPECT_FALSE(slice_of(add({add({number}, f32)})));
  EXPECT_FALSE(slice_of(trace.add_node(intern_op("test::unknown"), i64, kNoAttrs, {})));
  constexpr int64_t kMany[] = {1 << 17};
  EXPECT_FALSE(slice_of(add({number}, intern_contiguous(DType::kI64, kMany))));
  const ValueId pair = add({number});
  trace.add_result(pair, 1, i64);
  EXPECT_FALSE(slice_of(pair));
}

TEST_F(HostValuesTest, ALongComputationIsTheDevices) {
  ValueId value = add({scalar(1)});
  for (int i = 0; i < 40; ++i) value = add({value});
  EXPECT_TRUE(slice_of(value));
  for (int i = 0; i < 40; ++i) value = add({value});
  EXPECT_FALSE(slice_of(value));
}

TEST_F(HostValuesTest, AnErrorIsLeftToTheDevice) {
  set_host_runner([](const Graph&, std::span<const HostValue>, std::span<const Scalar>) -> std::vector<HostValue> {
    throw std::runtime_error("no");
  });
  EXPECT_FALSE(values.compute(*slice_of(add({scalar(1)}))).data);
}

}  // namespace
}  // namespace ltc
