#include "core/compile/passes/verify_nodes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/ir/text.h"

namespace ltc {
namespace {

using testing::HasSubstr;

// The violation in a graph of one node of %0: f32[2,3] and %1: f32[2].
std::string violation(const std::string& node) {
  const Graph graph = parse("graph(%0: f32[2,3], %1: f32[2]) { " + node + " return %2 }");
  try {
    verify_nodes(graph, "the test");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kInternal);
    EXPECT_THAT(error.what(), HasSubstr("after the test"));
    return error.what();
  }
  return "legal";
}

TEST(VerifyNodes, AcceptsLegalNodes) {
  for (const char* node : {
           "%2: f32[2] = aten::neg(%1)",
           "%2: f32[2,3] = aten::add.Tensor(%0, %0) {alpha=1}",
           "_, %2: i64[2] = aten::max.dim(%0) {dim=1, keepdim=false}",
           "%2: f32[4,3] = aten::cat(%0, %0) {tensors.count=2, dim=0}",
           "%2: f32[3,2] = aten::reshape(%0) {shape=[-1,2]}",
           "%2: f32[3,2] = aten::permute(%0) {dims=[-1,0]}",
           "%2: f32[4,2,3] = aten::expand(%0) {size=[4,-1,3], implicit=false}",
           "%2: f32[2,2] = aten::slice.Tensor(%0) {dim=-1, start=none, end=9, step=2}",
           "%2: f32[2,0] = aten::slice.Tensor(%0) {dim=1, start=-1, end=1}",
           "%2: f32[2,2] = aten::as_strided(%0) {size=[2,2], stride=[3,1], storage_offset=1}",
           "%2: f32[0,9] = aten::as_strided(%0) {size=[0,9], stride=[3,1]}",
           "%2: f32[2,3] = aten::as_strided_scatter(%0, %1) {size=[2], stride=[3], storage_offset=2}",
           "%2: f64[2] = aten::_to_copy(%1) {dtype=f64}",
           "%2: i64[7], _ = custom::anything(none, %0) {mask=[1,0]}",
       }) {
    EXPECT_EQ(violation(node), "legal") << node;
  }
}

TEST(VerifyNodes, FindsCallsThatTheSchemaDoesNotTake) {
  EXPECT_THAT(violation("%2: f32[2] = aten::neg(%1, %1)"), HasSubstr("aten::neg has 2 operands, its schema 1"));
  EXPECT_THAT(violation("%2: f32[4,3] = aten::cat(%0, %0) {tensors.count=3, dim=0}"), HasSubstr("2 operands, its schema 3"));
  EXPECT_THAT(violation("%2: f32[2] = aten::neg(%1) {dim=0}"), HasSubstr("has an attribute that its schema lacks"));
  EXPECT_THAT(violation("%2: f32[2] = aten::max.dim(%0) {dim=1}"), HasSubstr("has 1 results, its schema 2"));
}

TEST(VerifyNodes, FindsWrongTypes) {
  for (const char* node : {
           "%2: f32[2,2] = aten::reshape(%0) {shape=[2,2]}",
           "%2: f32[6] = aten::reshape(%0) {shape=[3,2]}",
           "%2: f64[6] = aten::reshape(%0) {shape=[6]}",
           "%2: f32[2,3] = aten::permute(%0) {dims=[1,0]}",
           "%2: f32[2,2] = aten::permute(%0) {dims=[0,0]}",
           "%2: f32[2,3] = aten::permute(%0) {dims=[0,2]}",
           "%2: f32[2,6] = aten::expand(%0) {size=[2,6]}",
           "%2: f32[3,2] = aten::expand(%1) {size=[-1,2]}",
           "%2: f32[2,2] = aten::slice.Tensor(%0) {dim=1, start=0, end=3, step=1}",
           "%2: f32[2,3] = aten::slice.Tensor(%0) {dim=2}",
           "%2: f32[2,3] = aten::as_strided(%0) {size=[2,3], stride=[3,1], storage_offset=1}",
           "%2: f32[2,3] = aten::as_strided(%0) {size=[2,3], stride=[-3,1], storage_offset=3}",
           "%2: f32[2] = aten::as_strided(%0) {size=[3], stride=[1]}",
           "%2: f32[2,3] = aten::as_strided_scatter(%0, %1) {size=[2], stride=[5], storage_offset=1}",
           "%2: f32[2,3] = aten::as_strided_scatter(%0, %0) {size=[2], stride=[1]}",
           "%2: f32[2] = aten::_to_copy(%1) {dtype=f64}",
       }) {
    EXPECT_THAT(violation(node), HasSubstr("does not give a result of that type")) << node;
  }
  EXPECT_THAT(violation("%2: f32[6] = aten::reshape(%0)"), HasSubstr("aten::reshape lacks shape"));
  EXPECT_THAT(violation("%2: f32[2,3] = aten::as_strided_scatter(%0, none) {size=[2], stride=[1]}"),
              HasSubstr("aten::as_strided_scatter lacks src"));
}

}  // namespace
}  // namespace ltc
