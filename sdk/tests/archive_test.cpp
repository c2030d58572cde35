// Objects as bytes and back.
#include "ltc/archive.hpp"

#include <gtest/gtest.h>

namespace ltc::plugin {

enum class Colour : uint8_t { kRed = 3 };
struct Part {
  int64_t size;
  bool is_last;
  bool operator==(const Part&) const = default;
};
struct Whole {
  std::string name;
  Colour colour;
  std::vector<Part> parts;
  std::vector<bool> flags;
  std::vector<std::vector<uint32_t>> lists;
  std::vector<double> reals;
  float real;
  bool operator==(const Whole&) const = default;
};
static void archive(Archive& io, Part& part) { io(part.size, part.is_last); }
static void archive(Archive& io, Whole& whole) {
  io(whole.name, whole.colour, whole.parts, whole.flags, whole.lists, whole.reals, whole.real);
}

namespace {

const Whole kWhole{"a name",
                   Colour::kRed,
                   {{-1, false}, {INT64_MAX, true}, {INT64_MIN, true}, {-64, false}, {64, false}},
                   {true, false, true},
                   {{}, {1, UINT32_MAX}},
                   {-0.0, 1e300, 0.1},
                   0.1f};

ltc_code code_of_loading(std::string_view format, std::string_view bytes) {
  Whole whole;
  try {
    load(format, bytes, whole);
  } catch (const Failure& failure) {
    return failure.error().code;
  }
  return 0;
}

TEST(Archive, reads_what_it_wrote) {
  const std::string bytes = save("test 1", kWhole, std::string("behind"));
  Whole whole;
  std::string behind;
  load("test 1", bytes, whole, behind);
  EXPECT_EQ(whole, kWhole);
  EXPECT_EQ(behind, "behind");
}

TEST(Archive, refuses_another_format_and_damaged_bytes) {
  const std::string bytes = save("test 1", kWhole);
  EXPECT_EQ(code_of_loading("test 1", bytes), 0);
  EXPECT_EQ(code_of_loading("test 2", bytes), LTC_DATA_CORRUPT);
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(code_of_loading("test 1", std::string_view(bytes).substr(0, size)), LTC_DATA_CORRUPT) << "cut at " << size;
    std::string damaged = bytes;
    damaged[size] ^= 1;
    EXPECT_EQ(code_of_loading("test 1", damaged), LTC_DATA_CORRUPT) << "a bit is wrong at " << size;
  }
  EXPECT_EQ(code_of_loading("test 1", bytes + '\0'), LTC_DATA_CORRUPT);
}

TEST(Archive, refuses_a_number_that_does_not_fit) {
  uint32_t narrow = 0;
  bool flag = false;
  std::vector<bool> flags;
  const uint64_t wide = uint64_t{1} << 32 | 7;
  EXPECT_THROW(load("test 1", save("test 1", wide), narrow), Failure);
  EXPECT_THROW(load("test 1", save("test 1", uint64_t{2}), flag), Failure);
  EXPECT_THROW(load("test 1", save("test 1", std::vector<uint8_t>{2}), flags), Failure);
}

// A checksum protects against accidents, not against a length that somebody forged.
TEST(Archive, reads_nothing_beyond_its_bytes) {
  std::string more = save("test 1", uint64_t{1} << 60);
  EXPECT_EQ(code_of_loading("test 1", more), LTC_DATA_CORRUPT) << "a string longer than all";
  std::vector<Part> parts;
  EXPECT_THROW(load("test 1", more, parts), Failure) << "a list longer than all";
  EXPECT_THROW(load("test 1", save("test 1", kWhole, true), parts), Failure) << "something is left";
}

}  // namespace
}  // namespace ltc::plugin
