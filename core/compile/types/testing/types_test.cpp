// Calls that PyTorch has recorded, one of each op (calls.txt), and what is left of their soundness when one thing of them
// changes.
#include <gmock/gmock.h>

#include <fstream>
#include <map>
#include <set>

#include "core/base/error.h"
#include "core/compile/passes/verify_nodes.h"
#include "core/compile/types/rules.h"
#include "core/ir/text.h"
#include "core/ir/verify.h"

namespace ltc::types {
namespace {

using ::testing::HasSubstr;

std::vector<Graph> calls() {
  std::vector<Graph> graphs;
  std::ifstream file(LTC_RECORDED_CALLS);
  for (std::string line; std::getline(file, line);) graphs.push_back(parse(line));
  return graphs;
}

bool is_sound(const Graph& graph) {
  try {
    check_types(graph);
    return true;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kDataCorrupt) << error.what();
    return false;
  }
}

std::string name_of(const Graph& graph) { return op_name(graph.nodes[0].op); }

Graph with_type(Graph graph, ValueId value, DType dtype, const Dims& sizes) {
  graph.types[value] = intern_contiguous(dtype, sizes);
  return graph;
}

// The graph with other sizes of one value: each dim larger and smaller, one more and one less.
std::vector<Graph> resized(const Graph& graph, ValueId value) {
  const Type& type = graph.type(value);
  std::vector<Graph> all;
  const auto add = [&](const Dims& sizes) { all.push_back(with_type(graph, value, type.dtype, sizes)); };
  for (size_t i = 0; i < type.sizes.size(); ++i) {
    Dims sizes = type.sizes;
    ++sizes[i], add(sizes);
    sizes[i] -= 2;
    if (sizes[i] >= 0) add(sizes);
  }
  Dims more = type.sizes;
  more.insert(more.begin(), 2), add(more);
  if (!type.sizes.empty()) add(Dims(type.sizes.begin() + 1, type.sizes.end()));
  return all;
}

Graph with_attr(Graph graph, const Attr& changed) {
  AttrList attrs = attrs_of(graph.nodes[0].attrs);
  for (Attr& attr : attrs) {
    if (attr.name == changed.name) attr = changed;
  }
  graph.nodes[0].attrs = intern_attrs(attrs);
  return graph;
}

// The value that an LSTM's forward keeps for its backward, of the plugin's own form.
bool is_reserve(const Graph& graph, ValueId output) {
  return name_of(graph) == "ltc::lstm_layer" && output == graph.nodes[0].outputs[3];
}

struct Count {
  size_t changed = 0, refused = 0;
  std::map<std::string, std::set<std::string>> accepted;  // by op
  void note(const Graph& graph, const std::string& what) {
    ++changed;
    if (is_sound(graph)) {
      accepted[name_of(graph)].insert(what);
    } else {
      ++refused;
    }
  }
};

TEST(Types, CallsThatPyTorchRecordsAreSound) {
  std::set<std::string> ops;
  for (const Graph& graph : calls()) {
    EXPECT_TRUE(is_sound(graph)) << print(graph);
    ops.insert(name_of(graph));
  }
  EXPECT_GT(ops.size(), 400u);
}

TEST(Types, ResultsOfOtherSizesAreRefused) {
  Count count;
  for (const Graph& graph : calls()) {
    for (const ValueId output : graph.nodes[0].outputs) {
      if (output == kNone || is_reserve(graph, output)) continue;
      for (const Graph& other : resized(graph, output)) count.note(other, "");
    }
  }
  EXPECT_GT(count.changed, 2000u);
  EXPECT_EQ(count.refused, count.changed);
  for (const auto& [op, unused] : count.accepted) ADD_FAILURE() << op << " may have results of other sizes";
}

TEST(Types, ResultsOfOtherDtypesAreRefused) {
  Count count;
  for (const Graph& graph : calls()) {
    for (const ValueId output : graph.nodes[0].outputs) {
      if (output == kNone || is_reserve(graph, output)) continue;
      const Type& type = graph.type(output);
      for (const DType dtype : {DType::kI8, DType::kI16, DType::kU32, DType::kU64}) {
        if (dtype != type.dtype) count.note(with_type(graph, output, dtype, type.sizes), std::string(dtype_name(dtype)));
      }
    }
  }
  EXPECT_GT(count.changed, 1500u);
  EXPECT_EQ(count.refused, count.changed);
  for (const auto& [op, dtypes] : count.accepted) ADD_FAILURE() << op << " may give " << *dtypes.begin();
}

// Some fit as well: sizes that broadcast, and operands whose sizes have nothing to do with the others'.
TEST(Types, MostOperandsOfOtherSizesAreRefused) {
  Count count;
  for (const Graph& graph : calls()) {
    for (const Param& param : graph.params) {
      if (param.scalar) continue;
      for (const Graph& other : resized(graph, param.value)) count.note(other, "");
    }
  }
  EXPECT_GT(count.changed, 3000u);
  EXPECT_GT(count.refused, count.changed * 85 / 100) << count.refused << " of " << count.changed;
}

TEST(Types, AttributesOfOtherKindsAndOutOfRangeAreRefused) {
  Count count;
  for (const Graph& graph : calls()) {
    for (const Attr& attr : attrs_of(graph.nodes[0].attrs)) {
      const bool placement = attr.name == "memory_format" || attr.name == "layout" || attr.name == "pin_memory";
      if (placement || attr.kind == AttrKind::kNone) continue;
      count.note(with_attr(graph, {attr.name, AttrKind::kString, {}, {}, {"sum"}}), attr.name);
      if (attr.name == "dim" && attr.kind == AttrKind::kInt) count.note(with_attr(graph, Attr::of_int("dim", 9)), "dim=9");
    }
  }
  EXPECT_GT(count.changed, 500u);
  for (auto& [op, names] : count.accepted) names.erase("reduce"), names.erase("rounding_mode"), names.erase("approximate");
  std::erase_if(count.accepted, [](const auto& one) { return one.second.empty(); });
  for (const auto& [op, names] : count.accepted) ADD_FAILURE() << op << " takes any " << *names.begin();
}

TEST(Types, NumbersThatSizesFollowFromAreLimited) {
  size_t refused = 0;
  for (const Graph& graph : calls()) {
    for (const Attr& attr : attrs_of(graph.nodes[0].attrs)) {
      for (size_t i = 0; i < attr.ints.size(); ++i) {
        for (const int64_t extreme : {INT64_MAX, INT64_MIN, INT64_MAX - 1, int64_t{1} << 33}) {
          Attr other = attr;
          if (attr.kind == AttrKind::kDType || attr.kind == AttrKind::kBool) continue;
          other.ints[i] = extreme;
          refused += !is_sound(with_attr(graph, other));  // and nothing overflows
        }
      }
    }
  }
  EXPECT_GT(refused, 1000u);
}

std::string refusal(const std::string& node) {
  try {
    check_types(parse("graph(%0: f32[2,3], %1: f32[2]) { " + node + " return %2 }"));
  } catch (const Error& error) {
    return cat(code_name(error.code()), ": ", error.what());
  }
  return "";
}

TEST(Types, OpsWithoutARuleAreRefusedByName) {
  EXPECT_THAT(refusal("%2: f32[2] = custom::anything(%1)"),
              HasSubstr("UNSUPPORTED: custom::anything has no rule for its types: graph(%1: f32[2]) {"));
  EXPECT_THAT(refusal("%2: f32[2] = aten::masked_scatter(%1, %1, %1)"),
              HasSubstr("UNSUPPORTED: aten::masked_scatter has no rule for its types"));
}

TEST(Types, ARefusalSaysOpNodeAndTypes) {
  const std::string text = refusal("%2: f32[2,2] = aten::mm(%0, %0)");
  EXPECT_THAT(text, HasSubstr("DATA_CORRUPT: aten::mm does not give a result of that type: graph(%0: f32[2,3]) {"));
  EXPECT_THAT(text, HasSubstr("%2: f32[2,2] = aten::mm(%0, %0)"));
}

// docs/archive.md lists the ops of the table that have no rule.
TEST(Types, TheListOfOpsWithoutARuleIsInTheDocuments) {
  std::ifstream file(LTC_ARCHIVE_DOC);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const size_t begin = text.find("<!-- ops without a rule -->"), end = text.find("<!-- end -->", begin);
  ASSERT_NE(end, text.npos);
  std::set<std::string> listed, without;
  for (size_t at = text.find('`', begin); at < end; at = text.find('`', text.find('`', at + 1) + 1))
    listed.insert(text.substr(at + 1, text.find('`', at + 1) - at - 1));
  for (const OpRow& row : op_rows()) {
    if (row.tier != Tier::kHost && find_rule(row.name).empty())
      without.insert(std::string(row.name.starts_with("aten::") ? row.name.substr(6) : row.name));
  }
  EXPECT_EQ(listed, without);
}

// A misspelt op would be one without a rule.
TEST(Types, EachRuleIsOfOpsOfTheTable) {
  for (const std::string_view op : ops_with_rules())
    EXPECT_TRUE(find_op_row(op.find("::") == op.npos ? cat("aten::", op) : std::string(op))) << op;
}

}  // namespace
}  // namespace ltc::types
