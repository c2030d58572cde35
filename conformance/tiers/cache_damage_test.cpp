// The cache tier: bytes that nobody saved. They come from a file: truncated, damaged, or of another plugin.
#include <random>

#include "conformance/kit/heap.h"
#include "conformance/tiers/cache_fixture.h"

namespace ltc::conformance {
namespace {

class CacheDamage : public Cache {
 protected:
  void SetUp() override {
    Cache::SetUp();
    if (IsSkipped()) return;
    bytes_ = save(device().build(kAdd4));
    if (bytes_.empty()) LTC_UNSUPPORTED_BY_PLUGIN("this executable cannot be saved");
  }

  void expect_refused(const std::string& bytes, const std::string& what) {
    Executable executable;
    const Failure failure = load(bytes, executable);
    EXPECT_TRUE(failure.code == LTC_DATA_CORRUPT || failure.code == LTC_UNSUPPORTED)
        << what << " gave " << failure << "; the contract: DATA_CORRUPT, or UNSUPPORTED for another version";
  }
  // A byte that nothing reads may be anything: then the executable is right.
  void expect_refused_or_right(const std::string& bytes, const std::string& what) {
    Executable executable;
    const Failure failure = load(bytes, executable);
    if (!failure) {
      EXPECT_EQ(sum(device(), executable), kSum) << what << " was accepted and computes something else";
    } else {
      EXPECT_TRUE(failure.code == LTC_DATA_CORRUPT || failure.code == LTC_UNSUPPORTED) << what << " gave " << failure;
    }
  }
  std::string with(size_t at, const std::string& piece) const {
    std::string changed = bytes_;
    changed.replace(at, std::min(piece.size(), changed.size() - at), piece, 0, std::min(piece.size(), changed.size() - at));
    return changed;
  }
  size_t step(size_t places) const { return std::max<size_t>(bytes_.size() / places, 1); }

  std::string bytes_;
};

TEST_F(CacheDamage, no_bytes_are_refused) { expect_refused("", "no bytes"); }
TEST_F(CacheDamage, one_byte_is_refused) { expect_refused(bytes_.substr(0, 1), "the first byte"); }

TEST_F(CacheDamage, a_missing_last_byte_is_noticed) {
  expect_refused(bytes_.substr(0, bytes_.size() - 1), "all but the last byte");
}

TEST_F(CacheDamage, bytes_truncated_within_their_head_are_refused) {
  for (size_t size = 1; size < std::min<size_t>(bytes_.size(), 160); ++size)
    expect_refused(bytes_.substr(0, size), cat("the first ", size, " bytes"));
}

TEST_F(CacheDamage, bytes_truncated_anywhere_are_refused) {
  for (size_t size = 0; size < bytes_.size(); size += step(128))
    expect_refused(bytes_.substr(0, size), cat("the first ", size, " of ", bytes_.size(), " bytes"));
}

TEST_F(CacheDamage, bytes_truncated_at_blocks_of_a_disk_are_refused) {
  for (size_t size = 512; size < bytes_.size(); size *= 2)
    expect_refused(bytes_.substr(0, size), cat("the first ", size, " bytes"));
  expect_refused(bytes_.substr(0, bytes_.size() / 64 * 64 - (bytes_.size() % 64 == 0 ? 64 : 0)), "whole lines of 64 bytes");
}

TEST_F(CacheDamage, bytes_without_their_beginning_are_refused) {
  for (const size_t lost : {size_t{1}, size_t{8}, size_t{64}, bytes_.size() / 2}) {
    if (lost < bytes_.size()) expect_refused(bytes_.substr(lost), cat("all but the first ", lost, " bytes"));
  }
}

TEST_F(CacheDamage, more_bytes_than_were_saved_are_refused_or_harmless) {
  expect_refused_or_right(bytes_ + '\0', "one byte more");
  expect_refused_or_right(bytes_ + bytes_, "the bytes twice");
}

TEST_F(CacheDamage, each_byte_of_the_head_counts_or_is_harmless) {
  for (size_t at = 0; at < std::min<size_t>(bytes_.size(), 160); ++at)
    expect_refused_or_right(with(at, std::string(1, static_cast<char>(~bytes_[at]))), cat("another byte ", at));
}

TEST_F(CacheDamage, bytes_damaged_anywhere_are_refused_or_harmless) {
  for (size_t at = 0; at < bytes_.size(); at += step(256))
    expect_refused_or_right(with(at, std::string(1, static_cast<char>(~bytes_[at]))), cat("another byte ", at));
}

TEST_F(CacheDamage, single_bits_are_refused_or_harmless) {
  std::mt19937 random(11);
  for (int i = 0; i < 200; ++i) {
    const size_t at = random() % bytes_.size();
    expect_refused_or_right(with(at, std::string(1, static_cast<char>(bytes_[at] ^ 1 << random() % 8))),
                            cat("a bit of byte ", at));
  }
}

TEST_F(CacheDamage, huge_lengths_are_refused_or_harmless) {
  for (const uint64_t length : {UINT64_MAX, uint64_t{INT64_MAX}, uint64_t{1} << 40}) {
    std::string word(sizeof length, '\0');
    std::memcpy(word.data(), &length, sizeof length);
    for (size_t at = 0; at + sizeof length <= std::min<size_t>(bytes_.size(), 512); at += sizeof length)
      expect_refused_or_right(with(at, word), cat("the number ", length, " at byte ", at));
  }
}

TEST_F(CacheDamage, a_lost_block_is_refused_or_harmless) {
  for (size_t at = 0; at < bytes_.size(); at += step(32))
    expect_refused_or_right(with(at, std::string(64, '\0')), cat("zeros at ", at));
}

TEST_F(CacheDamage, halves_in_another_order_are_refused) {
  const size_t half = bytes_.size() / 2;
  expect_refused(bytes_.substr(half) + bytes_.substr(0, half), "the second half before the first");
}

TEST_F(CacheDamage, zeros_are_refused) { expect_refused(std::string(bytes_.size(), '\0'), "zeros"); }
TEST_F(CacheDamage, ones_are_refused) { expect_refused(std::string(bytes_.size(), '\xff'), "bytes of ones"); }

TEST_F(CacheDamage, random_bytes_are_refused) {
  std::mt19937 random(3);
  for (const size_t size : {size_t{64}, bytes_.size(), size_t{1} << 20}) {
    std::string noise(size, '\0');
    for (char& byte : noise) byte = static_cast<char>(random());
    expect_refused(noise, cat(size, " random bytes"));
  }
}

TEST_F(CacheDamage, a_text_is_refused) { expect_refused("this is no executable", "a text"); }

TEST_F(CacheDamage, a_program_file_is_refused) {
  std::string elf(
      "\x7f"
      "ELF\x02\x01\x01",
      7);
  elf.resize(bytes_.size(), '\0');
  expect_refused(elf, "the head of an ELF file");
}

// As another plugin of the SDK's helper writes them (ltc/archive.hpp): a right checksum of bytes that mean something else.
TEST_F(CacheDamage, bytes_of_another_plugin_are_refused) {
  const uint64_t sum = 0xCBF29CE484222325;  // of no bytes
  std::string foreign(16, '\0');
  std::memcpy(foreign.data(), "otherfmt", 8);
  std::memcpy(foreign.data() + 8, &sum, sizeof sum);
  expect_refused(foreign, "another plugin's empty executable");
  expect_refused(with(0, "otherfmt"), "the bytes with another plugin's mark");
}

TEST_F(CacheDamage, a_refusal_says_why) {
  Executable executable;
  EXPECT_NE(load("this is no executable", executable).message, "");
}

TEST_F(CacheDamage, a_refusal_leaves_its_out_parameter_alone) {
  auto* const before = reinterpret_cast<ltc_executable*>(this);
  ltc_executable* made = before;
  const LoadBytes memory("this is no executable");
  const ltc_load_args args = memory.args();
  EXPECT_TRUE(Instance::asked("executable_load", [&] { return api().executable_load(device().get(), &args, &made); }));
  EXPECT_EQ(made, before) << "after an error every out parameter is unchanged";
}

TEST_F(CacheDamage, the_device_goes_on_after_refusals) {
  for (int i = 0; i < 20; ++i) expect_refused(bytes_.substr(0, bytes_.size() / 2), "a half");
  Executable executable;
  ASSERT_OK(load(bytes_, executable));
  EXPECT_EQ(sum(device(), executable), kSum);
}

TEST_F(CacheDamage, refusals_leave_nothing_behind) {
  const std::string half = bytes_.substr(0, bytes_.size() / 2),
                    damaged = with(bytes_.size() - 1, std::string(1, char(~bytes_.back())));
  const auto growth = growth_per_time(200, [&] {
    Executable executable;
    (void)load(half, executable);
    (void)load(damaged, executable);
  });
  if (!growth) LTC_NOT_APPLICABLE("the allocator does not count");
  EXPECT_LT(*growth, kLeakBytes) << "bytes of host memory lost with each refusal";
}

}  // namespace
}  // namespace ltc::conformance
