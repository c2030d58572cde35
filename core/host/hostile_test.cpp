// Hostile plugins: the host survives each, and says in one sentence of its own which file is bad and what is wrong with it.
// `ltc info` names what a process cannot survive: tests/test_info.py.
#include <elf.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "core/base/utf8.h"
#include "core/host/host_api.h"
#include "core/host/testing/test_rig.h"

namespace ltc::host {
namespace {

namespace fs = std::filesystem;
using ::ltc::testing::plugin_path;
using ::testing::AnyOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// ---- files; each makes one at `path`

void nothing(const fs::path&) {}
void copy_good(const fs::path& path) { fs::copy_file(plugin_path("test"), path); }
void make_folder(const fs::path& path) { fs::create_directory(path); }
void write_text(const fs::path& path) { std::ofstream(path) << std::string(400, 'x'); }
void make_empty(const fs::path& path) { std::ofstream{path}; }
void link_to_itself(const fs::path& path) { fs::create_symlink(path, path); }

template <size_t Size>
void cut_at(const fs::path& path) {
  copy_good(path);
  fs::resize_file(path, Size);
}

// Another byte or two in the header.
template <typename Field>
void patch(const fs::path& path, size_t offset, Field value) {
  copy_good(path);
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(offset)).write(reinterpret_cast<const char*>(&value), sizeof value);
}

void for_s390(const fs::path& path) { patch(path, offsetof(Elf64_Ehdr, e_machine), uint16_t{EM_S390}); }
void for_i386(const fs::path& path) { patch(path, offsetof(Elf64_Ehdr, e_machine), uint16_t{EM_386}); }
void of_32_bits(const fs::path& path) { patch(path, EI_CLASS, uint8_t{ELFCLASS32}); }
void of_other_byte_order(const fs::path& path) {
  patch(path, EI_DATA, uint8_t{std::endian::native == std::endian::little ? ELFDATA2MSB : ELFDATA2LSB});
}
void without_permission(const fs::path& path) {
  copy_good(path);
  fs::permissions(path, fs::perms::none);
}

// ---- what is done with a plugin that was loaded; the text is what a user reads where nothing is thrown

using Use = std::string (*)(Plugin&);

std::string nothing_more(Plugin&) { return "loaded"; }

std::string describe(Plugin& plugin) {
  const PluginInfo info = plugin.describe();
  std::string text = cat(info.name, "|", info.version, "|", info.build_id, "|", info.licence);
  for (const auto& option : info.options) text += cat("|", option.name, "=", option.default_value, ": ", option.about);
  return text;
}

std::string make_buffer(Plugin& plugin) {
  const auto device = plugin.open_device(0);
  auto type = sized<ltc_type>();
  const int64_t size = 1;
  type.dtype = LTC_F32;
  type.rank = 1;
  type.sizes = &size;
  device->destroy_buffer(device->create_buffer(type));
  return "a buffer was made";
}

// ---- the table

// One hostile plugin: a file of its own, or, without `make`, the plugin test_hostile with the fault of that name.
struct Hostile {
  const char* name;
  const char* sentence;  // behind "[NAME] PATH: " where it does not begin with '['
  void (*make)(const fs::path&) = nullptr;
  Use use = nothing_more;
};

const Hostile kHostile[] = {
    // files
    {"nowhere", "not there", nothing},
    {"folder", "a folder, not a library", make_folder},
    {"empty", "an empty file", make_empty},
    {"text", "invalid ELF header", write_text},
    {"loop", "Too many levels of symbolic links", link_to_itself},
    {"secret", "Permission denied", without_permission},
    {"s390", "a library for s390, and this process runs on ", for_s390},
    {"i386", "a library for x86 of 32 bits, and this process runs on ", for_i386},
    {"class32", "wrong ELF class: ELFCLASS32", of_32_bits},
    {"swapped", "ELF file data encoding not ", of_other_byte_order},
    {"cut_in_magic", "the file is cut short: it has 3 bytes", cut_at<3>},
    {"cut_in_header", "the file is cut short: it has 63 bytes", cut_at<63>},
    {"cut_behind_header", "the file is cut short: it has 64 bytes", cut_at<64>},
    {"cut_in_segments", "the file is cut short: it has 5000 bytes", cut_at<5000>},
    {"caf\xe9", "the file is cut short: it has 100 bytes", cut_at<100>},
    // the entry
    {"writes_nothing", "the entry accepted and agreed on no version; this host speaks ABI 1.0 to "},
    {"gives_no_reason", "the entry refused and gave no reason"},
    {"latin_1_reason", "ferm\uFFFD le lundi"},
    {"throws", "the plugin threw from ltc_plugin_entry: no luck today"},
    {"throws_a_number", "the plugin threw from ltc_plugin_entry: not a std::exception"},
    {"future_version", "the plugin speaks ABI 2.0 to 2.3, this host 1.0 to "},
    {"future_minor", "the plugin speaks ABI 1.7 to 1.9, this host 1.0 to "},
    {"past_version", "the plugin speaks ABI 0.1 to 0.9, this host 1.0 to "},
    // its table
    {"no_table", "the entry accepted and gave no table"},
    {"misaligned_table", "the entry accepted and gave a table at an address where none can be"},
    {"table_of_nothing", "the table lacks describe, which every plugin must have: its struct_size is 0"},
    {"table_too_short", "the table lacks buffer_destroy, which every plugin must have: its struct_size is 48"},
    {"table_of_a_megabyte", "ltc_plugin_api::struct_size is 1048576, more than any table has"},
    {"table_without_end", "ltc_plugin_api::struct_size is 18446744073709551615, more than any table has"},
    {"no_transfer", "the table lacks transfer, which every plugin must have"},
    {"no_executable_destroy", "the table lacks executable_destroy, which goes with claims"},
    {"no_event_destroy", "the table lacks event_destroy, which goes with event_wait"},
    {"circle_of_extensions", "its list of extensions does not end"},
    {"empty_extension", "its list of extensions has one with struct_size 0"},
    {"stray_extension", "its list of extensions goes on at an address where none can be"},
    {"required_extension", "it requires the extension 458753, which this host does not know"},
    // its description
    {"throws_in_describe", "the plugin threw from describe: std::bad_alloc"},
    {"stray_status_of_describe", "describe returned a status that this host did not make, or that is destroyed already"},
    {"latin_1_strings", "[test_hostile] caf\uFFFD|1.0\uFFFD|\uFFFD|\uFFFD us|m\uFFFDglich=\uFFFD: \uFFFD", nullptr, describe},
    {"null_strings", "[test_hostile] |||", nullptr, describe},
    {"endless_name", "[test_hostile] short|1.0||", nullptr, describe},
    {"null_option", "describe gives no option 1 of 3"},
    {"empty_option", "describe gives option 0 with struct_size 0"},
    {"no_list_of_options", "describe says that there are 3 options and gives no list of them"},
    {"options_without_end", "describe says that there are 18446744073709551615 options"},
    {"two_hundred_devices", "describe: the plugin has 200 devices; PyTorch numbers at most 127"},
    {"unknown_flags", "ltc_plugin_info::flags is 64; this host knows "},
    {"foreign_sanitizer", "the plugin was built with the sanitizer memory, this host was not"},
    // its devices
    {"no_device_opened", "[test_hostile] device_open succeeded and gave no device", nullptr, make_buffer},
    {"dead_status_of_device_open",
     "[test_hostile] device_open returned a status that this host did not make, or that is destroyed already", nullptr,
     make_buffer},
    {"latin_1_error", "[test_hostile] device_open: cass\uFFFD", nullptr, make_buffer},
    {"stray_status_of_buffer_create",
     "[test_hostile] buffer_create returned a status that this host did not make, or that is destroyed already", nullptr,
     make_buffer},
    {"misaligned_handles", "[test_hostile] a buffer was made", nullptr, make_buffer},
};

// A user without rights, for as long as it lives: root may read every file.
class NoRights {
 public:
  NoRights() : is_root_(::geteuid() == 0 && ::seteuid(65534) == 0) {}
  ~NoRights() { EXPECT_TRUE(!is_root_ || ::seteuid(0) == 0); }

 private:
  const bool is_root_;
};

class HostileTest : public HostTest, public ::testing::WithParamInterface<Hostile> {
 protected:
  HostileTest() { fs::create_directories(folder_); }
  ~HostileTest() override { fs::remove_all(folder_); }

  std::string outcome(const std::string& path, const Options& options, Use use) {
    try {
      const auto plugin = Plugin::load(path, options);
      return cat("[", plugin->name(), "] ", use(*plugin));
    } catch (const Error& error) {
      return error.what();
    }
  }

  const fs::path folder_ = fs::path(::testing::TempDir()) / cat("ltc_hostile_", ::getpid());
};

TEST_P(HostileTest, is_survived_and_named) {
  const Hostile& row = GetParam();
  std::string path = plugin_path("test_hostile"), name = "test_hostile";
  Options options = {{"fault", row.name}};
  if (row.make) {
    name = valid_utf8(row.name);
    path = (folder_ / cat("libltc_", row.name, ".so")).string();
    row.make(path);
    options.clear();
  }
  std::string expected = row.sentence;
  if (!expected.starts_with('[')) expected = cat("[", name, "] ", valid_utf8(path), ": ", expected);
  const NoRights no_rights;
  EXPECT_THAT(outcome(path, options, row.use), StartsWith(expected));
}

INSTANTIATE_TEST_SUITE_P(All, HostileTest, ::testing::ValuesIn(kHostile), [](const auto& row) {
  return cat(row.index, "_", valid_utf8(row.param.name) == row.param.name ? row.param.name : "latin_1");
});

TEST(Hostile, each_has_a_sentence_of_its_own) {
  std::set<std::string> sentences;
  for (const Hostile& row : kHostile) EXPECT_TRUE(sentences.insert(row.sentence).second) << row.sentence;
  EXPECT_GE(sentences.size(), 24u);
}

// The loader maps what the header promises, and would end the process.
TEST_F(HostileTest, a_file_cut_at_any_length_is_refused_or_whole) {
  const size_t whole = fs::file_size(plugin_path("test"));
  size_t refused = 0;
  for (size_t i = 0; i < 60; ++i) {
    const std::string path = (folder_ / cat("libltc_cut_", i, ".so")).string();
    copy_good(path);
    fs::resize_file(path, whole * i / 60);
    const std::string text = outcome(path, {}, make_buffer);
    refused += text.find(cat(path, ": ")) != text.npos;
    EXPECT_THAT(text, AnyOf(HasSubstr("the file is cut short"), EndsWith("an empty file"), EndsWith("a buffer was made")));
  }
  EXPECT_GE(refused, 30u);
}

TEST_F(HostileTest, a_plugin_at_a_path_that_is_no_utf8_is_called_by_a_name_that_is) {
  const std::string path = (folder_ / "libltc_th\xe9.so").string();
  copy_good(path);
  EXPECT_EQ(outcome(path, {}, make_buffer), "[th\uFFFD] a buffer was made");
}

TEST_F(HostileTest, a_thread_that_calls_the_host_after_plugin_close_is_answered_and_told) {
  static const ltc_host_api* kept;
  EXPECT_ANY_THROW(Plugin::enter("late", [](ltc_entry_args* args) {
    kept = args->host;
    return false;
  }));
  ::testing::internal::CaptureStderr();
  std::thread([] {
    ltc_status* status = kept->status_create(kept->host, LTC_INTERNAL, LTC_NONE, "late", 4);
    EXPECT_EQ(kept->status_code(status), LTC_INTERNAL);
    kept->status_destroy(status);
    kept->status_destroy(status);
    EXPECT_FALSE(kept->is_awaited(kept->host));
    kept->log(kept->host, LTC_LOG_ERROR, "good night", 10);
  }).join();
  const std::string log = ::testing::internal::GetCapturedStderr();
  const std::string told = "[late] the plugin calls the host after plugin_close has returned";
  EXPECT_THAT(log, HasSubstr(told));
  EXPECT_THAT(log, HasSubstr("[late] good night"));
  EXPECT_EQ(log.find(told), log.rfind(told)) << "once";
}

}  // namespace
}  // namespace ltc::host
