#include "core/compile/cache/saved_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "core/base/error.h"
#include "core/compile/lowering/compiler.h"
#include "core/ir/binary.h"
#include "core/ir/text.h"
#include "core/testing/test_plugins.h"

namespace ltc {
namespace {

using ::testing::HasSubstr;

// Every kind of attribute.
constexpr const char* kEveryKind = R"(graph(%0: f32[2] -> 0, %1: f64 scalar, %2: f32[2], %3: f64 scalar) {
    %4: f32[2] = aten::neg(%0)  # a.py:1
    %5: f32[2], _ = aten::sin(%4, none) {a=none, b=1, c=nan, d=true, e="x", f=f32, g=[1,2], h=[1.0,-0.0], i=["p","q"]}  # a.py:2
    %6: f32[2] = aten::mul.Tensor(%5, %3)  # a.py:3
    %7: f32[2] = aten::add.Tensor(%4, %2)
    return %6, %7 })";

// sin is not among the test plugin's ops: three steps.
constexpr const char* kText = R"(graph(%0: f32[2] -> 0, %1: f64 scalar, %2: f32[2], %3: f64 scalar) {
    %4: f32[2] = aten::neg(%0)  # a.py:1
    %5: f32[2] = aten::sin(%4)  # a.py:2
    %6: f32[2] = aten::mul.Tensor(%5, %3)  # a.py:3
    %7: f32[2] = aten::add.Tensor(%4, %2)
    return %6, %7 })";

std::unique_ptr<host::PluginDevice> open() { return testing::load_plugin("test")->open_device(0); }

std::shared_ptr<Program> load(std::string bytes, const Graph& graph, const CompileTarget& target) {
  return load_program(SavedValue(std::move(bytes), target.device), graph, target);
}

std::string bytes_of(const Graph& graph) {
  ByteWriter out;
  write_graph(out, graph);
  return out.take();
}

TEST(Binary, AGraphReadsBackAsItWas) {
  const Graph graph = parse(kEveryKind);
  const std::string bytes = bytes_of(graph);
  ByteReader in(bytes);
  const Graph read = read_graph(in);
  EXPECT_TRUE(in.at_end());
  EXPECT_TRUE(same(graph, read));
  EXPECT_EQ(read.types, graph.types);
}

TEST(Binary, LocationsAreNoPartOfIt) {
  Graph graph = parse(kEveryKind);
  const std::string bytes = bytes_of(graph);
  for (Node& node : graph.nodes) node.location = intern_location("b.py:9");
  EXPECT_EQ(bytes_of(graph), bytes);
}

TEST(Binary, TruncatedBytesAreRefused) {
  const std::string bytes = bytes_of(parse(kEveryKind));
  for (size_t size = 0; size < bytes.size(); ++size) {
    ByteReader in(std::string_view(bytes).substr(0, size));
    EXPECT_THROW(read_graph(in), Error) << size;
  }
}

// Nothing but an Error, whatever the bytes: sanitizers watch.
TEST(Binary, DamagedBytesAreRefusedOrHarmless) {
  const std::string bytes = bytes_of(parse(kEveryKind));
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (const char flip : {'\x01', '\x80', '\xff'}) {
      std::string damaged = bytes;
      damaged[i] = static_cast<char>(damaged[i] ^ flip);
      ByteReader in(damaged);
      try {
        read_graph(in);
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), Code::kDataCorrupt);
      }
    }
  }
}

// The bytes with the first occurrence of the number replaced.
template <typename Number>
std::string with(std::string bytes, Number old, Number now) {
  const size_t at = bytes.find(std::string(reinterpret_cast<const char*>(&old), sizeof old));
  EXPECT_NE(at, bytes.npos);
  return bytes.replace(at, sizeof now, reinterpret_cast<const char*>(&now), sizeof now);
}

bool is_refused(const std::string& bytes) {
  try {
    ByteReader in(bytes);
    read_graph(in);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kDataCorrupt);
    return true;
  }
  return false;
}

TEST(Binary, SizesThatNoTensorHasAreRefused) {
  const std::string bytes = bytes_of(parse("graph(%0: f32[7777,3;3,1]) { %1: f32[7777,3;3,1] = aten::neg(%0) return %1 }"));
  EXPECT_FALSE(is_refused(with<int64_t>(bytes, 7777, 0)));
  for (const int64_t size : {int64_t{-1}, INT64_MIN, INT64_MAX, int64_t{1} << 61}) {
    EXPECT_TRUE(is_refused(with<int64_t>(bytes, 7777, size))) << size;
  }
  EXPECT_TRUE(is_refused(with<uint32_t>(bytes, static_cast<uint32_t>(DType::kF32), 0)));
  EXPECT_TRUE(is_refused(with<uint32_t>(bytes, static_cast<uint32_t>(DType::kF32), kDTypeCount)));
}

TEST(Binary, AttributesOutOfRangeAreRefused) {
  const auto graph = [](const Attr& attr) {
    Graph graph;
    graph.outputs = {graph.add_node("aten::to", {graph.add_param(scalar_type(DType::kF32))}, scalar_type(DType::kF32), {attr})};
    return bytes_of(graph);
  };
  const int64_t out_of_range = kDTypeCount;
  EXPECT_FALSE(is_refused(graph(Attr::of_dtype("dtype", DType::kF8E8M0FNU))));
  EXPECT_TRUE(is_refused(graph(Attr::of_dtype("dtype", DType::kNone))));
  EXPECT_TRUE(is_refused(graph({"dtype", AttrKind::kDType, {out_of_range}})));
  EXPECT_TRUE(is_refused(graph({"flag", AttrKind::kBool, {2}})));
  EXPECT_TRUE(is_refused(graph({"pair", AttrKind::kInt, {1, 2}})));
  EXPECT_TRUE(is_refused(graph({"mixed", AttrKind::kInts, {1}, {1.0}})));
  EXPECT_TRUE(is_refused(graph({"none", AttrKind::kNone, {1}})));
  EXPECT_TRUE(is_refused(graph({"kind", static_cast<AttrKind>(0)})));
  EXPECT_TRUE(is_refused(graph({"kind", static_cast<AttrKind>(10)})));
}

TEST(SavedProgram, LoadsAsItWasCompiled) {
  const auto device = open();
  const Graph graph = parse(kText);
  const auto compiled = compile(graph, *device);
  const std::string bytes = save_program(*compiled, graph, *device);
  const auto loaded = load(bytes, graph, *device);
  EXPECT_TRUE(same(loaded->graph, compiled->graph));
  EXPECT_EQ(loaded->slots, compiled->slots);
  EXPECT_EQ(loaded->outputs, compiled->outputs);
  ASSERT_EQ(loaded->steps.size(), compiled->steps.size());
  for (size_t i = 0; i < loaded->steps.size(); ++i) {
    const Step &one = loaded->steps[i], &other = compiled->steps[i];
    EXPECT_TRUE(same(one.graph, other.graph));
    EXPECT_EQ(one.executable != nullptr, one.on_device);
    EXPECT_EQ(one.inputs, other.inputs);
    EXPECT_EQ(one.scalars, other.scalars);
    EXPECT_EQ(one.outputs, other.outputs);
    EXPECT_EQ(one.origin, other.origin);
    EXPECT_EQ(one.released, other.released);
    EXPECT_EQ(one.reasons, other.reasons);
  }
  EXPECT_EQ(save_program(*loaded, graph, *device), bytes);
}

TEST(SavedProgram, HasThePlacesOfTheProgramThatLoadsIt) {
  const auto device = open();
  const Graph graph = parse(kText);
  const std::string bytes = save_program(*compile(graph, *device), graph, *device);
  Graph moved = graph;
  for (size_t i = 0; i < 3; ++i) moved.nodes[i].location = intern_location("b.py:" + std::to_string(i));
  const auto loaded = load(bytes, moved, *device);
  EXPECT_EQ(location_text(loaded->graph.nodes[0].location), "b.py:0");
  EXPECT_EQ(loaded->graph.nodes.back().location, kNoLocation);
}

TEST(SavedProgram, TruncatedBytesAreRefused) {
  const auto device = open();
  const Graph graph = parse(kText);
  const std::string bytes = save_program(*compile(graph, *device), graph, *device);
  for (size_t size = 0; size < bytes.size(); size += 7) EXPECT_THROW(load(bytes.substr(0, size), graph, *device), Error) << size;
}

TEST(SavedProgram, StepsThatDoNotFitTogetherAreRefused) {
  const auto device = open();
  const Graph graph = parse(kText);
  const std::string bytes = save_program(*compile(graph, *device), graph, *device);
  const TypeId other = intern_contiguous(DType::kF32, std::vector<int64_t>{3});
  const std::pair<const char*, std::function<void(Program&)>> changes[] = {
      {"fewer inputs", [](Program& program) { --program.input_count; }},
      {"more inputs", [](Program& program) { program.input_count = UINT64_MAX; }},
      {"more numbers", [](Program& program) { ++program.scalar_count; }},
      {"a slot of another type", [&](Program& program) { program.slots[0] = other; }},
      {"a slot too many", [](Program& program) { program.slots.push_back(program.slots[0]); }},
      {"a slot too few", [](Program& program) { program.slots.pop_back(); }},
      {"an output that is an input", [](Program& program) { program.outputs[0] = 0; }},
      {"an output out of range", [](Program& program) { program.outputs[0] = 1000; }},
      {"two outputs of one slot", [](Program& program) { program.outputs[1] = program.outputs[0]; }},
      {"no outputs", [](Program& program) { program.outputs.clear(); }},
      {"a step that reads what a later one makes", [](Program& program) { std::swap(program.steps[0], program.steps[1]); }},
      {"a step that reads nothing", [](Program& program) { program.steps[0].inputs.clear(); }},
      {"a step that reads what is released",
       [](Program& program) { program.steps[0].released = {0}, program.steps[1].inputs[0] = 0; }},
      {"a step that reads another number", [](Program& program) { program.steps.back().scalars.assign(1, 7); }},
      {"a step that fills an input", [](Program& program) { program.steps[0].outputs[0] = 0; }},
      {"a step that fills two slots", [](Program& program) { program.steps[0].outputs.push_back(program.steps[0].outputs[0]); }},
      {"a release of an output", [](Program& program) { program.steps.back().released.push_back(program.outputs[0]); }},
      {"a second release",
       [](Program& program) {
         program.steps[0].released = {0, 0};
       }},
      {"an origin out of range", [](Program& program) { program.steps[0].origin.push_back(1000); }},
      {"reasons of a device step", [](Program& program) { program.steps[0].reasons.push_back("x"); }},
  };
  for (const auto& [what, change] : changes) {
    const auto program = std::const_pointer_cast<Program>(load(bytes, graph, *device));
    change(*program);
    EXPECT_THROW(load(save_program(*program, graph, *device), graph, *device), Error) << what;
  }
  EXPECT_THROW(load(bytes + "x", graph, *device), Error);
  const Graph wider = parse("graph(%0: f32[2], %1: f32[2]) { %2: f32[2] = aten::neg(%0) return %2 }");
  EXPECT_THROW(load(bytes, wider, *device), Error);
}

TEST(SavedProgram, TheKeyTellsGraphsDevicesAndDemotionApart) {
  const auto device = open();
  const Graph graph = parse(kText);
  Graph other = graph;
  other.params[0].alias_output = kNone;
  const std::string key = program_key(graph, *device);
  EXPECT_EQ(program_key(graph, *open()), key);
  EXPECT_NE(program_key(other, *device), key);
  EXPECT_NE(program_key(graph, {*device, TypeDemotion(~uint64_t{0}, TypeDemotion::Bf16::kYes)}), key);
  EXPECT_NE(program_key(graph, {*device, {}, 1}), key);
}

// Also where the plugin cannot save its executables, as this one, and lowers once more.
TEST(SavedProgram, WhatMayBeRoundedReachesThePlugin) {
  const auto device = testing::load_plugin("test_precision")->open_device(0);
  const Graph graph = parse("graph(%0: f32[2]) { %1: f32[2] = aten::neg(%0) return %1 }");
  const auto said = [](const auto& lowers) {
    ::testing::internal::CaptureStderr();
    lowers();
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(said([&] { compile(graph, *device); }), HasSubstr("may round: 0\n"));
  std::shared_ptr<const Program> rounded;
  EXPECT_THAT(said([&] { rounded = compile(graph, {*device, {}, 5}); }), HasSubstr("may round: 5\n"));
  const std::string saved = save_program(*rounded, graph, *device);
  EXPECT_THAT(said([&] { load(saved, graph, {*device, {}, 5}); }), HasSubstr("may round: 5\n"));
}

}  // namespace
}  // namespace ltc
