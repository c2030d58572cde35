#include "core/compile/lowering/abi_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/ir/text.h"

namespace ltc {
namespace {

using testing::ElementsAre;

std::string text(const ltc_string& string) {
  EXPECT_EQ(string.data[string.size], '\0');
  return {string.data, string.size};
}

TEST(AbiGraph, TypesParamsAndOutputs) {
  const Graph graph = parse(R"(graph(%0: f32[2,3] -> 1, %1: f64 scalar, %2: bool[]) {
    %3: f32[2,3] = aten::mul.Tensor(%0, %1)
    %4: f32[2,3] = aten::where.self(%2, %3, %0)
    return %3, %4 })");
  const AbiGraph holder(graph);
  const ltc_graph& abi = *holder.get();
  EXPECT_EQ(abi.struct_size, LTC_SIZE_TO(ltc_graph, outputs));
  EXPECT_EQ(abi.ext, nullptr);

  ASSERT_EQ(abi.value_count, 5u);
  EXPECT_EQ(abi.types[0]->struct_size, LTC_SIZE_TO(ltc_type, sizes));
  EXPECT_EQ(abi.types[0]->dtype, static_cast<ltc_dtype>(LTC_F32));
  EXPECT_THAT(std::vector<int64_t>(abi.types[0]->sizes, abi.types[0]->sizes + abi.types[0]->rank), ElementsAre(2, 3));
  EXPECT_EQ(abi.types[2]->dtype, static_cast<ltc_dtype>(LTC_BOOL));
  EXPECT_EQ(abi.types[2]->rank, 0u);
  EXPECT_NE(abi.types[2]->sizes, nullptr);

  ASSERT_EQ(abi.param_count, 3u);
  EXPECT_EQ(abi.params[0]->struct_size, LTC_SIZE_TO(ltc_param, alias_output));
  EXPECT_EQ(abi.params[0]->flags, 0u);
  EXPECT_EQ(abi.params[0]->alias_output, 1u);
  EXPECT_EQ(abi.params[1]->value, 1u);
  EXPECT_EQ(abi.params[1]->flags, static_cast<uint32_t>(LTC_PARAM_SCALAR));
  EXPECT_EQ(abi.params[1]->alias_output, LTC_NONE);
  EXPECT_THAT(std::vector<uint32_t>(abi.outputs, abi.outputs + abi.output_count), ElementsAre(3, 4));
}

TEST(AbiGraph, Nodes) {
  const Graph graph = parse(R"(graph(%0: f32[2]) {
    _, %1: i64[] = aten::max.dim(%0, none) {dim=0}  # train.py:31
    %2: f32[2] = vendor::unknown()
    return %1, %2 })");
  const AbiGraph holder(graph);
  const ltc_graph& abi = *holder.get();
  ASSERT_EQ(abi.node_count, 2u);
  const ltc_node& node = *abi.nodes[0];
  EXPECT_EQ(node.struct_size, LTC_SIZE_TO(ltc_node, location));
  EXPECT_EQ(text(node.name), "aten::max.dim");
  EXPECT_EQ(text(node.location), "train.py:31");
  EXPECT_THAT(std::vector<uint32_t>(node.inputs, node.inputs + node.input_count), ElementsAre(0, LTC_NONE));
  EXPECT_THAT(std::vector<uint32_t>(node.outputs, node.outputs + node.output_count), ElementsAre(LTC_NONE, 1));
  EXPECT_EQ(node.attr_count, 1u);
  EXPECT_EQ(text(abi.nodes[1]->name), "vendor::unknown");
  EXPECT_EQ(abi.nodes[1]->op, 0u);
  EXPECT_EQ(abi.nodes[1]->input_count, 0u);
  EXPECT_EQ(abi.nodes[1]->attr_count, 0u);
}

TEST(AbiGraph, AttributesOfEveryKind) {
  const Graph graph = parse(R"(graph() {
    %0: f32[2] = test::a() {none=none, int=-3, float=1.5, bool=true, string="a\nb", dtype=i64}
    %1: f32[2] = test::b() {ints=[1,2], floats=[0.5], strings=["x","yz"], empty=[], no_strings=strings[]}
    return %0, %1 })");
  const AbiGraph holder(graph);
  const ltc_node &a = *holder.get()->nodes[0], &b = *holder.get()->nodes[1];
  ASSERT_EQ(a.attr_count, 6u);
  EXPECT_EQ(a.attrs[0]->struct_size, LTC_SIZE_TO(ltc_attr, value));
  EXPECT_EQ(text(a.attrs[0]->name), "none");
  EXPECT_EQ(a.attrs[0]->kind, static_cast<ltc_attr_kind>(LTC_ATTR_NONE));
  EXPECT_EQ(a.attrs[0]->count, 0u);
  EXPECT_EQ(a.attrs[1]->kind, static_cast<ltc_attr_kind>(LTC_ATTR_INT));
  EXPECT_EQ(a.attrs[1]->count, 1u);
  EXPECT_EQ(a.attrs[1]->value.ints[0], -3);
  EXPECT_EQ(a.attrs[2]->value.floats[0], 1.5);
  EXPECT_EQ(a.attrs[3]->kind, static_cast<ltc_attr_kind>(LTC_ATTR_BOOL));
  EXPECT_EQ(a.attrs[3]->value.ints[0], 1);
  EXPECT_EQ(text(a.attrs[4]->value.strings[0]), "a\nb");
  EXPECT_EQ(a.attrs[5]->kind, static_cast<ltc_attr_kind>(LTC_ATTR_DTYPE));
  EXPECT_EQ(a.attrs[5]->value.ints[0], LTC_I64);

  ASSERT_EQ(b.attr_count, 5u);
  EXPECT_THAT(std::vector<int64_t>(b.attrs[0]->value.ints, b.attrs[0]->value.ints + b.attrs[0]->count), ElementsAre(1, 2));
  EXPECT_EQ(b.attrs[1]->kind, static_cast<ltc_attr_kind>(LTC_ATTR_FLOATS));
  ASSERT_EQ(b.attrs[2]->count, 2u);
  EXPECT_EQ(text(b.attrs[2]->value.strings[0]), "x");
  EXPECT_EQ(text(b.attrs[2]->value.strings[1]), "yz");
  EXPECT_EQ(b.attrs[3]->count, 0u);
  EXPECT_EQ(b.attrs[3]->value.ints, nullptr);
  EXPECT_EQ(b.attrs[4]->kind, static_cast<ltc_attr_kind>(LTC_ATTR_STRINGS));
  EXPECT_EQ(b.attrs[4]->value.strings, nullptr);
}

TEST(AbiGraph, Empty) {
  const Graph graph;
  const AbiGraph holder(graph);
  EXPECT_EQ(holder.get()->node_count + holder.get()->value_count + holder.get()->param_count + holder.get()->output_count, 0u);
}

}  // namespace
}  // namespace ltc
