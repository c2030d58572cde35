// The fixture of the cache tier's files.
#pragma once

#include <string>

#include "conformance/kit/load_bytes.h"
#include "conformance/tiers/execute_fixture.h"

namespace ltc::conformance {

// Plugins that save executables.
class Cache : public Execute {
 protected:
  void SetUp() override {
    Execute::SetUp();
    if (!IsSkipped() && (!api().executable_save || !api().executable_load)) LTC_NOT_APPLICABLE("the plugin saves no executables");
  }

  Failure save(const Executable& executable, const ltc_sink& sink) {
    return Instance::asked("executable_save", [&] { return api().executable_save(executable.get(), &sink); });
  }
  // Empty where this one cannot be saved.
  std::string save(const Executable& executable) {
    std::string bytes;
    const ltc_sink sink{&bytes, [](void* to, const void* data, size_t size) {
                          static_cast<std::string*>(to)->append(static_cast<const char*>(data), size);
                          return true;
                        }};
    const Failure failure = save(executable, sink);
    EXPECT_FALSE(failure && failure.code != LTC_UNSUPPORTED) << failure;
    return failure ? "" : bytes;
  }

  static Failure load(Device& device, const ltc_load_args& args, Executable& executable) {
    ltc_executable* made = nullptr;
    const Failure failure =
        Instance::asked("executable_load", [&] { return device.api().executable_load(device.get(), &args, &made); });
    if (!failure) executable = Executable(device, made);
    EXPECT_EQ(made == nullptr, static_cast<bool>(failure)) << "an executable exactly where there is no error";
    return failure;
  }
  static Failure load(Device& device, const std::string& bytes, Executable& executable) {
    return load(device, LoadBytes(bytes).args(), executable);
  }
  Failure load(const std::string& bytes, Executable& executable) { return load(device(), bytes, executable); }

  // Runs the sum of two arrays of four floats.
  static Floats sum(Device& device, const Executable& executable) {
    const Buffer a = device.upload(Array::floats({1, 2, 3, 4})), b = device.upload(Array::floats({10, 20, 30, 40}));
    return device.download(device.run({executable, {a.get(), b.get()}})[0], DType::kF32, {4}).values<float>();
  }
  static inline const Floats kSum{11, 22, 33, 44};
};

#define LTC_SAVED(bytes, executable)          \
  const std::string bytes = save(executable); \
  if ((bytes).empty()) LTC_UNSUPPORTED_BY_PLUGIN("this executable cannot be saved")

}  // namespace ltc::conformance
