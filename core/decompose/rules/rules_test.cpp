#include <gtest/gtest.h>

#include "core/decompose/decompose.h"
#include "core/decompose/rules/pairs.h"
#include "core/ir/text.h"
#include "core/ops/op_table.h"

namespace ltc::decompose {
namespace {

bool has_rule(const OpRow& row) { return find_rule(row.name) || find_complex_rule(row.name); }

TEST(Rules, EachDerivedOpHasOne) {
  for (const OpRow& row : op_rows()) {
    if (row.tier != Tier::kDerived) continue;
    EXPECT_TRUE(has_rule(row)) << row.name << ": write one, or say in the op table why it stays whole";
  }
}

TEST(Rules, WhatStaysWholeOrOnTheHostHasNoneAndSaysWhy) {
  for (const OpRow& row : op_rows()) {
    if (row.tier != Tier::kWhole && row.tier != Tier::kHost) continue;
    EXPECT_FALSE(has_rule(row)) << row.name;
    EXPECT_FALSE(op_doc(row).empty()) << row.name;
  }
}

TEST(Rules, GiveTheSecondResultAlone) {
  for (const char* op : {"aten::var_mean.correction", "aten::std_mean.correction"}) {
    const Graph graph = minimal_form(parse("graph(%0: f32[2,3]) { _, %1: f32[2] = " + std::string(op) +
                                           "(%0) {dim=[1], correction=none, keepdim=false} return %1 }"));
    for (const Node& node : graph.nodes) EXPECT_NE(op_name(node.op), op);
  }
}

TEST(Rules, AreOfOpsInTheTable) {
  for (const Decomposition& each : all_decompositions()) EXPECT_TRUE(find_op_row(each.op)) << each.op;
}

}  // namespace
}  // namespace ltc::decompose
