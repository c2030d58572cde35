// The abi tier: what the contract says of all calls: sizes of structs, extensions, unknown values, options, strings.
#include "conformance/tiers/abi_fixture.h"

namespace ltc::conformance {
namespace {

class Abi : public MemoryTest {
 protected:
  void expect(const char* slot, How how, const Failure& failure) {
    switch (how) {
      case How::kLarger:
        EXPECT_OK(failure) << slot << " refused a struct that is larger than it knows (" << failure
                           << "); the contract: within a major version old and new work together";
        break;
      case How::kUnknownExtension:
      case How::kMarkedExtension:
        EXPECT_OK(failure) << slot << " refused an extension of a kind that it does not know (" << failure
                           << "); the contract: a reader skips those, and bit 31 counts in the plugin's list only";
    }
  }

  void open(How how) {
    auto args = args_for<ltc_device_args>(how);
    auto info = host::sized<ltc_device_info>();
    ltc_device* opened = nullptr;
    const auto failure =
        Instance::asked("device_open", [&] { return api().device_open(instance().get(), args.get(), &info, &opened); });
    if (opened) api().device_close(opened);
    expect("device_open", how, failure);
  }
  void create(How how) {
    auto args = args_for<ltc_buffer_args>(how);
    const Sizes sizes{4};
    const ltc_type type = abi_type(DType::kF32, sizes);
    args->type = &type;
    ltc_buffer* made = nullptr;
    const auto failure = Instance::asked("buffer_create", [&] { return api().buffer_create(device().get(), args.get(), &made); });
    if (made) api().buffer_destroy(made);
    expect("buffer_create", how, failure);
  }
  void transfer(How how) {
    const Buffer buffer = device().upload(Array::floats({1, 2, 3, 4}));
    const float data[4] = {5, 6, 7, 8};
    auto args = args_for<ltc_transfer_args>(how);
    args->direction = LTC_TO_DEVICE;
    args->buffer = buffer.get();
    args->from = data;
    args->size_bytes = sizeof data;
    Event done;
    const Failure failure = device().transfer(*args.get(), done);
    if (!failure) {
      EXPECT_OK(device().finish(done));
    }
    expect("transfer", how, failure);
  }
};

TEST_F(Abi, device_open_reads_only_the_fields_it_knows) {
  LTC_NEEDS_SECOND_OPEN();
  open(How::kLarger);
}
TEST_F(Abi, buffer_create_reads_only_the_fields_it_knows) { create(How::kLarger); }
TEST_F(Abi, transfer_reads_only_the_fields_it_knows) { transfer(How::kLarger); }
TEST_F(Abi, device_open_skips_an_unknown_extension) {
  LTC_NEEDS_SECOND_OPEN();
  open(How::kUnknownExtension);
}
TEST_F(Abi, buffer_create_skips_an_unknown_extension) { create(How::kUnknownExtension); }
TEST_F(Abi, transfer_skips_an_unknown_extension) { transfer(How::kUnknownExtension); }
TEST_F(Abi, device_open_skips_an_unknown_extension_with_bit_31) {
  LTC_NEEDS_SECOND_OPEN();
  open(How::kMarkedExtension);
}
TEST_F(Abi, buffer_create_skips_an_unknown_extension_with_bit_31) { create(How::kMarkedExtension); }
TEST_F(Abi, transfer_skips_an_unknown_extension_with_bit_31) { transfer(How::kMarkedExtension); }

TEST_F(Abi, buffer_create_reads_only_the_fields_of_a_type_it_knows) {
  Guarded<ltc_type> type;
  const int64_t size = 4;
  type->dtype = LTC_F32;
  type->rank = 1;
  type->sizes = &size;
  type.grow();
  Buffer buffer;
  EXPECT_OK(device().create_buffer(*type.get(), buffer));
}

// ---- the device

TEST_F(Abi, device_open_refuses_an_ordinal_beyond_the_last) {
  for (const uint32_t ordinal : {instance().describe().device_count, UINT32_MAX}) {
    auto args = host::sized<ltc_device_args>();
    args.ordinal = ordinal;
    auto info = host::sized<ltc_device_info>();
    ltc_device* opened = nullptr;
    const auto failure =
        Instance::asked("device_open", [&] { return api().device_open(instance().get(), &args, &info, &opened); });
    EXPECT_EQ(code_text(failure.code), "NOT_FOUND") << "for ordinal " << ordinal;
    EXPECT_EQ(opened, nullptr) << "after an error every out parameter is unchanged";
    EXPECT_EQ(info.dtypes, 0u) << "after an error every out parameter is unchanged";
  }
}

TEST_F(Abi, device_open_writes_nothing_beyond_struct_size) {
  LTC_NEEDS_SECOND_OPEN();
  Guarded<ltc_device_info> info;
  const auto args = host::sized<ltc_device_args>();
  ltc_device* opened = nullptr;
  EXPECT_OK(Instance::asked("device_open", [&] { return api().device_open(instance().get(), &args, info.get(), &opened); }));
  info.expect_untouched("device_open wrote behind the ltc_device_info");
  ASSERT_NE(opened, nullptr);
  api().device_close(opened);
}

TEST_F(Abi, device_info_keeps_struct_size) { EXPECT_EQ(device().info().struct_size, host::kAbiSize<ltc_device_info>); }
TEST_F(Abi, device_info_has_a_name) { EXPECT_NE(text(device().info().name), ""); }
TEST_F(Abi, device_info_has_a_fingerprint) {
  if (!api().executable_save) LTC_NOT_APPLICABLE("the plugin saves no executables");
  EXPECT_NE(text(device().info().fingerprint), "") << "saved executables depend on it";
}

TEST_F(Abi, device_info_lists_dtypes_of_this_version) {
  const uint64_t known = ((uint64_t{1} << (LTC_U4_X2 + 1)) - 1) & ~uint64_t{1};
  EXPECT_EQ(device().info().dtypes & ~known, 0u) << "bits that are no dtype: there are 1 to " << LTC_U4_X2;
  EXPECT_NE(device().info().dtypes, 0u) << "a device without dtypes holds nothing";
}

TEST_F(Abi, device_info_sets_known_flags_only) {
  const uint64_t known = LTC_DEVICE_PEER_COPY | LTC_DEVICE_QUICK_COMPILE;
  EXPECT_EQ(device().info().flags & ~known, 0u);
}

TEST_F(Abi, device_info_is_the_same_for_a_second_open) {
  LTC_NEEDS_SECOND_OPEN();
  Device second(instance());
  EXPECT_EQ(text(second.info().name), text(device().info().name));
  EXPECT_EQ(text(second.info().fingerprint), text(device().info().fingerprint));
  EXPECT_EQ(second.info().dtypes, device().info().dtypes);
}

TEST_F(Abi, every_ordinal_opens) {
  for (uint32_t i = 1; i < instance().describe().device_count; ++i) EXPECT_NO_THROW(Device(instance(), i)) << "device " << i;
}

// ---- unknown values in calls of memory

TEST_F(Abi, transfer_refuses_an_unknown_direction) {
  const Buffer buffer = device().upload(Array::floats({1, 2}));
  float data[2] = {};
  for (const ltc_direction direction : {0u, 4u, 999u}) {
    auto args = to_device(buffer, data, sizeof data);
    args.to = data;
    args.direction = direction;
    Event done;
    EXPECT_EQ(code_text(device().transfer(args, done).code), "UNSUPPORTED") << "direction " << direction;
  }
}

TEST_F(Abi, transfer_refuses_an_unknown_flag) {
  const Buffer buffer = device().upload(Array::floats({1, 2}));
  const float data[2] = {5, 6};
  for (const uint32_t flags : {1u, 2u, 1u << 7, 1u << 31}) {
    auto args = to_device(buffer, data, sizeof data);
    args.flags = flags;
    Event done;
    EXPECT_EQ(code_text(device().transfer(args, done).code), "UNSUPPORTED") << "flags " << flags;
  }
  EXPECT_EQ(device().download(buffer, DType::kF32, {2}).values<float>(), (std::vector<float>{1, 2}))
      << "a refused copy copies nothing";
}

TEST_F(Abi, buffer_create_refuses_a_dtype_that_does_not_exist) {
  for (const ltc_dtype dtype : {0u, 25u, 63u, 64u, 1000u, UINT32_MAX}) {
    const Sizes sizes{4};
    ltc_type type = abi_type(DType::kF32, sizes);
    type.dtype = dtype;
    Buffer buffer;
    EXPECT_EQ(code_text(device().create_buffer(type, buffer).code), "UNSUPPORTED") << "dtype " << dtype;
  }
}

// ---- memory_stats

class AbiStats : public MemoryTest {
 protected:
  void SetUp() override {
    MemoryTest::SetUp();
    if (!IsSkipped() && !api().memory_stats) LTC_NOT_APPLICABLE("the plugin has no memory_stats");
  }
};

TEST_F(AbiStats, memory_stats_writes_nothing_beyond_struct_size) {
  Guarded<ltc_memory_stats> stats;
  EXPECT_OK(Instance::asked("memory_stats", [&] { return api().memory_stats(device().get(), stats.get()); }));
  stats.expect_untouched("memory_stats wrote behind the ltc_memory_stats");
}

TEST_F(AbiStats, memory_stats_counts_a_buffer_while_it_lives) {
  const uint64_t before = device().memory_stats().in_use_bytes;
  if (before == UINT64_MAX) LTC_NOT_APPLICABLE("the plugin does not know its memory in use");
  Buffer buffer = device().upload(Array(DType::kF32, {1 << 20}));
  EXPECT_GE(device().memory_stats().in_use_bytes, before + (4u << 20)) << "a buffer of 4 MiB lives";
  (void)device().download(buffer, DType::kF32, {1 << 20});
  buffer.reset();
  (void)device().upload(Array::floats({1}));  // the queue has passed the destroy
  EXPECT_LT(device().memory_stats().in_use_bytes, before + (4u << 20)) << "the buffer of 4 MiB was destroyed";
}

TEST_F(AbiStats, memory_stats_peak_is_not_below_use) {
  const Buffer buffer = device().upload(Array(DType::kF32, {1 << 20}));
  const ltc_memory_stats stats = device().memory_stats();
  if (stats.peak_bytes == UINT64_MAX || stats.in_use_bytes == UINT64_MAX) LTC_NOT_APPLICABLE("the plugin does not know its peak");
  EXPECT_GE(stats.peak_bytes, stats.in_use_bytes);
}

}  // namespace
}  // namespace ltc::conformance
