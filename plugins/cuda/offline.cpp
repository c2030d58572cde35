#include "cuda/offline.h"

#include <charconv>

#include "cuda/platform.h"
#include "device/sources.h"

namespace ltc::cuda {
namespace {

struct Done : device::Event {
  bool is_over() override { return true; }
  void wait() override {}
};

using CodeRef = device::CompiledSources<std::string>::Ref;

class OfflinePlan : public device::LoadedPlan {
 public:
  OfflinePlan(std::string device, std::vector<CodeRef> code) : device_(std::move(device)), code_(std::move(code)) {}

  device::EventRef submit(const device::Run& /*run*/) override {
    throw Failure(LTC_UNSUPPORTED, "the option target=" + device_ + " is for `ltc compile`: it compiles, and runs nothing");
  }
  std::vector<std::string> binaries() const override {
    std::vector<std::string> binaries;
    for (const CodeRef& code : code_) binaries.push_back(*code);
    return binaries;
  }

 private:
  const std::string device_;
  const std::vector<CodeRef> code_;
};

class OfflineDriver : public HostMemoryDriver {
 public:
  OfflineDriver(const device::Facts& facts, const Compiler& compiler, int capability, const Features& features)
      : facts_(facts), compiler_(compiler), capability_(capability), lowering_(lowering_for(features_of(features, capability))) {}

  const device::Facts& facts() const override { return facts_; }
  const device::Lowering& lowering() const override { return lowering_; }

  std::unique_ptr<device::LoadedPlan> load_plan(std::shared_ptr<const device::CompiledPlan> compiled_plan,
                                                std::span<const std::string> binaries) override {
    std::vector<CodeRef> code;
    for (size_t i = 0; i < compiled_plan->sources.size(); ++i) {
      const std::string& source = compiled_plan->sources[i].text;
      code.push_back(code_.get(source, [&] {
        return std::make_shared<const std::string>(binaries.empty() ? compiler_.compile(source, capability_) : binaries[i]);
      }));
    }
    return std::make_unique<OfflinePlan>(facts_.name, std::move(code));
  }

 private:
  const device::Facts& facts_;
  const Compiler& compiler_;
  const int capability_;
  const device::Lowering lowering_;
  device::CompiledSources<std::string> code_;
};

int capability_of(const std::string& target) {
  int capability = 0;
  const char* const end = target.data() + target.size();
  if (target.starts_with("sm_")) {
    const auto [last, error] = std::from_chars(target.data() + 3, end, capability);
    if (error == std::errc() && last == end && capability >= 10) return capability;
  }
  throw Failure(LTC_INVALID_ARGUMENT, "the option target is '" + target + "', and is to be like sm_90");
}

}  // namespace

device::EventRef over() { return std::make_shared<Done>(); }

device::Memory HostMemoryDriver::allocate(uint64_t bytes) {
  if (void* memory = std::calloc(1, bytes)) return memory;
  throw Failure(LTC_RESOURCE_EXHAUSTED, "no " + std::to_string(bytes) + " bytes of the host's memory");
}

device::EventRef HostMemoryDriver::move(void* to, const void* from, uint64_t bytes) {
  std::memmove(to, from, bytes);
  return over();
}

OfflinePlatform::OfflinePlatform(const std::string& target, const SearchPath& path, const Features& features)
    : capability_(capability_of(target)), features_(features), compiler_(path, kNewestMajor) {
  facts_.name = target;
  facts_.fingerprint = fingerprint_of(capability_, compiler_, features_);
  facts_.memory_bytes = facts_.largest_buffer_bytes = uint64_t{1} << 40;
}

std::unique_ptr<device::Driver> OfflinePlatform::open(size_t) {
  return std::make_unique<OfflineDriver>(facts_, compiler_, capability_, features_);
}

}  // namespace ltc::cuda
