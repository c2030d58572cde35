// The files of an exported folder, what is refused in them, and that a wrong value is found.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

#include "core/ir/text.h"
#include "pjrt/export/folder.h"
#include "pjrt/export/json.h"
#include "pjrt/export/npy.h"

namespace ltc::pjrt {
namespace {

using testing::HasSubstr;

template <typename Body>
std::string error_of(Body body) {
  try {
    body();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "no error";
}

class Folder : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // Swaps a part of a file's bytes.
  void change(const std::string& file, const std::string& from, const std::string& to) {
    std::string bytes = read_file(folder_ / file);
    ASSERT_NE(bytes.find(from), bytes.npos) << file;
    write_file(folder_ / file, bytes.replace(bytes.find(from), from.size(), to));
  }

  const std::filesystem::path folder_ = std::filesystem::temp_directory_path() / cat("ltc_export_test_", getpid());
};

TEST(Json, is_read) {
  const Json json = Json::parse(R"( {"a": [1, -2.5e1, []], "b": {"c": "x\n\"\u0041\\"}, "d": null, "e": true} )");
  EXPECT_EQ(json.at("a").list().at(1).number(), -25);
  EXPECT_EQ(json.at("b").at("c").text(), "x\n\"A\\");
  EXPECT_EQ(Json::parse(json_text("a\"b\\c\n\x01")).text(), "a\"b\\c\n\x01");
  EXPECT_THAT(error_of([&] { json.at("f"); }), HasSubstr("no \"f\""));
  EXPECT_THAT(error_of([&] { json.at("d").text(); }), HasSubstr("a string"));
}

TEST(Json, of_another_form_is_refused) {
  for (const char* text : {"", "{", "[1,]", "[1 2]", "{\"a\" 1}", "{1:2}", "\"a", "\"\\", "\"\\x\"", "\"\\u00e9\"", "\"\\u1\"",
                           "1 2", "tru", "\"a\nb\""}) {
    EXPECT_THAT(error_of([&] { Json::parse(text); }), HasSubstr("no JSON")) << text;
  }
  EXPECT_THAT(error_of([&] { Json::parse(std::string(100000, '[')); }), HasSubstr("less depth"));
}

TEST_F(Folder, has_arrays_as_they_were) {
  std::filesystem::create_directories(folder_);
  for (const Array& array : {Array::floats({1, 2, 3}), Array::floats({2, 0}, {}), Array::of<int64_t>(DType::kI64, {}, {7}),
                             Array::of<uint16_t>(DType::kBF16, {1, 2}, {0x3f80, 0x7fc0}), Array(DType::kBool, {3})}) {
    write_npy(folder_ / "a.npy", array);
    const Array read = read_npy(folder_ / "a.npy", array.dtype);
    EXPECT_EQ(read.sizes, array.sizes);
    EXPECT_EQ(read.bytes, array.bytes);
    EXPECT_EQ((std::filesystem::file_size(folder_ / "a.npy") - array.bytes.size()) % 64, 0u);
  }
}

TEST_F(Folder, with_a_damaged_array_is_refused) {
  std::filesystem::create_directories(folder_);
  write_npy(folder_ / "a.npy", Array::floats({1, 2, 3}));
  const std::string bytes = read_file(folder_ / "a.npy");
  const auto reading = [&](std::string_view text, DType dtype = DType::kF32) {
    write_file(folder_ / "b.npy", text);
    return error_of([&] { read_npy(folder_ / "b.npy", dtype); });
  };
  EXPECT_EQ(reading(bytes), "no error");
  EXPECT_THAT(reading(bytes, DType::kI32), HasSubstr("another dtype"));
  EXPECT_THAT(reading(bytes.substr(0, bytes.size() - 1)), HasSubstr("more or fewer bytes"));
  EXPECT_THAT(reading(bytes.substr(0, 20)), HasSubstr("ends in its header"));
  EXPECT_THAT(reading("PK"), HasSubstr("no .npy file"));
}

TEST_F(Folder, says_what_is_not_exported) {
  std::filesystem::create_directories(folder_);
  const Graph graph = parse("graph(%0: f32[2]) { %1: f32[2] = my::op(%0) return %1 }");
  Index index;
  export_source(folder_, {"mine", "Ops.mine", "my::op", graph, graph, "f", {}}, index);
  write_index(folder_, index);
  const Index read = read_index(folder_);
  ASSERT_EQ(read.not_exported.size(), 1u);
  EXPECT_TRUE(read.modules.empty());
  EXPECT_EQ(read.not_exported[0].name, "mine");
  EXPECT_THAT(read.not_exported[0].reason, HasSubstr("my::op"));
}

TEST_F(Folder, has_an_index_with_all_that_was_written) {
  const Index written = export_folder(folder_, "gather_bf16.*");
  const Index read = read_index(folder_);
  ASSERT_EQ(read.modules.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    const ModuleEntry &a = written.modules[i], &b = read.modules[i];
    EXPECT_EQ(a.graph, b.graph);
    EXPECT_EQ(a.op, b.op);
    EXPECT_EQ(b.check, "Ops.gather_bf16");
    ASSERT_EQ(a.outputs.size(), b.outputs.size());
    EXPECT_EQ(a.outputs[0].shape, b.outputs[0].shape);
  }
  EXPECT_EQ(read.modules[0].outputs.size(), 2u);  // the second says that no index is bad
  EXPECT_THAT(error_of([&] { export_folder(folder_, "*"); }), HasSubstr("is not empty"));
  change("index.json", "gather_bf16.0.mlir", "../x.mlir");
  EXPECT_THAT(error_of([&] { read_index(folder_); }), HasSubstr("'../x.mlir'"));
}

TEST_F(Folder, of_no_case_is_refused) {
  EXPECT_THAT(error_of([&] { export_folder(folder_, "nothing"); }), HasSubstr("no case is called nothing"));
}

#ifdef LTC_PJRT_LIBRARY
TEST_F(Folder, with_one_wrong_value_fails_there) {
  export_folder(folder_, "neg_f32.[56]");  // of three elements, and of 1009
  std::string failures;
  size_t count = 0;
  const auto run = [&] {
    failures.clear();
    count = 0;
    run_folder(LTC_PJRT_LIBRARY, folder_, "*", [&](const std::string& name, const std::string& wrong) {
      ++count;
      if (!wrong.empty()) failures += name + ": " + wrong + "\n";
    });
  };
  run();
  EXPECT_EQ(count, 2u);
  EXPECT_EQ(failures, "");

  const std::string file = "neg_f32.6.out0.npy";
  Array golden = read_npy(folder_ / file, DType::kF32);
  golden.bytes[4 * 1000] ^= std::byte{1};  // the last bit
  write_npy(folder_ / file, golden);
  run();
  EXPECT_THAT(failures, HasSubstr("neg_f32.6: output 0: 1 of 1009 elements differ, the first at 1000"));
  EXPECT_EQ(std::ranges::count(failures, '\n'), 1);

  std::filesystem::remove(folder_ / "neg_f32.5.in0.npy");
  change("neg_f32.6.mlir", "stablehlo.neg", "stablehlo.no_such_op");
  run();
  EXPECT_EQ(count, 2u);
  EXPECT_THAT(failures, HasSubstr("neg_f32.5: cannot read"));
  EXPECT_THAT(failures, HasSubstr("no_such_op"));
}
#endif

}  // namespace
}  // namespace ltc::pjrt
