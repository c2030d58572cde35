// The helper for plugins in C++: errors, slots, the entry, checks, the cache.
#include <gtest/gtest.h>

#include "fake_host.h"
#include "ltc/plugin.hpp"

struct ltc_plugin {
  const ltc_host_api* host;
};
struct ltc_device {
  ltc_plugin* plugin;
  int value = 0;
  void set(int to, int& old) {
    if (to < 0) throw ltc::plugin::Failure(LTC_INVALID_ARGUMENT, "negative", 3);
    old = std::exchange(value, to);
  }
  void read(int* out) const { *out = value; }
};
struct ltc_buffer {
  ltc_device* device;
};

namespace ltc::plugin {
namespace {

struct Helper : testing::Test {
  FakeHost host;
  ltc_plugin plugin{&host.api};
  ltc_device device{&plugin};
};

void transfer(ltc_device& device, const ltc_transfer_args& args, ltc_event** done) {
  if (args.flags) throw Failure(LTC_UNSUPPORTED, "flags");
  device.value = 5;
  *done = reinterpret_cast<ltc_event*>(&device);
}

TEST_F(Helper, a_slot_has_the_type_of_the_table) {
  ltc_plugin_api api{};
  api.transfer = slot<transfer>;
  ltc_transfer_args args{};
  ltc_event* done = nullptr;
  EXPECT_EQ(api.transfer(&device, &args, &done), nullptr);
  EXPECT_EQ(device.value, 5);
  EXPECT_NE(done, nullptr);
  args.flags = 1;
  const ltc_status refused = taken(api.transfer(&device, &args, &done));
  EXPECT_EQ(refused.code, LTC_UNSUPPORTED);
  EXPECT_EQ(refused.node, LTC_NONE);
  EXPECT_EQ(refused.message, "flags");
}

TEST_F(Helper, methods_are_slots) {
  ltc_status* (*const set)(ltc_device*, int, int*) = slot<&ltc_device::set>;
  ltc_status* (*const read)(const ltc_device*, int*) = slot<&ltc_device::read>;
  int old = -1, now = -1;
  EXPECT_EQ(set(&device, 7, &old), nullptr);
  EXPECT_EQ(read(&device, &now), nullptr);
  EXPECT_EQ(old, 0);
  EXPECT_EQ(now, 7);
  const ltc_status refused = taken(set(&device, -1, &old));
  EXPECT_EQ(refused.code, LTC_INVALID_ARGUMENT);
  EXPECT_EQ(refused.node, 3u);
  EXPECT_EQ(old, 0);  // as it was
}

void end(ltc_buffer* buffer) { throw Failure(LTC_INTERNAL, buffer ? "cannot end" : ""); }

TEST_F(Helper, the_end_of_an_object_logs_its_error) {
  ltc_plugin_api api{};
  api.buffer_destroy = slot<end>;
  ltc_buffer buffer{&device};
  api.buffer_destroy(&buffer);
  EXPECT_EQ(host.errors, std::vector<std::string>{"cannot end"});
}

TEST_F(Helper, exceptions_have_codes) {
  const auto error_of = [&](auto body) { return taken(guarded(&host.api, body)); };
  EXPECT_EQ(error_of([] { throw std::bad_alloc(); }).code, LTC_RESOURCE_EXHAUSTED);
  EXPECT_EQ(error_of([] { throw std::runtime_error("text"); }).message, "text");
  EXPECT_EQ(error_of([] { throw 1; }).code, LTC_INTERNAL);
  EXPECT_EQ(error_of([] {}).code, 0u);
}

Error of_another_library() noexcept { return {LTC_DEVICE_LOST, LTC_NONE, "translated"}; }

TEST_F(Helper, a_library_has_a_translation_of_its_own) {
  ltc_transfer_args args{};
  args.flags = 1;
  EXPECT_EQ(taken(slot<transfer, of_another_library>(&device, &args, nullptr)).code, LTC_DEVICE_LOST);
}

TEST_F(Helper, the_entry_agrees_or_says_why_not) {
  static const ltc_plugin_api api{};
  ltc_entry_args args{};
  const auto offered = [&] { args.oldest = args.newest = {1, 0}; };
  offered();
  EXPECT_TRUE(enter(&args, {1, 0}, {1, 0}, api, [&] { return &plugin; }));
  EXPECT_EQ(args.plugin, &plugin);
  EXPECT_EQ(args.api, &api);
  offered();
  EXPECT_FALSE(enter(&args, {2, 0}, {2, 0}, api, [&] { return &plugin; }));
  offered();
  EXPECT_FALSE(enter(&args, {1, 0}, {1, 0}, api, []() -> ltc_plugin* { throw Failure(LTC_NOT_FOUND, "no driver"); }));
  EXPECT_STREQ(args.reason, "no driver");
  args.struct_size = LTC_SIZE_TO(ltc_entry_args, options);
  args.option_count = 1;
  EXPECT_THROW(refuse_options(args), Failure);
  args.option_count = 0;
  EXPECT_NO_THROW(refuse_options(args));
}

TEST_F(Helper, bytes_of_a_value) {
  const int64_t sizes[] = {3, 4}, huge[] = {INT64_MAX, 16}, negative[] = {-1, 1};
  const auto bytes = [](ltc_dtype dtype, const int64_t* of) { return bytes_of({LTC_SIZE_TO(ltc_type, sizes), dtype, 2, of}); };
  EXPECT_EQ(bytes(LTC_F32, sizes), 48u);
  EXPECT_EQ(bytes(LTC_C128, sizes), 192u);
  EXPECT_EQ(bytes(LTC_I4_X2, sizes), bytes(LTC_U8, sizes)) << "two elements per byte, and per unit of a size";
  EXPECT_THROW(bytes(LTC_U4_X2 + 1, sizes), Failure);
  EXPECT_THROW(bytes(0x10000, sizes), Failure);
  EXPECT_THROW(bytes(LTC_F32, negative), Failure);
  EXPECT_EQ(taken(guarded(&host.api, [&] { bytes(LTC_F32, huge); })).code, LTC_RESOURCE_EXHAUSTED);
}

TEST_F(Helper, transfers_are_checked) {
  ltc_buffer buffer{&device};
  float memory = 0;
  ltc_transfer_args good{};
  good.direction = LTC_TO_DEVICE;
  good.buffer = &buffer;
  good.from = &memory;
  good.size_bytes = 4;
  EXPECT_NO_THROW(check_transfer(good));
  const auto expect_refused = [&](auto change) {
    ltc_transfer_args args = good;
    change(args);
    EXPECT_THROW(check_transfer(args), Failure);
  };
  expect_refused([](auto& args) { args.direction = 4; });
  expect_refused([](auto& args) { args.flags = 1; });
  expect_refused([](auto& args) { args.buffer = nullptr; });
  expect_refused([](auto& args) { args.from = nullptr; });
  expect_refused([](auto& args) { args.direction = LTC_ON_DEVICE; });
  EXPECT_NO_THROW(check_range("target", 4, 4, 8));
  EXPECT_THROW(check_range("target", 5, 4, 8), Failure);
  EXPECT_THROW(check_range("target", 9, 0, 8), Failure);
  EXPECT_THROW(check_range("target", 4, UINT64_MAX, 8), Failure);
  ltc_execute_args run{};
  run.input_count = 1, run.scalar_count = 2, run.output_count = 3;
  EXPECT_NO_THROW(check_counts(run, 1, 2, 3));
  EXPECT_THROW(check_counts(run, 2, 2, 3), Failure);
  EXPECT_THROW(check_counts(run, 1, 1, 3), Failure);
  EXPECT_THROW(check_counts(run, 1, 2, 0), Failure);
  ltc_device_args device{};
  device.ordinal = 1;
  EXPECT_NO_THROW(check_ordinal(device, 2));
  EXPECT_THROW(check_ordinal(device, 1), Failure);
}

TEST_F(Helper, bytes_are_found_again) {
  int made = 0;
  const auto make = [&] { return ++made, std::string("a\0b", 3); };
  EXPECT_EQ(find_or_make(&host.api, "key", "about", make), std::string("a\0b", 3));
  EXPECT_EQ(find_or_make(&host.api, "key", "about", make), std::string("a\0b", 3));
  EXPECT_EQ(made, 1);
}

}  // namespace
}  // namespace ltc::plugin
