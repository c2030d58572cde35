#include "core/deploy/archive.h"

#include <gmock/gmock.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "core/base/error.h"
#include "core/deploy/graph_json.h"
#include "core/deploy/testing/sample_archive.h"

namespace ltc::deploy {
namespace {

using testing::Entries;
using testing::replaced;

std::string refusal(const std::string& bytes) {
  try {
    Archive::read(bytes, "a.ltc");
  } catch (const Error& error) {
    return cat(code_name(error.code()), ": ", error.what());
  }
  return "";
}

std::string refusal_of_manifest(std::string_view from, std::string_view to, Entries entries = {}) {
  entries.manifest = replaced(entries.manifest, from, to);
  return refusal(entries.bytes());
}

TEST(Archive, IsReadAsItWasWritten) {
  const std::string bytes = Entries().bytes();
  const auto archive = Archive::read(bytes, "a.ltc");
  ASSERT_EQ(archive->functions().size(), 1u);
  const Function& step = archive->functions()[0];
  EXPECT_EQ(print(step.code), std::string(testing::kGraph) + "\n");
  EXPECT_EQ(step.updates[0].from, (ValueSource{ValueSource::kOutput, 0}));
  EXPECT_EQ(step.numbers[0].value.f, 2.0);
  float sum[6];
  std::memcpy(sum, archive->state()[0].data.data(), sizeof sum);
  EXPECT_THAT(sum, ::testing::ElementsAre(1, 2, 3, 4, 5, 6));
  for (const ZipEntry& entry : archive->entries())
    EXPECT_EQ(static_cast<size_t>(entry.data.data() - bytes.data()) % kAlignment, 0u) << entry.name;
  archive->verify();
}

TEST(Archive, HasTheSameBytesEachTime) { EXPECT_EQ(Entries().bytes(), Entries().bytes()); }

TEST(Archive, EachDamagedByteIsFoundByItsCrcAtLeast) {
  const std::string sound = Entries().bytes();
  const auto archive = Archive::read(sound, "a.ltc");
  for (const ZipEntry& entry : archive->entries()) {
    std::string bytes = sound;
    bytes[static_cast<size_t>(entry.data.data() - sound.data()) + entry.data.size() / 2] ^= 1;
    try {
      Archive::read(bytes, "a.ltc")->verify();
      ADD_FAILURE() << "a damaged byte of " << entry.name << " is not found";
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr("a.ltc"));
    }
  }
}

TEST(Archive, EachShorterFileIsRefused) {
  const std::string sound = Entries().bytes();
  for (size_t size = 0; size < sound.size(); ++size)
    EXPECT_THAT(refusal(sound.substr(0, size)), ::testing::StartsWith("DATA_CORRUPT")) << size;
}

TEST(Archive, AMemberThatIsNotKnownIsRefusedByName) {
  EXPECT_EQ(refusal_of_manifest("\"samples\": []", "\"samples\": [], \"rounding\": 1"),
            "UNSUPPORTED: a.ltc: manifest.json: functions[0]: 'rounding' is not known here; a newer version may read it");
  EXPECT_THAT(refusal_of_manifest("\"format\": 1", "\"format\": 1, \"metadata\": {\"size\": 3}"),
              ::testing::HasSubstr("manifest.json: metadata: size is to be a text"));
  EXPECT_EQ(refusal_of_manifest("\"format\": 1", "\"format\": 9"),
            "UNSUPPORTED: a.ltc: manifest.json: the archive has format 9, and format 1 is read here");
}

TEST(Archive, AManifestThatDoesNotFitItsGraphIsRefused) {
  const auto says = [](const char* text) { return ::testing::HasSubstr(text); };
  EXPECT_THAT(refusal_of_manifest("\"shape\": [2, 3]}],\n    \"results\"", "\"shape\": [3, 2]}],\n    \"results\""),
              says("function step: param 0 is f32[3,2] in the manifest and f32[2,3] in its graph"));
  EXPECT_THAT(refusal_of_manifest("{\"output\": 1}", "{\"output\": 2}"), says("its graph has no output 2"));
  EXPECT_THAT(refusal_of_manifest("{\"input\": 0}, ", ""), says("takes more than 1 params"));
  EXPECT_THAT(refusal_of_manifest("{\"input\": 0}", "{\"input\": 1}"), says("input is 1, and is to be below 1"));
  EXPECT_THAT(refusal_of_manifest("{\"state\": \"sum\"}]", "{\"state\": \"some\"}]"), says("there is no state some"));
  EXPECT_THAT(refusal_of_manifest("\"dtype\": \"f64\"", "\"dtype\": \"i64\""), says("value is to be an integer"));
  EXPECT_THAT(refusal_of_manifest("\"state\": [\"sum\"]", "\"state\": [\"sum\", \"sum\"]"), says("state has sum twice"));
  EXPECT_THAT(refusal_of_manifest("\"generator\": 0", "\"generator\": 1"), says("generator is 1, and is to be below 1"));
  EXPECT_THAT(refusal_of_manifest("\"shape\": [2, 3]}]", "\"shape\": [2, 9000000000000000000]}]"),
              says("no tensor has that shape"));
  EXPECT_THAT(refusal_of_manifest("\"format\": 1,", "\"format\": 1"), says("DATA_CORRUPT: a.ltc: manifest.json: "));
}

std::string refusal_of_sizes(std::string_view from, std::string_view to) {
  return refusal_of_manifest(from, to, testing::sized_entries());
}

TEST(Archive, AFunctionWithDimensionsHasAGraphForEachSize) {
  const std::string bytes = testing::sized_entries().bytes();
  const auto archive = Archive::read(bytes, "a.ltc");
  const Function& scale = archive->functions()[0];
  const SizedFunction sized = archive->with_sizes(scale, Sizes{7});
  EXPECT_EQ(print(sized.code), replaced(replaced(std::string(testing::kSizedGraph), "[2,3]", "[7,3]"), "[2,3]", "[7,3]") + "\n");
  EXPECT_EQ(type_text(sized.inputs[0]), "f32[7,3]");
  EXPECT_EQ(type_text(sized.results[0]), "f32[7,3]");
  EXPECT_EQ(scale.numbers[0].value_at(Sizes{7}).f, 7.0);
  EXPECT_THAT(
      [&] { archive->with_sizes(scale, Sizes{INT64_MAX / 4}); },
      ::testing::ThrowsMessage<Error>(::testing::HasSubstr("function scale: a value would have sizes [2305843009213693951,3]")));
}

TEST(Archive, DimensionsThatDoNotFitAreRefused) {
  const auto says = [](const char* text) { return ::testing::HasSubstr(text); };
  EXPECT_EQ(refusal(testing::sized_entries().bytes()), "");
  EXPECT_THAT(refusal_of_sizes("[\"rows\", 3]}],\n    \"results\"", "[2, 3]}],\n    \"results\""),
              says("no input has the dimension rows"));
  EXPECT_THAT(refusal_of_sizes("\"example\": 2", "\"example\": 200"), says("its example is out of its range"));
  EXPECT_THAT(refusal_of_sizes("[2, -1, 0]]", "[2, -1, 2]]"), says("its graph has no number [2, -1, 2]"));
  EXPECT_THAT(refusal_of_sizes("[2, -1, 0]]", "[9, -1, 0]]"), says("its graph has no number [9, -1, 0]"));
  EXPECT_THAT(refusal_of_sizes("[2, -1, 0]]", "[0, 0, 0]]"), says("its graph has no number [0, 0, 0]"));
  EXPECT_THAT(refusal_of_sizes("\"is\": \"rows\"", "\"is\": \"lines\""), says("there is no dimension \"lines\""));
  EXPECT_THAT(refusal_of_sizes("\"is\": \"rows\"", "\"is\": {\"of\": [\"rows\"], \"divisor\": 0}"), says("divisor is 0"));
  EXPECT_THAT(refusal_of_sizes("\"is\": \"rows\"", "\"is\": {\"of\": [\"rows\"], \"power\": 2}"), says("'power' is not known"));
  EXPECT_THAT(refusal_of_sizes("\"is\": \"rows\"", "\"is\": {\"of\": [\"rows\"], \"offset\": 1}"),
              says("param 0 is f32[2,3] in the manifest and f32[3,3] in its graph"));
}

TEST(Archive, FormulasThatAgreeAtTheExampleOnlyAreRefusedAtOtherSizes) {
  Entries entries = testing::sized_entries();
  entries.manifest = replaced(entries.manifest, "\"is\": \"rows\"", "\"is\": {\"of\": [\"rows\"], \"scale\": 2, \"offset\": -2}");
  const std::string bytes = entries.bytes();
  const auto archive = Archive::read(bytes, "a.ltc");
  EXPECT_THAT(
      [&] { archive->with_sizes(archive->functions()[0], Sizes{5}); },
      ::testing::ThrowsMessage<Error>(::testing::HasSubstr("param 0 is f32[5,3] in the manifest and f32[8,3] in its graph")));
}

TEST(Formula, RoundsDown) {
  const std::vector<Dimension> dimensions{{"n", 0, 9, 1, {}}, {"m", 0, 9, 1, {}}};
  const Formula half{.dimensions = {0}, .offset = -3, .divisor = 2}, area{.dimensions = {0, 1}, .scale = 2};
  EXPECT_EQ(half.value(Sizes{2, 1}), -1);
  EXPECT_EQ(half.value(Sizes{6, 1}), 1);
  EXPECT_EQ(area.value(Sizes{3, 4}), 24);
  EXPECT_EQ(half.text(dimensions), "floor((n-3)/2)");
  EXPECT_EQ(area.text(dimensions), "2*n*m");
  EXPECT_THROW(area.value(Sizes{INT64_MAX, 2}), Error);
}

TEST(Archive, EntriesThatTheManifestDoesNotNameAreLeftOut) {
  const std::string sound = Entries().bytes(), note = "a note";
  std::vector<NewEntry> entries;
  const auto written = Archive::read(sound, "a.ltc");
  for (const ZipEntry& entry : written->entries()) entries.push_back({std::string(entry.name), {entry.data}});
  entries.push_back({"functions/step/graph.json", {note}});
  const std::string bytes = zip_bytes(entries);
  const auto archive = Archive::read(bytes, "a.ltc");
  EXPECT_EQ(archive->functions()[0].code.nodes.size(), 2u);
  EXPECT_EQ(archive->entry("functions/step/graph.json"), note);
}

TEST(GraphJson, HasALineForEachParamAndNode) {
  EXPECT_EQ(graph_json(parse(testing::kGraph)), R"({
 "params": [
  {"value":0,"dtype":"f32","shape":[2,3]},
  {"value":1,"dtype":"f32","shape":[2,3],"becomes":0},
  {"value":2,"dtype":"f64","shape":[],"number":true}
 ],
 "nodes": [
  {"op":"aten::add.Tensor","operands":[1,0,2],"attributes":{},"results":[{"value":3,"dtype":"f32","shape":[2,3]}]},
  {"op":"aten::mul.Tensor","operands":[3,2],"attributes":{},"results":[{"value":4,"dtype":"f32","shape":[2,3]}]}
 ],
 "outputs": [3,4]
}
)");
  const Graph odd = parse(
      "graph(%0: f32[2]) {\n  %1: f32[2], _ = test::op(%0, none) {a=none, b=nan, c=[1,2], d=\"x\\\"y\", e=true}\n  return %1\n}");
  EXPECT_THAT(graph_json(odd),
              ::testing::HasSubstr(R"("operands":[0,null],"attributes":{"a":null,"b":"nan","c":[1,2],"d":"x\"y","e":true},)"
                                   R"("results":[{"value":1,"dtype":"f32","shape":[2]},null]})"));
}

TEST(Archive, NodesWhoseTypesDoNotFollowFromTheirOperandsAreRefused) {
  const auto refusal_of_graph = [](std::string_view from, std::string_view to) {
    Entries entries;
    entries.graph = replaced(replaced(entries.graph, " -> 0", ""), from, to);
    return refusal(entries.bytes());
  };
  EXPECT_THAT(refusal_of_graph("%3: f32[2,3] = ", "%3: f32[4,3] = "),
              ::testing::StartsWith("DATA_CORRUPT: a.ltc: function step: aten::add.Tensor does not give a result"));
  EXPECT_THAT(refusal_of_graph("%3: f32[2,3] = ", "%3: f64[2,3] = "),
              ::testing::HasSubstr("does not give a result of that type"));
  EXPECT_THAT(refusal_of_graph("mul.Tensor(%3, %2)", "mul.Tensor(%3)"), ::testing::HasSubstr("has 1 operands, its schema 2"));
}

TEST(Archive, OpsWithoutARuleNeedTrust) {
  Entries entries;
  entries.graph = replaced(entries.graph, "aten::mul.Tensor", "custom::double");
  const std::string bytes = entries.bytes();
  EXPECT_THAT(
      refusal(bytes),
      ::testing::HasSubstr("UNSUPPORTED: a.ltc: function step: custom::double has no rule for its types: graph(%3: f32[2,3], "));
  EXPECT_EQ(Archive::read(bytes, "a.ltc", Graphs::kTrusted)->functions().size(), 1u);
}

TEST(Archive, FilesThatAreNoneAreRefused) {
  EXPECT_THAT(refusal(""), ::testing::HasSubstr("it has 0 bytes"));
  EXPECT_THAT(refusal(std::string(100, 'x')), ::testing::HasSubstr("it does not end as a zip file"));
  EXPECT_THAT(refusal(zip_bytes({})), ::testing::HasSubstr("it has no entry manifest.json"));
  EXPECT_THROW(Archive::open("/nowhere/a.ltc"), Error);
  EXPECT_THROW(Archive::open("/dev/null"), Error);
}

TEST(Zip, CompressedEntriesAreRefusedByName) {
  const std::string data = "data";
  const std::vector<NewEntry> entries{{"a", {data}}};
  std::string bytes = zip_bytes(entries);
  const size_t directory = bytes.find("PK\x01\x02");
  bytes[directory + 10] = 8;
  EXPECT_THAT([&] { read_zip(bytes, "a.ltc"); },
              ::testing::ThrowsMessage<Error>(::testing::HasSubstr("entry a is compressed (method 8)")));
}

TEST(Zip, AFileThatCannotBeWrittenWholeLeavesTheOldOne) {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / cat("ltc_zip_", getpid());
  std::filesystem::create_directory(folder);
  const std::string path = folder / "a.ltc", large(100000, 'x');
  const std::vector<std::string_view> old{"old"}, larger{large};
  write_file(path, old);
  rlimit usual{};
  getrlimit(RLIMIT_FSIZE, &usual);
  const rlimit small{4096, usual.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  EXPECT_THAT([&] { write_file(path, larger); },
              ::testing::ThrowsMessage<Error>(::testing::HasSubstr("a.ltc cannot be written")));
  setrlimit(RLIMIT_FSIZE, &usual);
  std::signal(SIGXFSZ, handler);
  std::ifstream file(path);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "old");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
  EXPECT_THROW(write_file(path + "/below", old), Error);
  std::filesystem::remove_all(folder);
}

TEST(Safetensors, HolesOverlapsAndBytesBehindAreRefused) {
  const auto refused = [](const std::string& header, size_t data) {
    ByteWriter out;
    out.text(header);
    const std::string bytes = out.take() + std::string(data, '\0');
    try {
      read_safetensors(bytes, "t");
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const std::string a = R"("a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]})";
  EXPECT_EQ(refused("{" + a + "}", 8), "");
  EXPECT_THAT(refused("{" + a + "}", 12), ::testing::HasSubstr("bytes behind the last tensor"));
  EXPECT_THAT(refused("{" + a + R"(, "b": {"dtype": "F32", "shape": [2], "data_offsets": [4, 12]}})", 12),
              ::testing::HasSubstr("does not follow"));
  EXPECT_THAT(refused(R"({"a": {"dtype": "F32", "shape": [3], "data_offsets": [0, 8]}})", 8),
              ::testing::HasSubstr("its shape 12"));
  EXPECT_THAT(refused(R"({"a": {"dtype": "F6", "shape": [2], "data_offsets": [0, 8]}})", 8), ::testing::HasSubstr("dtype F6"));
  EXPECT_THAT(refused(R"({"a": {"dtype": "F32", "shape": [-2], "data_offsets": [0, 8]}})", 8), ::testing::HasSubstr("below 0"));
}

}  // namespace
}  // namespace ltc::deploy
