// The abi tier, of plugins that compute: args of another date, and graphs with what the plugin cannot know.
#include <algorithm>

#include "conformance/tiers/abi_fixture.h"
#include "core/compile/lowering/abi_graph.h"
#include "core/ir/text.h"

namespace ltc::conformance {
namespace {

// ---- the same for the calls of a plugin that computes

class AbiCompute : public ComputeTest {
 protected:
  static void expect(const char* slot, How how, const Failure& failure) {
    EXPECT_OK(failure) << slot << (how == How::kLarger ? " refused a larger struct: " : " refused an unknown extension: ")
                       << failure;
  }

  void claims(How how) {
    const Graph graph = parse(kNeg4);
    const AbiGraph abi(graph);
    auto args = args_for<ltc_claims_args>(how);
    args->graph = abi.get();
    uint32_t cluster = 0;
    const auto failure = Instance::asked("claims", [&] { return api().claims(device().get(), args.get(), &cluster); });
    expect("claims", how, failure);
  }
  void lower(How how) {
    const Graph graph = parse(kNeg4);
    const AbiGraph abi(graph);
    auto args = args_for<ltc_lower_args>(how);
    args->graph = abi.get();
    ltc_program* made = nullptr;
    const auto failure = Instance::asked("lower", [&] { return api().lower(device().get(), args.get(), &made); });
    if (made) api().program_destroy(made);
    expect("lower", how, failure);
  }
  void compile(How how) {
    const Program program = device().lower(kNeg4);
    auto args = args_for<ltc_compile_args>(how);
    args->program = program.get();
    Executable executable;
    expect("compile", how, device().compile(*args.get(), executable));
  }
  void execute(How how) {
    const Executable executable = device().build(kNeg4);
    const Buffer input = device().upload(Array::floats({1, 2, 3, 4}));
    ltc_buffer* const inputs[] = {input.get()};
    auto args = args_for<ltc_execute_args>(how);
    args->executable = executable.get();
    args->input_count = 1;
    args->inputs = inputs;
    args->output_count = 1;
    ltc_buffer* output = nullptr;
    ltc_event* done = nullptr;
    const auto failure = Instance::asked("execute", [&] { return api().execute(device().get(), args.get(), &output, &done); });
    const Event event(device(), done);
    if (!failure) {
      EXPECT_OK(device().finish(event));
    }
    const Buffer owned(device(), output);
    expect("execute", how, failure);
  }
  // A graph that is changed in the C form.
  template <typename Change>
  Failure lower_changed(const std::string& graph_text, Change change) {
    const Graph graph = parse(graph_text);
    const AbiGraph abi(graph);
    ltc_graph changed = *abi.get();
    std::vector<ltc_node> nodes;
    std::vector<ltc_param> params;
    std::vector<ltc_type> types;
    for (size_t i = 0; i < changed.node_count; ++i) nodes.push_back(*changed.nodes[i]);
    for (size_t i = 0; i < changed.param_count; ++i) params.push_back(*changed.params[i]);
    for (size_t i = 0; i < changed.value_count; ++i) types.push_back(*changed.types[i]);
    change(changed, nodes, params, types);
    std::vector<const ltc_node*> node_list;
    std::vector<const ltc_param*> param_list;
    std::vector<const ltc_type*> type_list;
    for (const auto& node : nodes) node_list.push_back(&node);
    for (const auto& param : params) param_list.push_back(&param);
    for (const auto& type : types) type_list.push_back(&type);
    changed.nodes = node_list.data();
    changed.params = param_list.data();
    changed.types = type_list.data();
    // The host never lowers an op that is not claimed.
    claimed_.clear();
    if (const Failure failure = device().claims(changed, claimed_)) return failure;
    if (std::ranges::find(claimed_, 0u) != claimed_.end()) return {LTC_UNSUPPORTED, 0, "not claimed"};
    Program program;
    return device().lower(changed, program);
  }

  std::vector<uint32_t> claimed_;
};

TEST_F(AbiCompute, claims_reads_only_the_fields_it_knows) { claims(How::kLarger); }
TEST_F(AbiCompute, lower_reads_only_the_fields_it_knows) { lower(How::kLarger); }
TEST_F(AbiCompute, compile_reads_only_the_fields_it_knows) { compile(How::kLarger); }
TEST_F(AbiCompute, execute_reads_only_the_fields_it_knows) { execute(How::kLarger); }
TEST_F(AbiCompute, claims_skips_an_unknown_extension) { claims(How::kUnknownExtension); }
TEST_F(AbiCompute, lower_skips_an_unknown_extension) { lower(How::kUnknownExtension); }
TEST_F(AbiCompute, compile_skips_an_unknown_extension) { compile(How::kUnknownExtension); }
TEST_F(AbiCompute, execute_skips_an_unknown_extension) { execute(How::kUnknownExtension); }
TEST_F(AbiCompute, claims_skips_an_unknown_extension_with_bit_31) { claims(How::kMarkedExtension); }
TEST_F(AbiCompute, lower_skips_an_unknown_extension_with_bit_31) { lower(How::kMarkedExtension); }
TEST_F(AbiCompute, compile_skips_an_unknown_extension_with_bit_31) { compile(How::kMarkedExtension); }
TEST_F(AbiCompute, execute_skips_an_unknown_extension_with_bit_31) { execute(How::kMarkedExtension); }

// ---- unknown values in a graph: refused, never ignored

void expect_refused(const Failure& failure, const char* what) {
  EXPECT_EQ(code_text(failure.code), "UNSUPPORTED")
      << what << ": the contract: flag bits, enumerators and kinds that the reader does not know are refused, never ignored";
}

TEST_F(AbiCompute, a_param_with_an_unknown_flag_is_refused) {
  expect_refused(lower_changed(kNeg4, [](auto&, auto&, auto& params, auto&) { params[0].flags = 1u << 20; }),
                 "flag bit 20 of a param");
}

TEST_F(AbiCompute, an_attribute_of_an_unknown_kind_is_refused) {
  ltc_attr attr = host::sized<ltc_attr>();
  attr.name = {"alpha", 5};
  attr.kind = 999;
  const ltc_attr* const attrs[] = {&attr};
  expect_refused(lower_changed(kAdd4, [&](auto&, auto& nodes, auto&, auto&) { nodes[0].attrs = attrs; }),
                 "an attribute of kind 999");
}

TEST_F(AbiCompute, a_value_of_an_unknown_dtype_is_refused) {
  expect_refused(lower_changed(kNeg4, [](auto&, auto&, auto&, auto& types) { types[0].dtype = types[1].dtype = 999; }),
                 "dtype 999");
}

TEST_F(AbiCompute, an_unknown_op_is_not_claimed) {
  const Failure failure = lower_changed("graph(%0: f32[4]) { %1: f32[4] = vendor::no_such_op(%0) return %1 }", [](auto&...) {});
  EXPECT_EQ(failure.message, "not claimed") << "claimed an op that nobody has: vendor::no_such_op";
}

TEST_F(AbiCompute, an_op_of_a_newer_op_set_is_not_claimed) {
  const Failure failure = lower_changed(kNeg4, [](auto&, auto& nodes, auto&, auto&) {
    nodes[0].op = 100'000;
    nodes[0].name = {"aten::an_op_of_tomorrow", 23};
  });
  EXPECT_EQ(failure.message, "not claimed") << "claimed an op whose id is not in ltc/opset.h";
}

// ---- what is not known of a node declines it: the op means something else then

TEST_F(AbiCompute, an_attribute_of_an_unknown_name_is_not_claimed) {
  const int64_t one = 1;
  ltc_attr attr = host::sized<ltc_attr>();
  attr.name = {"tomorrow", 8};
  attr.kind = LTC_ATTR_INT;
  attr.count = 1;
  attr.value.ints = &one;
  const ltc_attr* const attrs[] = {&attr};
  const Failure failure = lower_changed(kNeg4, [&](auto&, auto& nodes, auto&, auto&) {
    nodes[0].attr_count = 1;
    nodes[0].attrs = attrs;
  });
  EXPECT_EQ(failure.message, "not claimed") << "claimed aten::neg with an attribute 'tomorrow'";
}

TEST_F(AbiCompute, an_attribute_of_another_kind_is_not_claimed) {
  const ltc_string text = {"one", 3};
  ltc_attr attr = host::sized<ltc_attr>();
  attr.name = {"alpha", 5};
  attr.kind = LTC_ATTR_STRING;
  attr.count = 1;
  attr.value.strings = &text;
  const ltc_attr* const attrs[] = {&attr};
  const Failure failure = lower_changed(kAdd4, [&](auto&, auto& nodes, auto&, auto&) { nodes[0].attrs = attrs; });
  EXPECT_EQ(failure.message, "not claimed") << "claimed aten::add.Tensor with a string for alpha";
}

TEST_F(AbiCompute, one_more_absent_input_is_not_claimed) {
  const uint32_t inputs[] = {0, LTC_NONE};
  const Failure failure = lower_changed(kNeg4, [&](auto&, auto& nodes, auto&, auto&) {
    nodes[0].input_count = 2;
    nodes[0].inputs = inputs;
  });
  EXPECT_EQ(failure.message, "not claimed") << "claimed aten::neg with a second input, though it is absent";
}

TEST_F(AbiCompute, a_location_is_accepted) {
  EXPECT_OK(lower_changed(kNeg4, [](auto&, auto& nodes, auto&, auto&) { nodes[0].location = {"model.py:12:7", 13}; }));
}

TEST_F(AbiCompute, an_absent_string_may_have_no_data) {
  EXPECT_OK(lower_changed(kNeg4, [](auto&, auto& nodes, auto&, auto&) { nodes[0].location = {nullptr, 0}; }));
}

TEST_F(AbiCompute, arrays_without_entries_may_be_null) {
  EXPECT_OK(lower_changed(kNeg4, [](auto&, auto& nodes, auto&, auto&) {
    nodes[0].attrs = nullptr;
    nodes[0].attr_count = 0;
  }));
}

TEST_F(AbiCompute, nodes_of_a_newer_host_are_read) {
  Guarded<ltc_node> node;
  const Graph graph = parse(kNeg4);
  const AbiGraph abi(graph);
  ltc_graph changed = *abi.get();
  *node.get() = *changed.nodes[0];
  node.grow();
  const ltc_node* const nodes[] = {node.get()};
  changed.nodes = nodes;
  Program program;
  EXPECT_OK(device().lower(changed, program));
}

TEST_F(AbiCompute, the_graph_of_a_newer_host_is_read) {
  const Graph graph = parse(kNeg4);
  const AbiGraph abi(graph);
  Guarded<ltc_graph> larger;
  *larger.get() = *abi.get();
  larger.grow();
  Program program;
  EXPECT_OK(device().lower(*larger.get(), program));
}

TEST_F(AbiCompute, an_effort_beyond_3_reads_as_3) {
  const Program program = device().lower(kNeg4);
  EXPECT_TRUE(device().compile(program, 77));
}

}  // namespace
}  // namespace ltc::conformance
