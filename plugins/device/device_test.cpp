// Drivers as they never are on the machines that tests run on: lost, and slow to read memory that is not pinned.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "core/host/host_api.h"
#include "core/host/sized.h"
#include "core/host/status.h"
#include "device/objects.h"

namespace ltc::device {
namespace {

using ::testing::HasSubstr;

constexpr ltc_code kOk = 0;  // of no status

class DoneEvent : public Event {
 public:
  bool is_over() override { return true; }
  void wait() override {}
};

// It is lost by a write of kLostAt bytes, and does not remember that itself.
class FakeDriver : public Driver {
 public:
  static constexpr uint64_t kLostAt = 12;

  const Facts& facts() const override { return facts_; }
  const Lowering& lowering() const override { return lowering_; }
  Memory allocate(uint64_t bytes) override { return std::malloc(bytes); }
  void release(Memory memory) noexcept override { std::free(memory); }
  void* allocate_pinned(uint64_t bytes) override { return std::malloc(bytes); }
  void release_pinned(void* memory) noexcept override { std::free(memory); }
  EventRef write(Memory, uint64_t, const void* from, uint64_t bytes) override {
    written_from = from;
    if (bytes == kLostAt) throw Failure(LTC_DEVICE_LOST, "the bus fell silent");
    return mark();
  }
  EventRef read(void*, Memory, uint64_t, uint64_t) override { return mark(); }
  EventRef copy(Memory, uint64_t, Memory, uint64_t, uint64_t) override { return mark(); }
  EventRef mark() override { return std::make_shared<DoneEvent>(); }
  std::unique_ptr<LoadedPlan> load_plan(std::shared_ptr<const CompiledPlan>, std::span<const std::string>) override {
    return nullptr;
  }
  void finish() noexcept override {}

  static inline bool write_waits = false;
  static inline const void* written_from = nullptr;

 private:
  Facts facts_{.name = "fake", .write_waits = write_waits, .memory_bytes = 1 << 20, .largest_buffer_bytes = 1 << 20};
  Lowering lowering_{.dialect = kernels::opencl_dialect()};
};

class FakePlatform : public Platform {
 public:
  size_t device_count() const override { return 1; }
  const std::string& why_no_device() const override { return none_; }
  std::unique_ptr<Driver> open(size_t) override { return std::make_unique<FakeDriver>(); }

 private:
  std::string none_;
};

constexpr Plugin kPlugin{"fake", "1", "1",
                         [](const plugin::Options&) -> std::unique_ptr<Platform> { return std::make_unique<FakePlatform>(); }};

class FakeDevice : public ::testing::Test {
 protected:
  explicit FakeDevice(bool write_waits) : host_("fake", nullptr) {
    FakeDriver::write_waits = write_waits;
    ltc_entry_args args{};
    args.struct_size = LTC_SIZE_TO(ltc_entry_args, reason);
    args.host = host_.table();
    args.oldest = args.newest = {LTC_ABI_MAJOR, LTC_ABI_MINOR};
    EXPECT_TRUE(enter(&args, kPlugin));
    api_ = args.api;
    plugin_ = args.plugin;
    auto device = host::sized<ltc_device_args>();
    auto info = host::sized<ltc_device_info>();
    EXPECT_EQ(code(api_->device_open(plugin_, &device, &info, &device_)), kOk);
    EXPECT_EQ(code(create(&buffer_)), kOk);
  }
  ~FakeDevice() override {
    api_->buffer_destroy(buffer_);
    api_->device_close(device_);
    api_->plugin_close(plugin_);
  }

  ltc_status* create(ltc_buffer** buffer) {
    const int64_t size = 16;
    auto type = host::sized<ltc_type>();
    type.dtype = LTC_F32;
    type.rank = 1;
    type.sizes = &size;
    auto args = host::sized<ltc_buffer_args>();
    args.type = &type;
    return api_->buffer_create(device_, &args, buffer);
  }
  ltc_status* send(uint64_t bytes, ltc_event** event) {
    auto args = host::sized<ltc_transfer_args>();
    args.direction = LTC_TO_DEVICE;
    args.buffer = buffer_;
    args.from = bytes_;
    args.size_bytes = bytes;
    return api_->transfer(device_, &args, event);
  }
  // Ends the status, and keeps its message.
  ltc_code code(ltc_status* status) {
    if (!status) return kOk;
    const ltc_code code = status->code;
    message_ = status->message;
    host::status_destroy(status);
    return code;
  }

  host::HostApi host_;
  const ltc_plugin_api* api_ = nullptr;
  ltc_plugin* plugin_ = nullptr;
  ltc_device* device_ = nullptr;
  ltc_buffer* buffer_ = nullptr;
  char bytes_[64] = {};
  std::string message_;
};

struct LostDevice : FakeDevice {
  LostDevice() : FakeDevice(false) {}
};

TEST_F(LostDevice, says_so_from_then_on) {
  ltc_event* event = nullptr;
  ASSERT_EQ(code(send(8, &event)), kOk);
  bool finished = false;
  EXPECT_EQ(code(api_->event_wait(event, LTC_FOREVER, &finished)), kOk);

  ltc_event* none = nullptr;
  EXPECT_EQ(code(send(FakeDriver::kLostAt, &none)), LTC_DEVICE_LOST);
  EXPECT_EQ(code(send(8, &none)), LTC_DEVICE_LOST);
  EXPECT_THAT(message_, HasSubstr("the bus fell silent"));
  ltc_buffer* buffer = nullptr;
  EXPECT_EQ(code(create(&buffer)), LTC_DEVICE_LOST);
  EXPECT_EQ(code(api_->event_wait(event, LTC_FOREVER, &finished)), LTC_DEVICE_LOST);
  EXPECT_THAT(message_, HasSubstr("the bus fell silent"));
  api_->event_destroy(event);
}

TEST_F(LostDevice, other_errors_pass) {
  ltc_event* event = nullptr;
  EXPECT_EQ(code(send(65, &event)), LTC_INVALID_ARGUMENT);
  EXPECT_EQ(code(send(8, &event)), kOk);
  EXPECT_EQ(FakeDriver::written_from, bytes_);
  api_->event_destroy(event);
}

struct WaitingDevice : FakeDevice {
  WaitingDevice() : FakeDevice(true) {}
};

TEST_F(WaitingDevice, reads_from_pinned_memory) {
  ltc_event* event = nullptr;
  bytes_[7] = 42;
  EXPECT_EQ(code(send(8, &event)), kOk);
  EXPECT_NE(FakeDriver::written_from, bytes_);
  EXPECT_EQ(static_cast<const char*>(FakeDriver::written_from)[7], 42);
  api_->event_destroy(event);
}

}  // namespace
}  // namespace ltc::device
