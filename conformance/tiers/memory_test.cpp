// The memory tier: buffers and copies.
#include <numeric>
#include <random>

#include "conformance/kit/fixture.h"
#include "conformance/kit/heap.h"
#include "core/host/sized.h"

namespace ltc::conformance {
namespace {

using Floats = std::vector<float>;

Array random_bytes(DType dtype, const Sizes& sizes) {
  Array array(dtype, sizes);
  std::mt19937 random(7);
  for (std::byte& byte : array.bytes) byte = static_cast<std::byte>(dtype == DType::kBool ? random() & 1 : random());
  return array;
}

// ---- dtypes

class MemoryDevice : public DeviceTest {};

TEST_F(MemoryDevice, device_open_lists_a_dtype) {
  EXPECT_TRUE(std::ranges::any_of(kAllDTypes, [&](DType dtype) { return device().supports(dtype); }))
      << "ltc_device_info::dtypes is " << device().info().dtypes << ": the host asks for buffers of listed dtypes only";
}

class MemoryDType : public DeviceTest, public ::testing::WithParamInterface<DType> {
 protected:
  DType dtype() const { return GetParam(); }
};

TEST_P(MemoryDType, a_listed_dtype_keeps_its_bits_and_others_are_refused) {
  const Sizes sizes{3, 5};
  if (!device().supports(dtype())) {
    Buffer buffer;
    EXPECT_EQ(code_text(device().create_buffer(abi_type(dtype(), sizes), buffer).code), "UNSUPPORTED")
        << "device_info does not list " << dtype_name(dtype());
    return;
  }
  const Array array = random_bytes(dtype(), sizes);
  const Buffer buffer = device().upload(array);
  EXPECT_EQ(device().download(buffer, dtype(), sizes).bytes, array.bytes) << "what was written comes back bit by bit";
}

TEST_P(MemoryDType, offsets_count_bytes) {
  if (!device().supports(dtype())) LTC_UNSUPPORTED_BY_PLUGIN("the device has no ", dtype_name(dtype()));
  if (device().supports(DType::kF32)) LTC_NEEDS_PARTS();
  const auto size = static_cast<uint64_t>(dtype_size_bytes(dtype()));
  Array expected = random_bytes(dtype(), {5});
  const Buffer buffer = device().upload(expected);
  std::vector<std::byte> two(2 * size, std::byte{1});
  Event done;
  ASSERT_OK(device().transfer(to_device(buffer, two.data(), two.size(), size), done));
  ASSERT_OK(device().finish(done));
  std::copy(two.begin(), two.end(), expected.bytes.begin() + static_cast<ptrdiff_t>(size));
  EXPECT_EQ(device().download(buffer, dtype(), {5}).bytes, expected.bytes) << "elements 1 and 2 of 5 were written";
}

INSTANTIATE_TEST_SUITE_P(, MemoryDType, ::testing::ValuesIn(kAllDTypes),
                         [](const auto& info) { return std::string(dtype_name(info.param)); });

class MemoryPacked : public DeviceTest, public ::testing::WithParamInterface<ltc_dtype> {};

// Two elements per byte: sizes and offsets count bytes.
TEST_P(MemoryPacked, a_listed_dtype_keeps_its_bits_and_others_are_refused) {
  const int64_t sizes[] = {3, 5};
  auto type = host::sized<ltc_type>();
  type.dtype = GetParam();
  type.rank = 2;
  type.sizes = sizes;
  Buffer buffer;
  const Failure made = device().create_buffer(type, buffer);
  if (!(device().info().dtypes >> GetParam() & 1)) {
    EXPECT_EQ(code_text(made.code), "UNSUPPORTED") << "device_info does not list dtype " << GetParam();
    return;
  }
  ASSERT_OK(made);
  const Array there = random_bytes(DType::kU8, {3, 5});
  Array back(DType::kU8, {3, 5});
  Event done;
  ASSERT_OK(device().transfer(to_device(buffer, there.bytes.data(), there.bytes.size()), done));
  ASSERT_OK(device().finish(done));
  ASSERT_OK(device().transfer(from_device(buffer, back.bytes.data(), back.bytes.size()), done));
  ASSERT_OK(device().finish(done));
  EXPECT_EQ(back.bytes, there.bytes);
}

constexpr ltc_dtype kPacked[] = {LTC_F4_E2M1FN_X2, LTC_I4_X2, LTC_U4_X2};
static_assert(std::size(kAllDTypes) + std::size(kPacked) == LTC_U4_X2, "each dtype of the header is in one of the lists");
INSTANTIATE_TEST_SUITE_P(, MemoryPacked, ::testing::ValuesIn(kPacked),
                         [](const auto& info) { return "dtype_" + std::to_string(info.param); });

// ---- sizes

class MemorySizes : public MemoryTest, public ::testing::WithParamInterface<Sizes> {};

TEST_P(MemorySizes, a_buffer_keeps_its_bytes) {
  const Array array = random_bytes(DType::kF32, GetParam());
  const Buffer buffer = device().upload(array);
  EXPECT_EQ(device().download(buffer, DType::kF32, GetParam()).bytes, array.bytes);
}

INSTANTIATE_TEST_SUITE_P(, MemorySizes,
                         ::testing::Values(Sizes{}, Sizes{1}, Sizes{0}, Sizes{3, 0, 2}, Sizes{1, 1, 1}, Sizes{7}, Sizes{2, 3, 4},
                                           Sizes{1, 2, 1, 2, 1, 2, 1, 2}, Sizes{1023, 1025}, Sizes{4, 1 << 20}),
                         [](const auto& info) {
                           std::string name = "rank" + std::to_string(info.param.size());
                           for (const int64_t size : info.param) name += "_" + std::to_string(size);
                           return name;
                         });

// ---- copies

class Memory : public MemoryTest {
 protected:
  Floats read(const Buffer& buffer, int64_t count) { return device().download(buffer, DType::kF32, {count}).values<float>(); }
  void copy(const ltc_transfer_args& args) {
    Event done;
    const Failure failure = device().transfer(args, done);
    ASSERT_OK(failure) << failure;
    const Failure late = device().finish(done);
    ASSERT_OK(late) << late;
  }
  static ltc_transfer_args on_device(const Buffer& to, uint64_t offset, const Buffer& from, uint64_t from_offset, uint64_t size) {
    ltc_transfer_args args = to_device(to, nullptr, size, offset);
    args.direction = LTC_ON_DEVICE;
    args.source = from.get();
    args.source_offset_bytes = from_offset;
    return args;
  }
  void expect_outside(const ltc_transfer_args& args) {
    Event done;
    EXPECT_EQ(code_text(device().transfer(args, done).code), "INVALID_ARGUMENT")
        << "a copy of " << args.size_bytes << " bytes at offset " << args.offset_bytes << " (source " << args.source_offset_bytes
        << ") leaves a buffer of 16 bytes";
  }

  Buffer four() { return device().upload(Array::floats({1, 2, 3, 4})); }
};

TEST_F(Memory, a_part_in_the_middle_is_written) {
  LTC_NEEDS_PARTS();
  const Buffer buffer = four();
  const float data[] = {8, 9};
  copy(to_device(buffer, data, 8, 4));
  EXPECT_EQ(read(buffer, 4), (Floats{1, 8, 9, 4}));
}

TEST_F(Memory, a_part_at_the_end_is_written) {
  LTC_NEEDS_PARTS();
  const Buffer buffer = four();
  const float data = 9;
  copy(to_device(buffer, &data, 4, 12));
  EXPECT_EQ(read(buffer, 4), (Floats{1, 2, 3, 9}));
}

TEST_F(Memory, a_part_is_read_and_nothing_beyond) {
  LTC_NEEDS_PARTS();
  const Buffer buffer = four();
  float data[4] = {-1, -1, -1, -1};
  copy(from_device(buffer, data + 1, 8, 8));
  EXPECT_EQ(Floats(data, data + 4), (Floats{-1, 3, 4, -1}));
}

TEST_F(Memory, parts_need_no_alignment) {
  LTC_NEEDS_PARTS();
  const Buffer buffer = four();
  unsigned char one = 0;
  float expected = 2;
  copy(from_device(buffer, &one, 1, 7));
  EXPECT_EQ(one, reinterpret_cast<const unsigned char*>(&expected)[3]) << "byte 7 of 16";
}

TEST_F(Memory, a_copy_of_no_bytes_succeeds) {
  const Buffer buffer = four();
  copy(to_device(buffer, nullptr, 0, 0));
  copy(from_device(buffer, nullptr, 0, 0));
  EXPECT_EQ(read(buffer, 4), (Floats{1, 2, 3, 4}));
}

TEST_F(Memory, a_copy_of_no_bytes_at_the_end_succeeds) {
  const Buffer buffer = four();
  copy(to_device(buffer, nullptr, 0, 16));
}

TEST_F(Memory, a_later_copy_wins) {
  const Buffer buffer = four();
  for (float value = 0; value < 50; ++value) {
    const float data[4] = {value, value, value, value};
    copy(to_device(buffer, data, 16));
  }
  EXPECT_EQ(read(buffer, 4), (Floats{49, 49, 49, 49}));
}

TEST_F(Memory, buffers_do_not_overlap) {
  std::vector<Buffer> buffers;
  for (int i = 0; i < 64; ++i) buffers.push_back(device().upload(Array::floats({float(i), float(i + 1), float(i + 2)})));
  for (int i = 0; i < 64; ++i) EXPECT_EQ(read(buffers[size_t(i)], 3), (Floats{float(i), float(i + 1), float(i + 2)}));
}

TEST_F(Memory, the_host_memory_is_copied_and_not_kept) {
  Floats data{1, 2, 3, 4};
  const Buffer buffer = device().buffer(DType::kF32, {4});
  copy(to_device(buffer, data.data(), 16));
  data.assign(4, -1);
  EXPECT_EQ(read(buffer, 4), (Floats{1, 2, 3, 4})) << "host memory may change once the event has signalled";
}

TEST_F(Memory, a_buffer_copies_to_another) {
  const Buffer from = four(), to = device().upload(Array::floats({0, 0, 0, 0}));
  copy(on_device(to, 0, from, 0, 16));
  EXPECT_EQ(read(to, 4), (Floats{1, 2, 3, 4}));
  EXPECT_EQ(read(from, 4), (Floats{1, 2, 3, 4}));
}

TEST_F(Memory, a_part_of_a_buffer_copies_to_a_part_of_another) {
  LTC_NEEDS_PARTS();
  const Buffer from = four(), to = device().upload(Array::floats({0, 0, 0, 0}));
  copy(on_device(to, 4, from, 8, 8));
  EXPECT_EQ(read(to, 4), (Floats{0, 3, 4, 0}));
}

TEST_F(Memory, buffers_of_several_sizes_copy) {
  LTC_NEEDS_PARTS();
  const Buffer from = four(), to = device().upload(Array::floats({0, 0}));
  copy(on_device(to, 0, from, 8, 8));
  EXPECT_EQ(read(to, 2), (Floats{3, 4}));
}

TEST_F(Memory, a_copy_on_the_device_of_no_bytes_succeeds) {
  const Buffer from = four(), to = four();
  copy(on_device(to, 16, from, 16, 0));
  EXPECT_EQ(read(to, 4), (Floats{1, 2, 3, 4}));
}

TEST_F(Memory, a_copy_on_the_device_sees_what_was_written_before) {
  const Buffer from = four(), to = four();
  const float data[] = {9, 9, 9, 9};
  Event written, copied;
  ASSERT_OK(device().transfer(to_device(from, data, 16), written));
  ASSERT_OK(device().transfer(on_device(to, 0, from, 0, 16), copied));
  EXPECT_OK(device().finish(copied));
  EXPECT_OK(device().finish(written));
  EXPECT_EQ(read(to, 4), (Floats{9, 9, 9, 9})) << "what is submitted first runs first";
}

// ---- ranges outside a buffer

struct Range {
  const char* name;
  uint64_t offset, size;
};
constexpr Range kOutside[] = {{"one_byte_too_many", 0, 17},
                              {"an_offset_too_large", 4, 16},
                              {"an_offset_beyond_the_end", 17, 1},
                              {"an_empty_range_beyond_the_end", 17, 0},
                              {"a_huge_size", 0, UINT64_MAX},
                              {"a_huge_offset", UINT64_MAX, 1},
                              {"a_sum_that_overflows", 8, UINT64_MAX - 7}};

class MemoryOutside : public Memory, public ::testing::WithParamInterface<Range> {
 protected:
  Floats data_ = Floats(16, 5);
};

TEST_P(MemoryOutside, is_refused_for_writing) {
  const Buffer buffer = four();
  expect_outside(to_device(buffer, data_.data(), GetParam().size, GetParam().offset));
  EXPECT_EQ(read(buffer, 4), (Floats{1, 2, 3, 4})) << "a refused copy copies nothing";
}

TEST_P(MemoryOutside, is_refused_for_reading) {
  const Buffer buffer = four();
  expect_outside(from_device(buffer, data_.data(), GetParam().size, GetParam().offset));
  EXPECT_EQ(data_, Floats(16, 5)) << "a refused copy copies nothing";
}

TEST_P(MemoryOutside, is_refused_of_a_source) {
  const Buffer small = four(), large = device().upload(Array(DType::kF32, {64}));
  expect_outside(on_device(large, 0, small, GetParam().offset, GetParam().size));
}

TEST_P(MemoryOutside, is_refused_of_a_destination) {
  const Buffer small = four(), large = device().upload(Array(DType::kF32, {64}));
  expect_outside(on_device(small, GetParam().offset, large, 0, GetParam().size));
  EXPECT_EQ(read(small, 4), (Floats{1, 2, 3, 4}));
}

INSTANTIATE_TEST_SUITE_P(, MemoryOutside, ::testing::ValuesIn(kOutside), [](const auto& info) { return info.param.name; });

// ---- lifetimes

TEST_F(Memory, a_buffer_may_be_destroyed_while_a_copy_to_it_is_submitted) {
  const Floats data(1 << 18, 3);
  for (int i = 0; i < 20; ++i) {
    Buffer buffer = device().buffer(DType::kF32, {1 << 18});
    Event done;
    ASSERT_OK(device().transfer(to_device(buffer, data.data(), data.size() * 4), done));
    buffer.reset();
    EXPECT_OK(device().finish(done));
  }
}

TEST_F(Memory, a_buffer_may_be_destroyed_while_a_copy_from_it_is_submitted) {
  for (int i = 0; i < 20; ++i) {
    Buffer buffer = device().upload(Array::of(DType::kF32, {1 << 16}, Floats(1 << 16, float(i))));
    Floats data(1 << 16);
    Event done;
    ASSERT_OK(device().transfer(from_device(buffer, data.data(), data.size() * 4), done));
    buffer.reset();
    ASSERT_OK(device().finish(done));
    EXPECT_EQ(data, Floats(1 << 16, float(i))) << "buffer_destroy takes effect in queue order";
  }
}

TEST_F(Memory, many_buffers_live_at_once) {
  std::vector<Buffer> buffers;
  for (int i = 0; i < 2000; ++i) buffers.push_back(device().buffer(DType::kF32, {4}));
  std::shuffle(buffers.begin(), buffers.end(), std::mt19937(3));
}

TEST_F(Memory, a_buffer_leaves_nothing_behind) {
  const auto growth = growth_per_time(2000, [&] { (void)four(); });
  if (!growth) LTC_NOT_APPLICABLE("the allocator does not count");
  EXPECT_LT(*growth, kLeakBytes) << "bytes of host memory lost with each buffer that was made, written and destroyed";
}

TEST_F(Memory, a_device_leaves_nothing_behind) {
  LTC_NEEDS_SECOND_OPEN();
  const auto growth = growth_per_time(40, [&] { Device second(instance()); });
  if (!growth) LTC_NOT_APPLICABLE("the allocator does not count");
  EXPECT_LT(*growth, kLeakBytes) << "bytes of host memory lost with each device that was opened and closed";
}

TEST_F(Memory, a_buffer_too_large_for_the_device_is_refused) {
  Buffer buffer;
  EXPECT_EQ(code_text(device().create_buffer(abi_type(DType::kF32, {int64_t{1} << 55}), buffer).code), "RESOURCE_EXHAUSTED")
      << "2^57 bytes";
  EXPECT_EQ(read(four(), 4), (Floats{1, 2, 3, 4})) << "the device goes on";
}

TEST_F(Memory, sizes_whose_product_overflows_are_refused) {
  for (const Sizes& sizes :
       {Sizes{int64_t{1} << 40, int64_t{1} << 40}, Sizes{int64_t{1} << 62, 4}, Sizes{int64_t{1} << 32, int64_t{1} << 31}}) {
    Buffer buffer;
    const Failure failure = device().create_buffer(abi_type(DType::kF32, sizes), buffer);
    EXPECT_TRUE(failure.code == LTC_RESOURCE_EXHAUSTED || failure.code == LTC_INVALID_ARGUMENT)
        << "sizes " << text(sizes) << ", whose product does not fit 64 bits, gave " << failure;
  }
}

TEST_F(Memory, two_opens_of_a_device_are_independent) {
  LTC_NEEDS_SECOND_OPEN();
  Device second(instance());
  const Buffer one = four();
  const Buffer two = second.upload(Array::floats({5, 6, 7, 8}));
  EXPECT_EQ(read(one, 4), (Floats{1, 2, 3, 4}));
  EXPECT_EQ(second.download(two, DType::kF32, {4}).values<float>(), (Floats{5, 6, 7, 8}));
}

TEST_F(Memory, a_device_opens_again_after_it_was_closed) {
  LTC_NEEDS_SECOND_OPEN();
  for (int i = 0; i < 20; ++i) {
    Device second(instance());
    const Buffer buffer = second.upload(Array::floats({float(i)}));
    EXPECT_EQ(second.download(buffer, DType::kF32, {1}).values<float>(), (Floats{float(i)}));
  }
}

}  // namespace
}  // namespace ltc::conformance
