// The memory tier: host memory of copies, arguments that are borrowed, and handles.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "conformance/kit/fixture.h"
#include "core/host/sized.h"

namespace ltc::conformance {
namespace {

using Floats = std::vector<float>;

// Two pages: the first may be used as its protection says, the second not at all.
class GuardedPage {
 public:
  GuardedPage()
      : size_(static_cast<size_t>(::sysconf(_SC_PAGESIZE))),
        begin_(static_cast<char*>(::mmap(nullptr, 2 * size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    ::mprotect(begin_ + size_, size_, PROT_NONE);
  }
  ~GuardedPage() { ::munmap(begin_, 2 * size_); }
  GuardedPage(const GuardedPage&) = delete;
  GuardedPage& operator=(const GuardedPage&) = delete;

  char* last(size_t bytes) { return begin_ + size_ - bytes; }
  void forbid_writing() { ::mprotect(begin_, size_, PROT_READ); }

 private:
  size_t size_;
  char* begin_;
};

class MemoryHost : public MemoryTest {
 protected:
  Buffer four() { return device().upload(Array::floats({1, 2, 3, 4})); }
  Floats read(const Buffer& buffer) { return device().download(buffer, DType::kF32, {4}).values<float>(); }
  void copy(const ltc_transfer_args& args) {
    Event done;
    ASSERT_OK(device().transfer(args, done));
    ASSERT_OK(device().finish(done));
  }
};

TEST_F(MemoryHost, a_copy_to_the_device_reads_no_byte_beyond) {
  GuardedPage page;
  const Floats data{5, 6, 7, 8};
  std::memcpy(page.last(16), data.data(), 16);
  const Buffer buffer = four();
  copy(to_device(buffer, page.last(16), 16));
  EXPECT_EQ(read(buffer), data);
}

TEST_F(MemoryHost, a_copy_to_the_device_only_reads_host_memory) {
  GuardedPage page;
  const Floats data{5, 6, 7, 8};
  std::memcpy(page.last(16), data.data(), 16);
  page.forbid_writing();
  const Buffer buffer = four();
  copy(to_device(buffer, page.last(16), 16));
  EXPECT_EQ(read(buffer), data);
}

TEST_F(MemoryHost, a_copy_from_the_device_writes_no_byte_beyond) {
  GuardedPage page;
  const Buffer buffer = four();
  copy(from_device(buffer, page.last(16), 16));
  Floats data(4);
  std::memcpy(data.data(), page.last(16), 16);
  EXPECT_EQ(data, (Floats{1, 2, 3, 4}));
}

TEST_F(MemoryHost, a_copy_from_the_device_writes_no_byte_before) {
  const Buffer buffer = four();
  std::vector<unsigned char> data(17 + 16, 0xcc);
  copy(from_device(buffer, data.data() + 17, 16));
  EXPECT_TRUE(std::all_of(data.begin(), data.begin() + 17, [](unsigned char byte) { return byte == 0xcc; }));
}

TEST_F(MemoryHost, host_memory_that_is_read_needs_no_alignment) {
  for (size_t shift = 1; shift < 4; ++shift) {
    std::vector<char> data(16 + shift);
    const Floats values{5, 6, 7, 8};
    std::memcpy(data.data() + shift, values.data(), 16);
    const Buffer buffer = four();
    copy(to_device(buffer, data.data() + shift, 16));
    EXPECT_EQ(read(buffer), values) << "host memory " << shift << " bytes behind a multiple of 16";
  }
}

TEST_F(MemoryHost, host_memory_that_is_written_needs_no_alignment) {
  const Buffer buffer = four();
  for (size_t shift = 1; shift < 4; ++shift) {
    std::vector<char> data(16 + shift);
    copy(from_device(buffer, data.data() + shift, 16));
    Floats values(4);
    std::memcpy(values.data(), data.data() + shift, 16);
    EXPECT_EQ(values, (Floats{1, 2, 3, 4})) << "host memory " << shift << " bytes behind a multiple of 16";
  }
}

TEST_F(MemoryHost, arguments_of_a_copy_may_change_when_transfer_returns) {
  const Buffer buffer = four(), other = four();
  const Floats data{5, 6, 7, 8};
  ltc_transfer_args args = to_device(buffer, data.data(), 16);
  Event done;
  ASSERT_OK(device().transfer(args, done));
  args.buffer = other.get();
  args.from = nullptr;
  args.size_bytes = UINT64_MAX;
  EXPECT_OK(device().finish(done));
  EXPECT_EQ(read(buffer), data) << "what a function is given is borrowed until it returns";
  EXPECT_EQ(read(other), (Floats{1, 2, 3, 4}));
}

TEST_F(MemoryHost, the_type_may_change_when_buffer_create_returns) {
  Sizes sizes{4};
  ltc_type type = abi_type(DType::kF32, sizes);
  Buffer buffer;
  ASSERT_OK(device().create_buffer(type, buffer));
  sizes[0] = 1'000'000;
  type.rank = 77;
  const Floats data{5, 6, 7, 8};
  copy(to_device(buffer, data.data(), 16));
  EXPECT_EQ(read(buffer), data);
}

TEST_F(MemoryHost, arguments_of_a_copy_are_only_read) {
  const Buffer buffer = four();
  const Floats data{5, 6, 7, 8};
  const ltc_transfer_args args = to_device(buffer, data.data(), 16);
  ltc_transfer_args before;
  std::memcpy(&before, &args, sizeof args);
  copy(args);
  EXPECT_EQ(std::memcmp(&before, &args, sizeof args), 0);
}

// ---- handles

TEST_F(MemoryHost, each_buffer_is_handed_out_once) {
  std::vector<Buffer> buffers;
  std::set<const void*> handles;
  for (int i = 0; i < 100; ++i) {
    buffers.push_back(device().buffer(DType::kF32, {4}));
    EXPECT_TRUE(handles.insert(buffers.back().get()).second) << "the handle of a buffer that lives was handed out again";
  }
}

TEST_F(MemoryHost, each_buffer_without_elements_is_handed_out_once) {
  const Buffer first = device().buffer(DType::kF32, {0}), second = device().buffer(DType::kF32, {0});
  EXPECT_NE(first.get(), second.get()) << "a second owner would destroy it a second time";
}

TEST_F(MemoryHost, each_device_is_handed_out_once) {
  LTC_NEEDS_SECOND_OPEN();
  const Device second(instance()), third(instance());
  EXPECT_NE(second.get(), device().get());
  EXPECT_NE(second.get(), third.get());
}

TEST_F(MemoryHost, a_buffer_has_any_rank) {
  for (const size_t rank : {size_t{5}, size_t{16}, size_t{64}}) {
    Sizes sizes(rank, 1);
    sizes.back() = 4;
    const Array array = Array::floats(sizes, {5, 6, 7, 8});
    const Buffer buffer = device().upload(array);
    EXPECT_EQ(device().download(buffer, DType::kF32, sizes).bytes, array.bytes) << "rank " << rank;
  }
}

// ---- copies on the device

class MemoryCopies : public MemoryHost {
 protected:
  static ltc_transfer_args on_device(const Buffer& to, const Buffer& from, uint64_t size) {
    ltc_transfer_args args = to_device(to, nullptr, size);
    args.direction = LTC_ON_DEVICE;
    args.source = from.get();
    return args;
  }
};

TEST_F(MemoryCopies, the_source_may_be_destroyed_when_transfer_returns) {
  const Buffer to = device().upload(Array::floats({0, 0, 0, 0}));
  Buffer from = four();
  Event done;
  ASSERT_OK(device().transfer(on_device(to, from, 16), done));
  from.reset();
  std::vector<Buffer> others;  // where the source was
  for (int i = 0; i < 20; ++i) others.push_back(device().upload(Array::floats({9, 9, 9, 9})));
  EXPECT_OK(device().finish(done));
  EXPECT_EQ(read(to), (Floats{1, 2, 3, 4})) << "buffer_destroy takes effect in queue order";
}

TEST_F(MemoryCopies, a_later_write_to_the_source_comes_too_late) {
  const Buffer to = device().upload(Array::floats({0, 0, 0, 0})), from = four();
  const Floats data{9, 9, 9, 9};
  Event copied, written;
  ASSERT_OK(device().transfer(on_device(to, from, 16), copied));
  ASSERT_OK(device().transfer(to_device(from, data.data(), 16), written));
  EXPECT_OK(device().finish(written));
  EXPECT_OK(device().finish(copied));
  EXPECT_EQ(read(to), (Floats{1, 2, 3, 4})) << "the copy was submitted before its source was written";
}

TEST_F(MemoryCopies, a_chain_of_copies_follows_its_order) {
  const Buffer first = four(), second = device().upload(Array::floats({0, 0, 0, 0})),
               third = device().upload(Array::floats({0, 0, 0, 0}));
  Event one, two, three;
  ASSERT_OK(device().transfer(on_device(second, first, 16), one));
  ASSERT_OK(device().transfer(on_device(third, second, 16), two));
  EXPECT_EQ(read(third), (Floats{1, 2, 3, 4}));
  EXPECT_OK(device().finish(one));
  EXPECT_OK(device().finish(two));
}

// Another device of the instance that copies to this one and back: of the second ordinal, or of this one's second open.
class MemoryPeers : public MemoryCopies {
 protected:
  void SetUp() override {
    MemoryCopies::SetUp();
    if (IsSkipped()) return;
    if (!(device().info().flags & LTC_DEVICE_PEER_COPY)) LTC_NOT_APPLICABLE("the devices do not copy to each other");
    const uint32_t other = instance().describe().device_count > 1 ? 1 : 0;
    if (other == 0) LTC_NEEDS_SECOND_OPEN();
    peer_ = std::make_unique<Device>(instance(), other);
    if (!(peer_->info().flags & LTC_DEVICE_PEER_COPY)) LTC_NOT_APPLICABLE("the devices do not copy to each other");
  }
  void TearDown() override {
    peer_.reset();
    MemoryCopies::TearDown();
  }

  std::unique_ptr<Device> peer_;
};

TEST_F(MemoryPeers, a_copy_between_peers_keeps_its_bytes) {
  const Buffer from = peer_->upload(Array::floats({5, 6, 7, 8})), to = four();
  copy(on_device(to, from, 16));
  EXPECT_EQ(read(to), (Floats{5, 6, 7, 8}));
}

TEST_F(MemoryPeers, a_range_outside_the_peers_buffer_is_refused) {
  const Buffer from = peer_->upload(Array::floats({5})), to = four();
  Event done;
  EXPECT_EQ(code_text(device().transfer(on_device(to, from, 16), done).code), "INVALID_ARGUMENT");
}

}  // namespace
}  // namespace ltc::conformance
