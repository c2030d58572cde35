#include "cuda/platform.h"

#include <cstdlib>
#include <cstring>

#include "cuda/driver.h"

namespace ltc::cuda {
namespace {

std::string version_text(int version) { return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10); }

int attribute(const DriverApi& api, CUdevice device, CUdevice_attribute which) {
  int value = 0;
  api.check(api.cuDeviceGetAttribute(&value, which, device), "cuDeviceGetAttribute");
  return value;
}

DeviceFacts facts_of(const Libraries& libraries, int ordinal) {
  const DriverApi& api = libraries.api;
  DeviceFacts facts{};
  api.check(api.cuDeviceGet(&facts.id, ordinal), "cuDeviceGet");
  char name[256] = "";
  api.check(api.cuDeviceGetName(name, sizeof name, facts.id), "cuDeviceGetName");
  size_t bytes = 0;
  api.check(api.cuDeviceTotalMem_v2(&bytes, facts.id), "cuDeviceTotalMem");
  facts.capability = 10 * attribute(api, facts.id, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) +
                     attribute(api, facts.id, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  facts.memory_pools = attribute(api, facts.id, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED) != 0;
  facts.name = name;
  facts.fp64 = true;
  facts.host_memory = false;
  facts.peer_copies = facts.write_waits = true;
  facts.memory_bytes = facts.largest_buffer_bytes = bytes;
  return facts;
}

}  // namespace

std::string fingerprint_of(int capability, const Compiler& compiler, const Features& features) {
  return "sm_" + std::to_string(capability) + ", NVRTC " + compiler.version() +
         ", cuda plugin 0.1.0, without: " + disabled(features);
}

Platform::Platform(SearchPath path, const Features& wanted) : path_(std::move(path)), wanted_(wanted) {
  try {
    auto libraries = std::make_unique<Libraries>(Libraries{DriverApi::load(path_), 0, nullptr, nullptr, nullptr, nullptr, {}});
    const DriverApi& api = libraries->api;
    api.check(api.cuInit(0), "cuInit");
    api.check(api.cuDriverGetVersion(&libraries->driver_version), "cuDriverGetVersion");
    if (libraries->driver_version < 1000 * kOldestMajor) {
      throw Failure(LTC_NOT_FOUND, "the driver is of CUDA " + version_text(libraries->driver_version) + ", and " +
                                       std::to_string(kOldestMajor) + ".0 or newer is needed");
    }
    int count = 0;
    api.check(api.cuDeviceGetCount(&count), "cuDeviceGetCount");
    if (count == 0) throw Failure(LTC_NOT_FOUND, "the driver shows none; CUDA_VISIBLE_DEVICES hides those that it does not name");
    libraries->compiler = std::make_unique<const Compiler>(path_, libraries->driver_version / 1000);
    for (int ordinal = 0; ordinal < count; ++ordinal) devices_.push_back(facts_of(*libraries, ordinal));
    libraries_ = std::move(libraries);
  } catch (const Failure& failure) {
    devices_.clear();
    why_no_device_ = "no CUDA device: " + failure.error().message;
  }
}

std::unique_ptr<device::Driver> Platform::open(size_t ordinal) {
  // Saved executables depend on what computes products and convolutions.
  std::call_once(opened_, [&] {
    Features features = wanted_;
    if (features.cublas) libraries_->blas = BlasApi::load(path_, libraries_->driver_version / 1000);
    if (features.cudnn) libraries_->dnn = DnnApi::load(path_);
    if (features.nccl) libraries_->nccl = NcclApi::load(path_);
    features.cublas = libraries_->blas != nullptr;
    features.fp8 = features.fp8 && (!features.cublas || libraries_->blas->takes_f8());
    features.cudnn = libraries_->dnn != nullptr;
    features.nccl = libraries_->nccl != nullptr;
    libraries_->features = features;
    for (DeviceFacts& facts : devices_) facts.fingerprint = fingerprint_of(facts.capability, *libraries_->compiler, features);
  });
  return std::make_unique<Driver>(*libraries_, devices_[ordinal]);
}

}  // namespace ltc::cuda
