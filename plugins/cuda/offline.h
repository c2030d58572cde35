// A device that is not here: kernels are compiled for it, and nothing runs. For `ltc compile` on another machine than the
// device's.
#pragma once
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "cuda/compiler.h"
#include "cuda/lowering.h"
#include "device/driver.h"

namespace ltc::cuda {

device::EventRef over();  // of work that is over

// One whose memory is the host's. Copies are over when they return.
class HostMemoryDriver : public device::Driver {
 public:
  device::Memory allocate(uint64_t bytes) override;
  void release(device::Memory memory) noexcept override { std::free(memory); }
  void* allocate_pinned(uint64_t bytes) override { return allocate(bytes); }
  void release_pinned(void* memory) noexcept override { std::free(memory); }
  device::EventRef write(device::Memory to, uint64_t offset, const void* from, uint64_t bytes) override {
    return move(static_cast<char*>(to) + offset, from, bytes);
  }
  device::EventRef read(void* to, device::Memory from, uint64_t offset, uint64_t bytes) override {
    return move(to, static_cast<const char*>(from) + offset, bytes);
  }
  device::EventRef copy(device::Memory to, uint64_t to_offset, device::Memory from, uint64_t from_offset,
                        uint64_t bytes) override {
    return move(static_cast<char*>(to) + to_offset, static_cast<const char*>(from) + from_offset, bytes);
  }
  device::EventRef mark() override { return over(); }
  void finish() noexcept override {}

 private:
  static device::EventRef move(void* to, const void* from, uint64_t bytes);
};

// The one device `target`, "sm_90". Executables that it saves load where the device, NVRTC and `features` are those
// (fingerprint_of). Throws INVALID_ARGUMENT for another text, and what Compiler throws.
class OfflinePlatform : public device::Platform {
 public:
  OfflinePlatform(const std::string& target, const SearchPath& path, const Features& features);
  size_t device_count() const override { return 1; }
  const std::string& why_no_device() const override { return why_; }
  std::unique_ptr<device::Driver> open(size_t ordinal) override;

 private:
  const int capability_;
  const Features features_;
  const Compiler compiler_;
  const std::string why_;
  device::Facts facts_;
};

}  // namespace ltc::cuda
