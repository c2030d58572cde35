// The plugin's entry: what it is called, and how its devices are found and opened.
#include "opencl/driver.h"

namespace ltc::opencl {
namespace {

class Platform : public device::Platform {
 public:
  explicit Platform(const std::string& device) : devices_(find_devices(device, why_no_device_)) {}
  size_t device_count() const override { return devices_.size(); }
  const std::string& why_no_device() const override { return why_no_device_; }
  std::unique_ptr<device::Driver> open(size_t ordinal) override { return std::make_unique<Driver>(devices_[ordinal]); }

 private:
  std::string why_no_device_;
  std::vector<DeviceFacts> devices_;
};

constexpr plugin::OptionRow kOptions[] = {
    {"device", "", "", "which OpenCL devices: a part of their name or of their platform's, or a number; all where it is empty"}};

constexpr device::Plugin kPlugin{.name = "opencl",
                                 .version = "0.1.0",
                                 .build_id = "opencl 0.1.0",
                                 .find = [](const plugin::Options& options) -> std::unique_ptr<device::Platform> {
                                   return std::make_unique<Platform>(options["device"]);
                                 },
                                 .options = kOptions};

}  // namespace
}  // namespace ltc::opencl

bool ltc_plugin_entry(ltc_entry_args* args) { return ltc::device::enter(args, ltc::opencl::kPlugin); }
