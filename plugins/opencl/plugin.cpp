// The plugin's entry: what it is called, and how its devices are found and opened.
#include "opencl/driver.h"

namespace ltc::opencl {
namespace {

class Platform : public device::Platform {
 public:
  Platform() : devices_(find_devices(why_no_device_)) {}
  size_t device_count() const override { return devices_.size(); }
  const std::string& why_no_device() const override { return why_no_device_; }
  std::unique_ptr<device::Driver> open(size_t ordinal) override { return std::make_unique<Driver>(devices_[ordinal]); }

 private:
  std::string why_no_device_;
  std::vector<DeviceFacts> devices_;
};

constexpr device::Plugin kPlugin{.name = "opencl", .version = "0.1.0", .build_id = "opencl 0.1.0", .find = [] {
                                   return std::unique_ptr<device::Platform>(std::make_unique<Platform>());
                                 }};

}  // namespace
}  // namespace ltc::opencl

bool ltc_plugin_entry(ltc_entry_args* args) { return ltc::device::enter(args, ltc::opencl::kPlugin); }
