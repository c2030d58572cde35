// Readers of graphs, and the table of ops.
#include "ltc/graph.hpp"

#include <gtest/gtest.h>

#include <deque>

namespace ltc::plugin {
namespace {

ltc_string text(const char* chars) { return {chars, std::char_traits<char>::length(chars)}; }

// graph(%0: f32[2,3], %1: f64 scalar) { %2: f32[2,3] = OP(INPUTS) {ATTRS} return %2 }
class OneNode {
 public:
  OneNode(uint32_t op, const char* name, std::vector<uint32_t> inputs) : inputs_(std::move(inputs)) {
    node_ = {LTC_SIZE_TO(ltc_node, location), op, text(name), inputs_.size(), inputs_.data(), 1, &kOutput, 0, nullptr, {}};
  }
  OneNode& with(const char* name, ltc_attr_kind kind, const int64_t* values, size_t count = 1) {
    ltc_attr& attr = attrs_.emplace_back();
    attr = {LTC_SIZE_TO(ltc_attr, value), text(name), kind, count, {.ints = values}};
    pointers_.push_back(&attr);
    node_.attr_count = pointers_.size();
    node_.attrs = pointers_.data();
    return *this;
  }
  OneNode& with(const char* name, const double* values) {
    with(name, LTC_ATTR_FLOAT, nullptr);
    attrs_.back().value.floats = values;
    return *this;
  }
  OneNode& with(const char* name, const ltc_string* value) {
    with(name, LTC_ATTR_STRING, nullptr);
    attrs_.back().value.strings = value;
    return *this;
  }
  OneNode& with_flags(uint32_t flags) {
    params_[0].flags = flags;
    return *this;
  }
  const ltc_graph& get() { return graph_; }

 private:
  static constexpr uint32_t kOutput = 2;
  static constexpr int64_t kSizes[] = {2, 3};
  ltc_type tensor_{LTC_SIZE_TO(ltc_type, sizes), LTC_F32, 2, kSizes}, scalar_{LTC_SIZE_TO(ltc_type, sizes), LTC_F64, 0, kSizes};
  const ltc_type* types_[3] = {&tensor_, &scalar_, &tensor_};
  ltc_param params_[2] = {{LTC_SIZE_TO(ltc_param, alias_output), 0, 0, LTC_NONE},
                          {LTC_SIZE_TO(ltc_param, alias_output), 1, LTC_PARAM_SCALAR, LTC_NONE}};
  const ltc_param* param_pointers_[2] = {&params_[0], &params_[1]};
  std::vector<uint32_t> inputs_;
  std::deque<ltc_attr> attrs_;
  std::vector<const ltc_attr*> pointers_;
  ltc_node node_{};
  const ltc_node* nodes_[1] = {&node_};
  ltc_graph graph_{LTC_SIZE_TO(ltc_graph, outputs), nullptr, 3, types_, 2, param_pointers_, 1, nodes_, 1, &kOutput};
};

constexpr int64_t kOne = 1, kTwo = 2, kDtype = LTC_I64, kDims[] = {1, 0};
constexpr double kHalf = 0.5;
const ltc_string kTanh = text("tanh");

TEST(GraphReader, values_and_params) {
  OneNode made(LTC_OP_ATEN_ADD_TENSOR, "aten::add.Tensor", {0, 1, LTC_NONE});
  const Graph graph(made.get());
  EXPECT_FALSE(graph.is_scalar(0));
  EXPECT_TRUE(graph.is_scalar(1));
  EXPECT_TRUE(graph.knows_flags());
  EXPECT_FALSE(Graph(made.with_flags(4).get()).knows_flags());
  const Node node = graph.node(0);
  EXPECT_EQ(node.name(), "aten::add.Tensor");
  EXPECT_EQ(node.input(0).rank, 2u);
  EXPECT_EQ(node.output(0).sizes[1], 3);
  EXPECT_TRUE(node.has_input(1));
  EXPECT_FALSE(node.has_input(2));
  EXPECT_FALSE(node.has_input(3));
}

TEST(GraphReader, attributes_by_name_and_kind) {
  OneNode made(0, "mine::op", {0});
  made.with("dim", LTC_ATTR_INT, &kTwo).with("keepdim", LTC_ATTR_BOOL, &kOne).with("dims", LTC_ATTR_INTS, kDims, 2);
  made.with("alpha", &kHalf).with("dtype", LTC_ATTR_DTYPE, &kDtype).with("approximate", &kTanh);
  made.with("end", LTC_ATTR_NONE, nullptr, 0).with("empty", LTC_ATTR_INTS, nullptr, 0);
  const Graph graph(made.get());
  const Node node = graph.node(0);
  EXPECT_EQ(node.get<int64_t>("dim"), 2);
  EXPECT_TRUE(node.get<bool>("keepdim"));
  EXPECT_EQ(node.get<double>("alpha"), 0.5);
  EXPECT_EQ(node.get<double>("dim"), 2);
  EXPECT_EQ(node.get<ltc_dtype>("dtype"), LTC_I64);
  EXPECT_EQ(node.get<std::string_view>("approximate"), "tanh");
  const auto dims = node.get<std::span<const int64_t>>("dims");
  EXPECT_EQ(std::vector(dims.begin(), dims.end()), (std::vector<int64_t>{1, 0}));
  EXPECT_TRUE(node.get<std::span<const int64_t>>("empty").empty());
  EXPECT_EQ(node.get<int64_t>("end", 9), 9);
  EXPECT_EQ(node.get<int64_t>("absent", 9), 9);
  EXPECT_EQ(node.find<int64_t>("alpha"), std::nullopt);
  EXPECT_EQ(node.find<bool>("dim"), std::nullopt);
  try {
    node.get<int64_t>("absent");
    FAIL() << "an attribute that is not there was read";
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.error().code, LTC_UNSUPPORTED);
    EXPECT_EQ(failure.error().node, 0u);
    EXPECT_NE(failure.error().message.find("absent"), std::string::npos);
  }
}

const OpTable<int> kTable{
    {"aten::neg", 1},
    {"aten::add.Tensor", 2, [](const Node& node) { return node.get<double>("alpha", 0) == 1; }},
    {"mine::op", 3, nullptr, "T:self I:dim"},
};

bool claims(const ltc_graph& graph) {
  uint32_t cluster = 0;
  kTable.claim(graph, &cluster);
  return cluster == 1;
}

TEST(Ops, are_claimed_by_name_and_operands) {
  EXPECT_TRUE(claims(OneNode(LTC_OP_ATEN_NEG, "aten::neg", {0}).get()));
  EXPECT_FALSE(claims(OneNode(LTC_OP_ATEN_ABS, "aten::abs", {0}).get()));
  EXPECT_FALSE(claims(OneNode(LTC_OP_ATEN_NEG, "aten::neg", {0, 0}).get()));
  EXPECT_FALSE(claims(OneNode(LTC_OP_ATEN_NEG, "aten::neg", {0}).with("newer", LTC_ATTR_INT, &kOne).get()));
  EXPECT_FALSE(claims(OneNode(LTC_OP_ATEN_NEG, "aten::neg", {0}).with_flags(2).get()));
}

TEST(Ops, a_row_may_refuse_a_form) {
  const auto add = [] { return OneNode(LTC_OP_ATEN_ADD_TENSOR, "aten::add.Tensor", {0, 0}); };
  EXPECT_TRUE(claims(add().with("alpha", LTC_ATTR_INT, &kOne).get()));
  EXPECT_FALSE(claims(add().with("alpha", LTC_ATTR_INT, &kTwo).get()));
}

TEST(Ops, without_id_have_operands_in_their_row) {
  EXPECT_TRUE(claims(OneNode(0, "mine::op", {0}).with("dim", LTC_ATTR_INT, &kOne).get()));
  EXPECT_FALSE(claims(OneNode(0, "mine::op", {0}).with("dims", LTC_ATTR_INT, &kOne).get()));
  EXPECT_FALSE(claims(OneNode(0, "aten::neg", {0}).get())) << "the row has no operands for an op without id";
}

TEST(Ops, a_row_is_found_by_its_name) {
  ASSERT_NE(kTable.named("aten::add.Tensor"), nullptr);
  EXPECT_EQ(kTable.named("aten::add.Tensor")->handler, 2);
  EXPECT_EQ(kTable.named("aten::add"), nullptr);
}

TEST(Ops, a_row_is_found_or_its_node_is_to_blame) {
  OneNode neg(LTC_OP_ATEN_NEG, "aten::neg", {0}), abs(LTC_OP_ATEN_ABS, "aten::abs", {0});
  EXPECT_EQ(kTable.at(Graph(neg.get()).node(0)).handler, 1);
  const Graph other(abs.get());
  try {
    kTable.at(other.node(0));
    FAIL() << "a row was found for aten::abs";
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.error().code, LTC_UNSUPPORTED);
    EXPECT_EQ(failure.error().node, 0u);
  }
}

bool fits(std::vector<uint32_t> inputs, std::string_view types) {
  OneNode made(0, "mine::op", std::move(inputs));
  const Graph graph(made.get());
  return matches_types(graph.node(0), types, [](ltc_dtype dtype) { return dtype == LTC_F32 || dtype == LTC_F64; });
}

// Value 0 and the result are F32, value 1 is a scalar param, F64.
TEST(Types, are_matched_by_letters) {
  EXPECT_TRUE(fits({0, 0}, "TT:T"));
  EXPECT_FALSE(fits({0}, "TT:T")) << "an operand is missing";
  EXPECT_FALSE(fits({0, 0, 0}, "TT:T")) << "an operand more";
  EXPECT_FALSE(fits({0}, "T:TT")) << "a result is missing";
  EXPECT_FALSE(fits({0, 1}, "TT:T")) << "a scalar param for a tensor";
  EXPECT_TRUE(fits({0, 1}, "TN:T")) << "of another dtype, as the row allows";
  EXPECT_TRUE(fits({0, 0}, "TN:T"));
  EXPECT_TRUE(fits({0}, "A:A"));
  for (const char* types : {"b:T", "i:T", "c:T", "T:b", "T:i", "T:c"}) EXPECT_FALSE(fits({0}, types)) << types;
  EXPECT_TRUE(fits({0, 1}, "Ts:T"));
  EXPECT_TRUE(fits({0}, "Ts:T")) << "the number is an attribute";
  EXPECT_FALSE(fits({0, 0}, "Ts:T"));
  EXPECT_TRUE(fits({0, LTC_NONE}, "T-:T"));
  EXPECT_FALSE(fits({0, 0}, "T-:T"));
  EXPECT_FALSE(fits({0, LTC_NONE}, "TT:T"));
  EXPECT_TRUE(fits({0, 0, 0}, "+:T"));
  EXPECT_TRUE(fits({}, "+:T"));
  EXPECT_FALSE(fits({0, 1}, "+:T"));
}

TEST(Types, that_the_op_does_not_compute_fit_no_letter) {
  OneNode made(0, "mine::op", {0, 1});
  const Graph graph(made.get());
  const auto none = [](ltc_dtype) { return false; };
  for (const char* types : {"TN:T", "AN:A"}) EXPECT_FALSE(matches_types(graph.node(0), types, none)) << types;
}

// Value 0 and the result have one dim, value 1 has none.
bool is_usual(const char* name, std::vector<uint32_t> inputs) {
  OneNode made(0, name, std::move(inputs));
  const Graph graph(made.get());
  return has_usual_form(graph.node(0));
}

TEST(Form, is_usual_without_a_factor) {
  const auto with_alpha = [](ltc_attr_kind kind, const int64_t* value) {
    OneNode add(LTC_OP_ATEN_ADD_TENSOR, "aten::add.Tensor", {0, 0});
    const Graph graph(add.with("alpha", kind, value).get());
    return has_usual_form(graph.node(0));
  };
  EXPECT_TRUE(is_usual("aten::add.Tensor", {0, 0}));
  EXPECT_TRUE(with_alpha(LTC_ATTR_INT, &kOne));
  EXPECT_FALSE(with_alpha(LTC_ATTR_INT, &kTwo));
}

TEST(Form, is_usual_where_all_parts_have_the_rank_of_the_whole) {
  EXPECT_TRUE(is_usual("aten::cat", {0, 0}));
  EXPECT_FALSE(is_usual("aten::cat", {0, 1}));
}

TEST(Form, is_usual_where_what_is_indexed_has_a_dim) {
  for (const char* name : {"aten::gather", "aten::scatter.src", "aten::scatter_add", "aten::flip"}) {
    EXPECT_TRUE(is_usual(name, {0, 0})) << name;
    EXPECT_FALSE(is_usual(name, {0, 1})) << name;
    EXPECT_FALSE(is_usual(name, {0, LTC_NONE})) << name << " lacks an operand";
  }
  EXPECT_TRUE(is_usual("aten::neg", {1}));
}

// graph(%0) { %1 = a(%0) %2 = checked(%0) %3 = b(%2, none) %4, none = c(%1) return %1, %2, %3, %4, %0 }
TEST(Outputs, that_do_not_depend_on_a_node_that_may_fail) {
  const int64_t size = 2;
  const ltc_type type{LTC_SIZE_TO(ltc_type, sizes), LTC_F32, 1, &size};
  const ltc_type* const types[] = {&type, &type, &type, &type, &type};
  const ltc_param param{LTC_SIZE_TO(ltc_param, alias_output), 0, 0, LTC_NONE};
  const ltc_param* const params[] = {&param};
  const uint32_t of_param[] = {0}, of_checked[] = {2, LTC_NONE}, of_first[] = {1};
  const uint32_t first[] = {1}, checked[] = {2}, third[] = {3}, last[] = {4, LTC_NONE};
  const auto node = [](std::span<const uint32_t> inputs, std::span<const uint32_t> outputs) {
    return ltc_node{LTC_SIZE_TO(ltc_node, location),
                    0,
                    text("op"),
                    inputs.size(),
                    inputs.data(),
                    outputs.size(),
                    outputs.data(),
                    0,
                    nullptr,
                    {}};
  };
  const ltc_node nodes[] = {node(of_param, first), node(of_param, checked), node(of_checked, third), node(of_first, last)};
  const ltc_node* const pointers[] = {&nodes[0], &nodes[1], &nodes[2], &nodes[3]};
  const uint32_t outputs[] = {1, 2, 3, 4, 0};
  const ltc_graph graph{LTC_SIZE_TO(ltc_graph, outputs), nullptr, 5, types, 1, params, 4, pointers, 5, outputs};
  EXPECT_EQ(unaffected_outputs(Graph(graph), {false, true, false, false}), (std::vector<uint8_t>{1, 0, 0, 1, 1}));
  EXPECT_EQ(unaffected_outputs(Graph(graph), {false, false, false, false}), (std::vector<uint8_t>{1, 1, 1, 1, 1}));
}

}  // namespace
}  // namespace ltc::plugin
