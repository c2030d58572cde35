#include "core/host/library.h"

#include "core/host/test_support.h"
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

}  // namespace
}  // namespace ltc::host
