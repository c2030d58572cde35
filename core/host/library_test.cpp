#include "core/host/library.h"

#include <elf.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/host/testing/test_support.h"
#include "core/testing/test_plugins.h"

namespace ltc::host {
namespace {

using ::ltc::testing::plugin_path;

TEST(Library, finds_symbols_before_and_after_it_is_kept) {
  Library library = Library::open(plugin_path("test"));
  void* entry = library.find("ltc_plugin_entry");
  EXPECT_NE(entry, nullptr);
  EXPECT_EQ(library.find("ltc_no_such_symbol"), nullptr);
  library.keep();
  library.keep();
  EXPECT_EQ(library.find("ltc_plugin_entry"), entry);
  EXPECT_EQ(library.find("ltc_no_such_symbol"), nullptr);
}

TEST(Library, one_that_cannot_be_opened_is_not_found) {
  EXPECT_EQ(error_of([] { Library::open("/no/such/library.so"); }).code(), Code::kNotFound);
}

// A file of this test's own.
class LibraryFile : public ::testing::Test {
 protected:
  ~LibraryFile() override { std::filesystem::remove(path_); }
  std::string refusal() {
    return message_of([&] { Library::open(path_); });
  }

  const std::string path_ = (std::filesystem::path(::testing::TempDir()) / cat("library_", ::getpid(), ".so")).string();
};

TEST_F(LibraryFile, a_pipe_is_refused_and_not_waited_for) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_EQ(refusal(), "a pipe or a device, not a library");
  EXPECT_EQ(message_of([] { Library::open("/dev/zero"); }), "a pipe or a device, not a library");
}

TEST_F(LibraryFile, one_of_another_processor_is_named) {
  std::filesystem::copy_file(plugin_path("test"), path_);
  std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
  const uint16_t machine = EM_S390;
  file.seekp(offsetof(Elf64_Ehdr, e_machine)).write(reinterpret_cast<const char*>(&machine), sizeof machine);
  file.close();
  EXPECT_THAT(refusal(), ::testing::StartsWith("a library for s390, and this process runs on "));
}

TEST_F(LibraryFile, one_cut_short_is_refused) {
  std::filesystem::copy_file(plugin_path("test"), path_);
  std::filesystem::resize_file(path_, 5000);
  EXPECT_EQ(refusal(), "the file is cut short: it has 5000 bytes");
}

}  // namespace
}  // namespace ltc::host
