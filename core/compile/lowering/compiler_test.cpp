#include "core/compile/lowering/compiler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <map>

#include "core/host/library.h"
#include "core/host/sized.h"
#include "core/ir/text.h"
#include "core/testing/test_plugins.h"
#include "core/testing/unvalidated.h"

namespace ltc {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::unique_ptr<host::PluginDevice> open(const std::string& plugin) { return ltc::testing::load_plugin(plugin)->open_device(0); }

constexpr const char* kAllClaimed = R"(graph(%0: f32[2] -> 1, %1: f64 scalar, %2: f32[2], %3: f32[2]) {
    %4: f32[2] = aten::mul.Tensor(%0, %1)
    %5: f32[2] = aten::add.Tensor(%4, %2)
    %6: f32[2] = aten::neg(%5)
    return %5, %6 })";

// sin is not among the test plugin's ops.
constexpr const char* kHostInTheMiddle = R"(graph(%0: f32[2], %1: f64 scalar, %2: f32[2], %3: f64 scalar) {
    %4: f32[2] = aten::neg(%0)
    %5: f32[2] = aten::sin(%4)
    %6: f32[2] = aten::mul.Tensor(%5, %3)
    %7: f32[2] = aten::add.Tensor(%4, %2)
    return %6, %7 })";

TEST(Compile, AllClaimed) {
  const auto device = open("test");
  const auto program = compile(parse(kAllClaimed), *device);
  ASSERT_EQ(program->steps.size(), 1u);
  const Step& step = program->steps[0];
  EXPECT_TRUE(step.on_device);
  EXPECT_NE(step.executable, nullptr);
  EXPECT_TRUE(same(step.graph, program->graph));
  EXPECT_TRUE(same(step.graph, parse(kAllClaimed)));
  EXPECT_EQ(program->input_count, 3u);
  EXPECT_EQ(program->scalar_count, 1u);
  EXPECT_EQ(program->slots.size(), 5u);
  EXPECT_THAT(step.inputs, ElementsAre(0, 1, 2));
  EXPECT_THAT(step.scalars, ElementsAre(0));
  EXPECT_THAT(step.outputs, ElementsAre(3, 4));
  EXPECT_THAT(program->outputs, ElementsAre(3, 4));
  EXPECT_THAT(step.released, ElementsAre(0, 1, 2));  // an input nobody reads too
  EXPECT_THAT(program_text(*program, *device), HasSubstr("aten::neg"));
}

TEST(Compile, PartlyClaimed) {
  const auto device = open("test");
  const auto program = compile(parse(kHostInTheMiddle), *device);
  ASSERT_EQ(program->steps.size(), 3u);
  const Step &first = program->steps[0], &middle = program->steps[1], &last = program->steps[2];
  EXPECT_TRUE(first.on_device);
  EXPECT_THAT(first.inputs, ElementsAre(0, 1));
  EXPECT_THAT(first.outputs, ElementsAre(2, 3));  // %7, then %4 for the host
  EXPECT_THAT(first.released, ElementsAre(0, 1));
  EXPECT_FALSE(middle.on_device);
  EXPECT_EQ(middle.executable, nullptr);
  EXPECT_EQ(op_name(middle.graph.nodes[0].op), "aten::sin");
  EXPECT_THAT(middle.inputs, ElementsAre(3));
  EXPECT_THAT(middle.released, ElementsAre(3));
  EXPECT_THAT(last.inputs, ElementsAre(4));
  EXPECT_THAT(last.scalars, ElementsAre(1));
  EXPECT_THAT(program->outputs, ElementsAre(5, 2));
  EXPECT_THAT(program_text(*program, *device), HasSubstr("step 1 on the host\ngraph("));
}

TEST(Compile, MemoryOnly) {
  const auto device = open("test_memory");
  const auto program = compile(parse(kHostInTheMiddle), *device);
  ASSERT_EQ(program->steps.size(), 1u);
  EXPECT_FALSE(program->steps[0].on_device);
  EXPECT_EQ(program->steps[0].graph.nodes.size(), 4u);
  EXPECT_THAT(program->steps[0].scalars, ElementsAre(1));
  EXPECT_THAT(program->outputs, ElementsAre(2, 3));
}

TEST(Compile, NothingClaimedAndNothingToDo) {
  const auto device = open("test");
  const auto program = compile(parse("graph(%0: f32[2]) { %1: f32[2] = aten::sin(%0) return %1 }"), *device);
  ASSERT_EQ(program->steps.size(), 1u);
  EXPECT_FALSE(program->steps[0].on_device);
  const auto empty = compile(parse("graph(%0: f32[2]) { return }"), *device);
  EXPECT_THAT(empty->steps, IsEmpty());
  EXPECT_EQ(empty->input_count, 1u);
}

TEST(Compile, RunsThePasses) {
  const auto device = open("test");
  const auto program = compile(parse(R"(graph(%0: f32[2,1]) {
    %1: f32[2] = aten::as_strided(%0) {size=[2], stride=[1], storage_offset=0}
    %2: f32[2,1] = aten::reshape(%1) {shape=[2,1]}
    %3: f32[2,1] = aten::neg(%2)
    return %3 })"),
                               *device);
  EXPECT_EQ(program->steps[0].graph.nodes.size(), 1u);
  EXPECT_TRUE(program->steps[0].on_device);
}

// The test plugin, but claims what the test says.
using Clusters = std::map<std::string, uint32_t>;  // by op
Clusters claimed;

ltc_status* claim_by_op(ltc_device*, const ltc_claims_args* args, uint32_t* cluster) {
  for (size_t i = 0; i < args->graph->node_count; ++i) cluster[i] = claimed[args->graph->nodes[i]->name.data];
  return nullptr;
}

bool enter_claiming(ltc_entry_args* args) {
  static ltc_plugin_api table;
  host::Library library = host::Library::open(ltc::testing::plugin_path("test"));
  const auto entry = reinterpret_cast<ltc_plugin_entry_fn*>(library.find("ltc_plugin_entry"));
  library.keep();
  if (!entry(args)) return false;
  table = *args->api;
  table.claims = claim_by_op;
  args->api = &table;
  return true;
}

std::unique_ptr<host::PluginDevice> open_claiming(Clusters clusters) {
  claimed = std::move(clusters);
  return host::Plugin::enter("claiming", enter_claiming)->open_device(0);
}

std::vector<bool> sides(const Program& program) {
  std::vector<bool> result;
  for (const Step& step : program.steps) result.push_back(step.on_device);
  return result;
}

TEST(Compile, ANodeRefusedAtLoweringGoesToTheHost) {
  const auto device = open_claiming({{"aten::neg", 1}, {"aten::sin", 1}, {"aten::mul.Tensor", 1}, {"aten::add.Tensor", 1}});
  const auto program = compile(parse(kHostInTheMiddle), *device);
  EXPECT_THAT(sides(*program), ElementsAre(true, false, true));
  EXPECT_EQ(op_name(program->steps[1].graph.nodes[0].op), "aten::sin");
}

TEST(Compile, ARefusedNodeTakesItsClusterAlong) {
  const auto device = open_claiming({{"aten::neg", 1}, {"aten::sin", 2}, {"aten::mul.Tensor", 2}, {"aten::add.Tensor", 1}});
  const auto program = compile(parse(kHostInTheMiddle), *device);
  EXPECT_THAT(sides(*program), ElementsAre(true, false));
  EXPECT_EQ(program->steps[1].graph.nodes.size(), 2u);
}

TEST(Compile, AnErrorThatIsNoRefusalPasses) {
  const testing::Unvalidated alone;
  static ltc_plugin_api table;
  const auto enter = [](ltc_entry_args* args) {
    if (!enter_claiming(args)) return false;
    table = *args->api;
    table.lower = [](ltc_device*, const ltc_lower_args*, ltc_program**) -> ltc_status* { throw 1; };
    args->api = &table;
    return true;
  };
  claimed = {{"aten::neg", 1}};
  const auto device = host::Plugin::enter("failing", enter)->open_device(0);
  EXPECT_THROW(compile(parse("graph(%0: f32[2]) { %1: f32[2] = aten::neg(%0) return %1 }"), *device), Error);
  EXPECT_EQ(host::live_statuses(), 0u);
}

TEST(Compile, HostStepsSayWhy) {
  const auto reasons = [](const Program& program, size_t step) { return program.steps[step].reasons; };
  EXPECT_THAT(reasons(*compile(parse(kHostInTheMiddle), *open("test")), 1), ElementsAre("plugin test does not claim it"));
  EXPECT_THAT(reasons(*compile(parse(kHostInTheMiddle), *open("test")), 0), IsEmpty());
  EXPECT_THAT(reasons(*compile(parse(kHostInTheMiddle), *open("test_memory")), 0),
              Each(Eq("plugin test_memory computes nothing")));
  const auto refusing = open_claiming({{"aten::neg", 1}, {"aten::sin", 2}, {"aten::mul.Tensor", 2}, {"aten::add.Tensor", 1}});
  EXPECT_THAT(reasons(*compile(parse(kHostInTheMiddle), *refusing), 1),
              ElementsAre(HasSubstr("claimed, but not lowered: [claiming] lower:"), HasSubstr("only in one program with ops")));
}

// The test plugin, but it refuses to compile what `refused_node` says: a node, or LTC_NONE.
uint32_t refused_node;
ltc_code refused_code = LTC_INVALID_ARGUMENT;
const ltc_host_api* refusing_host;

bool enter_refusing(ltc_entry_args* args) {
  static ltc_plugin_api table;
  claimed = {{"aten::neg", 1}, {"aten::mul.Tensor", 1}, {"aten::add.Tensor", 1}};
  if (!enter_claiming(args)) return false;
  table = *args->api;
  refusing_host = args->host;
  table.compile = [](ltc_device*, const ltc_compile_args*, ltc_executable**) {
    return refusing_host->status_create(refusing_host->host, refused_code, refused_node, "not today", 9);
  };
  args->api = &table;
  return true;
}

TEST(Compile, ASegmentThatIsRefusedAsAWholeRunsOnTheHost) {
  const testing::Unvalidated alone;
  static ltc_plugin_api table;
  static uint32_t node;
  const auto enter = [](ltc_entry_args* args) {
    if (!enter_claiming(args)) return false;
    table = *args->api;
    refusing_host = args->host;
    table.lower = [](ltc_device*, const ltc_lower_args*, ltc_program**) {
      return refusing_host->status_create(refusing_host->host, LTC_UNSUPPORTED, node, "too many dims", 13);
    };
    args->api = &table;
    return true;
  };
  claimed = {{"aten::neg", 1}, {"aten::mul.Tensor", 1}, {"aten::add.Tensor", 1}};
  const auto device = host::Plugin::enter("refusing", enter)->open_device(0);
  for (const uint32_t about : {uint32_t{LTC_NONE}, 1000u}) {
    node = about;
    const auto program = compile(parse(kHostInTheMiddle), *device);
    EXPECT_THAT(sides(*program), ElementsAre(false));
    EXPECT_THAT(program->steps[0].reasons[0], HasSubstr("claimed, but not lowered: [refusing] lower: too many dims"));
  }
}

TEST(Compile, ASegmentThatIsNotCompiledRunsOnTheHost) {
  refused_code = LTC_UNSUPPORTED;
  const auto device = host::Plugin::enter("refusing", enter_refusing)->open_device(0);
  const auto program = compile(parse(kHostInTheMiddle), *device);
  refused_code = LTC_INVALID_ARGUMENT;
  EXPECT_THAT(sides(*program), ElementsAre(false));
  EXPECT_THAT(program->steps[0].reasons[0], HasSubstr("lowered, but not compiled: [refusing] compile: not today"));
}

std::string compile_error(std::string_view text, uint32_t node) {
  refused_node = node;
  const auto device = host::Plugin::enter("refusing", enter_refusing)->open_device(0);
  try {
    compile(parse(text), *device);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kInvalidArgument);
    return error.what();
  }
  return "compiled";
}

constexpr const char* kPlaced = R"(graph(%0: f32[2], %1: f32[2]) {
    %2: f32[2] = aten::mul.Tensor(%0, %1)  # a.py:1
    %3: f32[2] = aten::add.Tensor(%2, %1)  # b.py:2
    %4: f32[2] = aten::neg(%3)  # c.py:3
    return %4 })";

TEST(Compile, AnErrorNamesTheOpAndItsLine) {
  EXPECT_EQ(compile_error(kPlaced, 1), "b.py:2: aten::add.Tensor: not today [refusing]");
  EXPECT_EQ(compile_error(kAllClaimed, 2), "aten::neg: not today [refusing]");
}

TEST(Compile, AnErrorWithoutANodeNamesTheProgram) {
  const testing::Unvalidated alone;
  EXPECT_EQ(compile_error(kPlaced, LTC_NONE), "a.py:1 to c.py:3: a program of 3 ops: not today [refusing]");
  EXPECT_EQ(compile_error(kPlaced, 77), "a.py:1 to c.py:3: a program of 3 ops: not today [refusing]");
  EXPECT_EQ(compile_error(kAllClaimed, LTC_NONE), "a program of 3 ops: not today [refusing]");
  const char* one = "graph(%0: f32[2]) {\n%1: f32[2] = aten::neg(%0)  # a.py:1\nreturn %1 }";
  EXPECT_EQ(compile_error(one, LTC_NONE), "a.py:1: aten::neg: not today [refusing]");
}

TEST(Compile, PassesKeepLocations) {
  const auto device = open("test");
  const auto program = compile(parse(R"(graph(%0: f32[2,3]) {
    %1: f32[3,2] = aten::as_strided(%0) {size=[3,2], stride=[1,3], storage_offset=0}  # a.py:1
    %2: f32[3,2] = aten::neg(%1)  # b.py:2
    return %2 })"),
                               *device);
  EXPECT_THAT(print(program->graph), HasSubstr("aten::permute(%0) {dims=[1,0]}  # a.py:1"));
  ASSERT_EQ(program->steps.size(), 2u);
  EXPECT_EQ(program->steps[1].graph.nodes[0].location, intern_location("b.py:2"));
}

// A buffer of two floats on the device, and back.
ltc_transfer_args transfer(ltc_direction direction, ltc_buffer* buffer) {
  auto args = host::sized<ltc_transfer_args>();
  args.direction = direction;
  args.buffer = buffer;
  args.size_bytes = 2 * sizeof(float);
  return args;
}

ltc_buffer* upload(host::PluginDevice& device, const std::array<float, 2>& values) {
  const int64_t size = 2;
  auto type = host::sized<ltc_type>();
  type.dtype = LTC_F32;
  type.rank = 1;
  type.sizes = &size;
  auto args = transfer(LTC_TO_DEVICE, device.create_buffer(type));
  args.from = values.data();
  EXPECT_EQ(device.transfer(args), nullptr);
  return args.buffer;
}

std::array<float, 2> download(host::PluginDevice& device, ltc_buffer* buffer) {
  std::array<float, 2> values{};
  auto args = transfer(LTC_FROM_DEVICE, buffer);
  args.to = values.data();
  EXPECT_EQ(device.transfer(args), nullptr);
  return values;
}

TEST(Compile, TheExecutableComputesTheGraph) {
  const auto device = open("test");
  const auto program = compile(parse(kAllClaimed), *device);
  const Step& step = program->steps.at(0);
  std::vector<ltc_buffer*> inputs = {upload(*device, {1, 2}), upload(*device, {10, 20}), upload(*device, {0, 0})};
  std::vector<ltc_buffer*> outputs(2);
  ltc_scalar scalar{};
  scalar.f = 3;
  auto args = host::sized<ltc_execute_args>();
  args.executable = step.executable.get();
  args.input_count = inputs.size();
  args.inputs = inputs.data();
  args.scalar_count = 1;
  args.scalars = &scalar;
  args.output_count = outputs.size();
  EXPECT_EQ(device->execute(args, outputs.data()), nullptr);
  EXPECT_THAT(download(*device, outputs[0]), ElementsAre(13, 26));
  EXPECT_THAT(download(*device, outputs[1]), ElementsAre(-13, -26));
  for (ltc_buffer* buffer : inputs) device->destroy_buffer(buffer);
  for (ltc_buffer* buffer : outputs) device->destroy_buffer(buffer);
}

}  // namespace
}  // namespace ltc
