#include "core/base/private_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "core/base/error.h"

namespace ltc {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uid_t kSomebodyElse = 65534;

class PrivateFolderTest : public ::testing::Test {
 protected:
  PrivateFolderTest() { fs::remove_all(path); }
  ~PrivateFolderTest() override { fs::remove_all(path); }

  template <typename Call>
  std::string refusal(const Call& call) {
    try {
      call();
      return "none";
    } catch (const Error& error) {
      return error.what();
    }
  }
  mode_t mode_of(const fs::path& file) {
    struct stat facts {};
    EXPECT_EQ(lstat(file.c_str(), &facts), 0);
    return facts.st_mode & 07777;
  }
  std::string bytes_of(const fs::path& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  const fs::path path = fs::temp_directory_path() / cat("ltc_private_folder_test_", getpid());
};

TEST_F(PrivateFolderTest, IsMadeForItsOwnerAlone) {
  EXPECT_FALSE(PrivateFolder::open(path));
  const mode_t before = umask(0);
  const auto folder = PrivateFolder::make(path / "deeper");
  folder.write("a", {"some", "", "thing"});
  umask(before);
  EXPECT_EQ(mode_of(path / "deeper"), 0700u);
  EXPECT_EQ(mode_of(path / "deeper" / "a"), 0600u);
  EXPECT_EQ(bytes_of(path / "deeper" / "a"), "something");
  EXPECT_EQ(folder.names().size(), 3u);  // with . and ..
}

TEST_F(PrivateFolderTest, IsNotTrustedWhereOthersMayWrite) {
  PrivateFolder::make(path);
  for (const mode_t mode : {0720u, 0702u, 01777u}) {
    chmod(path.c_str(), mode);
    EXPECT_THAT(refusal([&] { PrivateFolder::open(path); }), HasSubstr("others than its owner may write it (mode "));
  }
  chmod(path.c_str(), 0755);
  EXPECT_TRUE(PrivateFolder::open(path));
}

TEST_F(PrivateFolderTest, IsNotTrustedWhereSomebodyElseOwnsIt) {
  if (geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  const auto folder = PrivateFolder::make(path);
  folder.write("a", {"x"});
  ASSERT_EQ(chown((path / "a").c_str(), kSomebodyElse, kSomebodyElse), 0);
  EXPECT_THAT(refusal([&] { folder.find("a"); }), HasSubstr("user 65534 owns it, and this process is of user 0"));
  ASSERT_EQ(chown(path.c_str(), kSomebodyElse, kSomebodyElse), 0);
  EXPECT_THAT(refusal([&] { PrivateFolder::open(path); }), HasSubstr(cat(path.string(), ": user 65534 owns it")));
}

TEST_F(PrivateFolderTest, WhatIsNoFolderIsRefused) {
  std::ofstream(path) << "x";
  EXPECT_THAT(refusal([&] { PrivateFolder::open(path); }), HasSubstr("Not a directory"));
  EXPECT_THAT(refusal([&] { PrivateFolder::make(path); }), HasSubstr("Not a directory"));
}

TEST_F(PrivateFolderTest, WhatIsNoRegularFileIsRefusedAtOnce) {
  const auto folder = PrivateFolder::make(path);
  ASSERT_EQ(mkfifo((path / "fifo").c_str(), 0600), 0);
  fs::create_symlink("/dev/zero", path / "zero");
  fs::create_directory(path / "folder");
  EXPECT_EQ(refusal([&] { folder.find("fifo"); }), "it is no regular file");
  EXPECT_EQ(refusal([&] { folder.find("zero"); }), "it is a link");
  EXPECT_EQ(refusal([&] { folder.find("folder"); }), "it is no regular file");
  EXPECT_FALSE(folder.find("nothing"));
}

TEST_F(PrivateFolderTest, FilesThatOthersMayWriteAreRefused) {
  const auto folder = PrivateFolder::make(path);
  folder.write("a", {"x"});
  chmod((path / "a").c_str(), 0666);
  EXPECT_THAT(refusal([&] { folder.find("a"); }), HasSubstr("others than its owner may write it (mode 0666)"));
  chmod((path / "a").c_str(), 0644);
  EXPECT_EQ(folder.find("a")->read(10), "x");
}

TEST_F(PrivateFolderTest, WritingReplacesALinkAndLeavesItsTarget) {
  const auto folder = PrivateFolder::make(path);
  std::ofstream(path / "target") << "precious";
  fs::create_symlink(path / "target", path / "a");
  folder.write("a", {"x"});
  EXPECT_EQ(bytes_of(path / "target"), "precious");
  EXPECT_EQ(folder.find("a")->read(10), "x");
}

TEST_F(PrivateFolderTest, AFailedWriteLeavesNothing) {
  const auto folder = PrivateFolder::make(path);
  fs::create_directory(path / "a");
  EXPECT_THAT(refusal([&] { folder.write("a", {"x"}); }), HasSubstr(cat("cannot write ", (path / "a").string(), ": ")));
  EXPECT_EQ(folder.names().size(), 3u);
}

}  // namespace
}  // namespace ltc
