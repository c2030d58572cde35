// The host refuses, restores or bounds the answers of plugins that break the rules of ltc/plugin.h.
#include <atomic>
#include <cfenv>
#include <cfloat>
#include <filesystem>
#include <map>
#include <thread>

#include "core/base/float_control.h"
#include "core/base/utf8.h"
#include "core/host/host_api.h"
#include "core/host/library.h"
#include "core/host/testing/test_rig.h"
#include "ltc/precision.h"
#include "ltc/profile.h"
#include "ltc/symbolic.h"

namespace ltc::host {
namespace {

using ::ltc::testing::load_plugin;
using ::ltc::testing::plugin_path;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class ContractTest : public HostTest {};

// ---- floating-point numbers

// Not known to the compiler, so divided where it stands.
bool keeps_subnormal_numbers() {
  const volatile float smallest = FLT_MIN;
  const volatile float half = smallest / 2;
  return half > 0;
}

TEST_F(ContractTest, a_library_with_fast_math_changes_no_numbers_of_the_thread) {
  const std::filesystem::path copy = std::filesystem::path(::testing::TempDir()) / cat("libltc_fast_", ::getpid(), ".so");
  std::filesystem::copy_file(plugin_path("test_fast_math"), copy);
  bool changed = false;
  std::thread other([&] {
    Library library = Library::open(copy.string());
    changed = !keeps_subnormal_numbers();
  });
  other.join();
  std::filesystem::remove(copy);
  if (!changed) GTEST_SKIP() << "this compiler's -ffast-math leaves the thread alone";
  load_plugin("test_fast_math");
  EXPECT_TRUE(keeps_subnormal_numbers());
}

TEST_F(ContractTest, a_slot_changes_no_numbers_of_the_thread) {
  Rig rig("test_changes_floats");
  CGraph graph = scaled_graph();
  ltc_executable* executable = rig.build(graph);
  ltc_buffer *x = rig.upload({1, 2, 3}), *y = nullptr;
  std::fesetround(FE_UPWARD);  // the program's own choice
  std::feraiseexcept(FE_INEXACT);
  rig.finish(rig.run(executable, {x}, {ltc_scalar{.f = 1.0}}, &y));
  EXPECT_EQ(std::fegetround(), FE_UPWARD);
  EXPECT_TRUE(std::fetestexcept(FE_INEXACT));
  std::fesetround(FE_TONEAREST);
  rig.device->destroy_buffer(x);
  rig.device->destroy_buffer(y);
  rig.device->destroy_executable(executable);
}

TEST_F(ContractTest, the_entry_changes_no_numbers_of_the_thread) {
  EXPECT_THROW(Plugin::enter("floats", [](ltc_entry_args*) { return std::fesetround(FE_DOWNWARD) != 0; }), Error);
  EXPECT_EQ(std::fegetround(), FE_TONEAREST);
}

// ---- handles that are given twice

TEST_F(ContractTest, an_output_twice_is_refused) {
  Rig rig("test_same_output");
  EXPECT_EQ(broken_run(rig), "[test_same_output] execute succeeded and gave another output again as output 1 of 2");
}

TEST_F(ContractTest, an_input_as_output_is_refused) {
  Rig rig("test_input_as_output");
  EXPECT_EQ(broken_run(rig), "[test_input_as_output] execute succeeded and gave an input as output 0 of 2");
}

TEST_F(ContractTest, the_handle_of_a_donated_input_may_come_back) {
  Rig rig("test");
  ltc_buffer *x = rig.upload({1, 2, 3}), *y = nullptr;
  static ltc_buffer* given;  // of another device: it is looked at and not used
  given = x;
  static ltc_plugin_api table;
  const auto enter = [](ltc_entry_args* args) {
    static Library library = Library::open(plugin_path("test"));
    if (!reinterpret_cast<ltc_plugin_entry_fn*>(library.find("ltc_plugin_entry"))(args)) return false;
    table = *args->api;
    table.execute = [](ltc_device*, const ltc_execute_args*, ltc_buffer** outputs, ltc_event**) -> ltc_status* {
      outputs[0] = given;
      return nullptr;
    };
    args->api = &table;
    return true;
  };
  const auto device = Plugin::enter("reusing", enter)->open_device(0);
  const uint8_t donated = 1;
  auto args = sized<ltc_execute_args>();
  args.input_count = 1;
  args.inputs = &x;
  args.donate = &donated;
  args.output_count = 1;
  EXPECT_EQ(device->execute(args, &y), nullptr);
  EXPECT_EQ(y, x);
  rig.device->destroy_buffer(x);
}

TEST_F(ContractTest, an_event_twice_is_refused) {
  Rig rig("test_same_event");
  CGraph graph = scaled_graph();
  ltc_executable* executable = rig.build(graph);
  ltc_buffer *x = rig.upload({1, 2, 3}), *y = nullptr, *z = nullptr;
  const std::vector<ltc_scalar> scalars = {ltc_scalar{.f = 1.0}};
  ltc_event* first = rig.run(executable, {x}, scalars, &y);
  EXPECT_EQ(message_of([&] { (void)rig.run(executable, {x}, scalars, &z); }),
            "[test_same_event] execute gave an event that it gave before and that is not destroyed yet");
  EXPECT_EQ(z, nullptr);
  EXPECT_TRUE(rig.device->wait(first));
  rig.device->destroy_event(first);
  first = rig.run(executable, {x}, scalars, &z);  // may come again now
  EXPECT_NE(first, nullptr);
  rig.device->destroy_event(first);
  for (ltc_buffer* buffer : {x, y, z}) rig.device->destroy_buffer(buffer);
  rig.device->destroy_executable(executable);
}

TEST_F(ContractTest, many_handles_are_told_apart) {
  Rig rig("test");
  CGraph graph;
  const uint32_t x = graph.param(LTC_F32, {1});
  for (int i = 0; i < 500; ++i) graph.output(graph.node("aten::neg", {x}, LTC_F32, {1}));
  ltc_executable* executable = rig.build(graph);
  ltc_buffer* input = rig.upload({1});
  std::vector<ltc_buffer*> outputs(500);
  auto args = sized<ltc_execute_args>();
  args.executable = executable;
  args.input_count = 1;
  args.inputs = &input;
  args.output_count = outputs.size();
  EXPECT_EQ(rig.device->execute(args, outputs.data()), nullptr);
  for (ltc_buffer* output : outputs) rig.device->destroy_buffer(output);
  rig.device->destroy_buffer(input);
  rig.device->destroy_executable(executable);
}

// ---- devices and their types

TEST_F(ContractTest, more_devices_than_can_be_numbered_are_refused) {
  EXPECT_EQ(message_of([] { load_plugin("test_too_many"); }),
            "[test_too_many] " + plugin_path("test_too_many") +
                ": describe: the plugin has 4294967295 devices; PyTorch numbers at most 127");
  EXPECT_EQ(load_plugin("test_many")->describe().device_count, 100u);
}

TEST_F(ContractTest, a_device_without_dtypes_is_refused) {
  EXPECT_EQ(message_of([] { load_plugin("test_no_dtypes")->open_device(0); }),
            "[test_no_dtypes] device_open says that buffers may have no dtype: ltc_device_info::dtypes is 0");
}

TEST_F(ContractTest, a_dtype_that_is_not_listed_is_not_asked_for) {
  Rig rig("test");
  auto type = sized<ltc_type>();
  const int64_t none = 0;
  type.dtype = LTC_F64;
  type.sizes = &none;
  const Error error = error_of([&] { rig.device->create_buffer(type); });
  EXPECT_EQ(error.code(), Code::kUnsupported);
  EXPECT_STREQ(error.what(), "[test] the device has no f64");
}

// ---- extensions

ltc_extension second{sizeof(ltc_extension), LTC_EXTENSION_SYMBOLIC, 1, nullptr};
ltc_extension first{sizeof(ltc_extension), 78, 1, &second};

TEST_F(ContractTest, a_list_of_extensions_that_becomes_a_circle_is_not_walked) {
  static ltc_plugin_api table;
  const auto plugin = Plugin::enter("circle", [](ltc_entry_args* args) {
    static Library library = Library::open(plugin_path("test"));
    if (!reinterpret_cast<ltc_plugin_entry_fn*>(library.find("ltc_plugin_entry"))(args)) return false;
    table = *args->api;
    table.ext = &first;
    args->api = &table;
    return true;
  });
  second.next = &first;
  EXPECT_TRUE(plugin->understands(LTC_EXTENSION_SYMBOLIC));
  EXPECT_FALSE(plugin->understands(LTC_EXTENSION_PRECISION));
}

// A test plugin with another list of extensions, which must outlive it.
std::shared_ptr<Plugin> enter_with(const ltc_extension* list) {
  static const ltc_extension* wanted;
  static ltc_plugin_api table;
  wanted = list;
  return Plugin::enter("lists", [](ltc_entry_args* args) {
    static Library library = Library::open(plugin_path("test"));
    if (!reinterpret_cast<ltc_plugin_entry_fn*>(library.find("ltc_plugin_entry"))(args)) return false;
    table = *args->api;
    table.ext = wanted;
    args->api = &table;
    return true;
  });
}

TEST_F(ContractTest, an_extension_may_be_required_where_the_host_has_it) {
  static constexpr ltc_extension known{sizeof(ltc_extension), LTC_EXTENSION_REQUIRED | LTC_EXTENSION_PRECISION, 1, nullptr};
  EXPECT_TRUE(enter_with(&known)->understands(LTC_EXTENSION_PRECISION));
  static constexpr ltc_extension newer{sizeof(ltc_extension), LTC_EXTENSION_PRECISION, 7, nullptr};
  EXPECT_TRUE(enter_with(&newer)->understands(LTC_EXTENSION_PRECISION)) << "who reads version 7 reads version 1";
  static constexpr ltc_extension older{sizeof(ltc_extension), LTC_EXTENSION_PRECISION, 0, nullptr};
  EXPECT_FALSE(enter_with(&older)->understands(LTC_EXTENSION_PRECISION)) << "there is no version 0";
}

TEST_F(ContractTest, collectives_are_whole_or_refused) {
  static const auto create = [](ltc_device*, const ltc_group_args*, ltc_group**) -> ltc_status* { return nullptr; };
  static const auto end = [](ltc_group*) {};
  static constexpr ltc_extension head{sizeof(ltc_collectives), LTC_EXTENSION_COLLECTIVE, 1, nullptr};
  static const ltc_collectives whole{head, create, end, end};
  EXPECT_TRUE(enter_with(&whole.head)->has_collectives());
  static const ltc_collectives lacking{head, create, nullptr, end};
  EXPECT_THAT([] { enter_with(&lacking.head); }, ::testing::ThrowsMessage<Error>(HasSubstr("lists collectives and lacks one")));
  static constexpr ltc_extension bare{sizeof(ltc_extension), LTC_EXTENSION_COLLECTIVE, 1, nullptr};
  EXPECT_THAT([] { enter_with(&bare); },
              ::testing::ThrowsMessage<Error>(HasSubstr("with struct_size " + std::to_string(sizeof bare))));
  EXPECT_FALSE(enter_with(nullptr)->has_collectives());
}

TEST_F(ContractTest, the_host_lists_what_it_reads) {
  const HostApi api("mine");
  EXPECT_TRUE(LTC_HAS(api.table(), ltc_host_api, is_awaited));
  std::vector<uint32_t> kinds;
  for (const ltc_extension* ext = api.table()->ext; ext; ext = ext->next) kinds.push_back(ext->kind);
  EXPECT_THAT(kinds, ::testing::UnorderedElementsAre(LTC_EXTENSION_PRECISION, LTC_EXTENSION_SYMBOLIC, LTC_EXTENSION_PROFILE,
                                                     LTC_EXTENSION_COLLECTIVE));
}

// ---- sizes

#if defined(__LP64__)
// Tail padding would look like a field of a later version.
TEST(Sizes, what_the_host_fills_ends_with_its_last_field) {
#define FIELD(type, field, offset)
#define LAST(type, field, size_to, size) EXPECT_TRUE(kAbiSize<type> == 0 || kAbiSize<type> == (size_to)) << #type;
#include "sdk/tests/layout_1_0.inc"
#undef FIELD
#undef LAST
}
#endif

// ---- LTC_PLUGIN_ONE_CALL_AT_A_TIME

ltc_plugin_api inner;
std::atomic<int> inside{0}, most_inside{0};

bool enter_flagged(ltc_entry_args* args, const char* name) {
  static std::map<std::string, Library> libraries;
  Library& library = libraries.try_emplace(name, Library::open(plugin_path(name))).first->second;
  static ltc_plugin_api table;
  if (!reinterpret_cast<ltc_plugin_entry_fn*>(library.find("ltc_plugin_entry"))(args)) return false;
  table = inner = *args->api;
  table.describe = [](ltc_plugin* plugin, ltc_plugin_info* info) {
    info->flags = LTC_PLUGIN_ONE_CALL_AT_A_TIME;
    return inner.describe(plugin, info);
  };
  table.buffer_create = [](ltc_device* device, const ltc_buffer_args* buffer_args, ltc_buffer** buffer) {
    most_inside = std::max(most_inside.load(), ++inside);
    std::this_thread::yield();
    --inside;
    return inner.buffer_create(device, buffer_args, buffer);
  };
  args->api = &table;
  return true;
}

TEST_F(ContractTest, a_plugin_without_locks_is_entered_by_one_call_at_a_time) {
  const auto plugin = Plugin::enter("unlocked", [](ltc_entry_args* args) { return enter_flagged(args, "test"); });
  const auto device = plugin->open_device(0);
  auto type = sized<ltc_type>();
  const int64_t size = 4;
  type.dtype = LTC_F32;
  type.rank = 1;
  type.sizes = &size;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 200; ++k) device->destroy_buffer(device->create_buffer(type));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(most_inside, 1);
}

TEST_F(ContractTest, a_plugin_without_locks_has_no_events) {
  const std::string message =
      message_of([] { Plugin::enter("unlocked", [](ltc_entry_args* args) { return enter_flagged(args, "test_async"); }); });
  EXPECT_THAT(message, HasSubstr("LTC_PLUGIN_ONE_CALL_AT_A_TIME does not go with event slots"));
}

// ---- what comes as bytes

TEST_F(ContractTest, names_and_messages_become_utf8) {
  Rig rig("test_bad_bytes");
  EXPECT_EQ(rig.device->plugin().describe().name, "caf\uFFFD");
  EXPECT_EQ(rig.device->info().name, "m\uFFFDmoire");
  CGraph graph = scaled_graph();
  ltc_executable* executable = rig.build(graph);
  ltc_buffer* y = nullptr;
  EXPECT_EQ(message_of([&] { (void)rig.run(executable, {}, {}, &y); }), "[test_bad_bytes] execute: ferm\uFFFD le lundi");
  rig.device->destroy_executable(executable);
}

TEST_F(ContractTest, a_long_message_is_cut) {
  const std::string text(100 << 20, 'x');
  const HostApi api("long");
  ltc_status* status = api.table()->status_create(api.table()->host, LTC_INTERNAL, LTC_NONE, text.data(), text.size());
  EXPECT_LT(status->message.size(), kLongestMessage + 100);
  EXPECT_THAT(message_of([&] { throw_status("long", "execute", status); }), EndsWith(" more bytes)"));
}

// The test plugin, but an executable is so many bytes.
size_t saved_bytes;
bool enter_saving(ltc_entry_args* args) {
  static ltc_plugin_api table;
  static Library library = Library::open(plugin_path("test"));
  if (!reinterpret_cast<ltc_plugin_entry_fn*>(library.find("ltc_plugin_entry"))(args)) return false;
  table = *args->api;
  table.executable_save = [](const ltc_executable*, const ltc_sink* sink) -> ltc_status* {
    const char bytes[] = "executable";
    EXPECT_EQ(sink->write(sink->context, bytes, saved_bytes), saved_bytes <= sizeof bytes);
    return nullptr;
  };
  args->api = &table;
  return true;
}

// The test plugin, but no executable can be loaded: with this code, from bytes that lie there.
ltc_code refusal;
const void* loaded_from;
bool enter_refusing(ltc_entry_args* args) {
  static ltc_plugin_api table;
  static Library library = Library::open(plugin_path("test"));
  static const ltc_host_api* host;
  host = args->host;
  if (!reinterpret_cast<ltc_plugin_entry_fn*>(library.find("ltc_plugin_entry"))(args)) return false;
  table = *args->api;
  table.executable_load = [](ltc_device*, const ltc_load_args* load, ltc_executable**) {
    loaded_from = load->data;
    return host->status_create(host->host, refusal, LTC_NONE, "not today", 9);
  };
  args->api = &table;
  return true;
}

TEST_F(ContractTest, an_executable_that_cannot_be_loaded_is_compiled_again_unless_the_device_is_lost) {
  const auto device = Plugin::enter("refusing", enter_refusing)->open_device(0);
  const std::string bytes = "an executable";
  for (size_t offset = 0; offset < 3; ++offset) {
    refusal = LTC_DATA_CORRUPT;
    EXPECT_EQ(device->load_executable(bytes.data() + offset, bytes.size() - offset), nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(loaded_from) % 64, 0u);
  }
  refusal = LTC_DEVICE_LOST;
  EXPECT_EQ(error_of([&] { device->load_executable(bytes.data(), bytes.size()); }).code(), Code::kDeviceLost);
}

TEST_F(ContractTest, an_executable_that_is_too_large_is_not_received) {
  const auto device = Plugin::enter("saving", enter_saving)->open_device(0);
  CGraph graph = scaled_graph();
  ltc_program* program = device->lower(graph.get());
  ltc_executable* executable = device->compile(program, 0);
  saved_bytes = 10;
  EXPECT_EQ(device->save_executable(executable), "executable");
  for (const size_t size : {size_t{1} << 31, SIZE_MAX}) {  // would fault if a byte behind the few were read
    saved_bytes = size;
    EXPECT_EQ(device->save_executable(executable), std::nullopt);
  }
  device->destroy_executable(executable);
  device->destroy_program(program);
}

// ---- the helpers

TEST(Utf8, keeps_what_is_valid_and_replaces_what_is_not) {
  for (const char* good : {"", "plain", "\u00e9", "\u20ac", "\U0001F600", "\uFFFD", "\U0010FFFF"})
    EXPECT_EQ(valid_utf8(good), good);
  EXPECT_EQ(valid_utf8("a\xff"
                       "b"),
            "a\uFFFDb");
  EXPECT_EQ(valid_utf8("\xc3"), "\uFFFD");                        // cut short
  EXPECT_EQ(valid_utf8("\xc0\xaf"), "\uFFFD\uFFFD");              // overlong
  EXPECT_EQ(valid_utf8("\xed\xa0\x80"), "\uFFFD\uFFFD\uFFFD");    // a surrogate
  EXPECT_EQ(valid_utf8("\xf4\x90\x80\x80").size(), 4u * 3);       // beyond the last character
  EXPECT_EQ(valid_utf8(std::string_view("a\0b", 3)).size(), 3u);  // NUL is a character
}

TEST(Utf8, cuts_between_characters) {
  std::string text(kLongestMessage - 1, 'x');
  text += "\u20ac and more";
  std::string expected(kLongestMessage - 1, 'x');
  EXPECT_EQ(message_text(text), expected.append("... (12 more bytes)"));
  EXPECT_THAT(message_text(std::string(kLongestMessage, 'x')), SizeIs(kLongestMessage));
}

TEST(Utf8, every_error_is_text) { EXPECT_STREQ(Error(Code::kInternal, "LTC_BACKEND=\xe9").what(), "LTC_BACKEND=\uFFFD"); }

TEST(FloatControl, is_put_back_without_the_flags) {
  const FloatControl before = FloatControl::current();
  {
    const KeepFloatControl keep;
    std::fesetround(FE_TOWARDZERO);
    EXPECT_NE(FloatControl::current(), before);
  }
  EXPECT_EQ(FloatControl::current(), before);
  std::feclearexcept(FE_ALL_EXCEPT);
  std::feraiseexcept(FE_DIVBYZERO);
  EXPECT_EQ(FloatControl::current(), before) << "a raised flag is no control";
  std::feclearexcept(FE_ALL_EXCEPT);
}

}  // namespace
}  // namespace ltc::host
