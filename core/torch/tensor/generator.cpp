#include "core/torch/tensor/generator.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Utils.h>
#include <ATen/ops/empty.h>

#include <mutex>

#include "core/run/device/capture.h"
#include "core/torch/tensor/current_device.h"

namespace ltc {
namespace {

struct DefaultGenerators {
  std::mutex mutex;
  uint64_t seed = c10::default_rng_seed_val;
  std::array<at::Generator, kMaxDevices> by_device;
};

DefaultGenerators& defaults() {
  static auto* instance = new DefaultGenerators();
  return *instance;
}

bool is_wide(DType dtype) { return dtype_size_bytes(dtype) == 8; }

void check_device(const at::Generator& generator) {
  TORCH_CHECK(generator.device().type() == kLtc, "Expected a '", kDeviceName, "' device type for generator but found '",
              generator.device().type(), "'");
}

// Philox4x32-10: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
std::array<uint32_t, 4> philox_block(uint64_t seed, uint64_t counter) {
  std::array<uint32_t, 4> c = {static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32), 0, 0};
  uint32_t key0 = static_cast<uint32_t>(seed), key1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{0xD2511F53} * c[0], product1 = uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<uint32_t>(product1 >> 32) ^ c[1] ^ key0, static_cast<uint32_t>(product1),
         static_cast<uint32_t>(product0 >> 32) ^ c[3] ^ key1, static_cast<uint32_t>(product0)};
    key0 += 0x9E3779B9, key1 += 0xBB67AE85;
  }
  return c;
}

}  // namespace

LazyGenerator::LazyGenerator(c10::DeviceIndex device, uint64_t seed)
    : c10::GeneratorImpl(c10::Device(kLtc, device), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)), seed_(seed) {}

void LazyGenerator::set_current_seed(uint64_t seed) { seed_ = seed, offset_ = 0; }

uint64_t LazyGenerator::seed() {
  set_current_seed(c10::detail::getNonDeterministicRandom());
  return seed_;
}

void LazyGenerator::set_state(const c10::TensorImpl& state) {
  TORCH_CHECK(state.numel() == 16 && state.dtype() == caffe2::TypeMeta::Make<uint8_t>() && state.device_type() == at::kCPU,
              "the state of an ltc generator is 16 bytes on the CPU (seed, offset), got ", state.numel(), " of ", state.dtype());
  const auto* words = static_cast<const uint64_t*>(state.data());
  seed_ = words[0], offset_ = words[1];
}

c10::intrusive_ptr<c10::TensorImpl> LazyGenerator::get_state() const {
  at::Tensor state = at::empty({16}, at::TensorOptions().dtype(at::kByte).device(at::kCPU));
  auto* words = static_cast<uint64_t*>(state.mutable_data_ptr());
  words[0] = seed_, words[1] = offset_;
  return state.getIntrusivePtr();
}

LazyGenerator* LazyGenerator::clone_impl() const {
  auto* copy = new LazyGenerator(device().index(), seed_);
  copy->offset_ = offset_;
  return copy;
}

uint64_t LazyGenerator::advance(const Type& type) {
  const uint64_t per_block = is_wide(type.dtype) ? 2 : 4;
  return (static_cast<uint64_t>(type.element_count) + per_block - 1) / per_block;
}

uint64_t LazyGenerator::reserve(const Type& type) {
  const uint64_t begin = offset_;
  offset_ += advance(type);
  return begin;
}

const at::Generator& default_generator(c10::DeviceIndex device) {
  if (device < 0) device = current_device();
  TORCH_CHECK(device < kMaxDevices, "there is no device ltc:", static_cast<int>(device), "; at most ", kMaxDevices,
              " are supported");
  std::lock_guard lock(defaults().mutex);
  at::Generator& generator = defaults().by_device[device];
  if (!generator.defined()) generator = at::make_generator<LazyGenerator>(device, defaults().seed);
  return generator;
}

void seed_all(uint64_t seed) {
  std::lock_guard lock(defaults().mutex);
  defaults().seed = seed;
  for (at::Generator& generator : defaults().by_device) {
    if (!generator.defined()) continue;
    std::lock_guard generator_lock(generator.mutex());
    generator.set_current_seed(seed);
  }
}

at::Generator generator_for(const std::optional<at::Generator>& given, const LazyDevice& device) {
  if (!given || !given->defined()) return default_generator(static_cast<c10::DeviceIndex>(device.ordinal()));
  check_device(*given);
  return *given;
}

at::Generator cpu_generator_for(at::Generator generator) {
  if (!generator.defined()) return generator;
  check_device(generator);
  if (t_capture) t_capture->refuse("an op drew numbers that only the CPU can draw");
  std::lock_guard lock(generator.mutex());
  auto* lazy = static_cast<LazyGenerator*>(generator.unsafeGetGeneratorImpl());
  const std::array<uint32_t, 4> block = philox_block(lazy->current_seed(), lazy->get_offset());
  lazy->set_offset(lazy->get_offset() + 1);
  return at::detail::createCPUGenerator(uint64_t{block[1]} << 32 | block[0]);
}

void philox_fill(const Type& type, uint64_t seed, uint64_t offset, void* data) {
  const bool wide = is_wide(type.dtype);
  const int64_t per_block = wide ? 2 : 4;
  for (int64_t i = 0; i < type.element_count; ++i) {
    const std::array<uint32_t, 4> words = philox_block(seed, offset + static_cast<uint64_t>(i / per_block));
    if (wide) {
      const uint64_t bits = words[2 * (i % 2)] | uint64_t{words[2 * (i % 2) + 1]} << 32;
      if (type.dtype == DType::kI64) {
        static_cast<uint64_t*>(data)[i] = bits;
      } else {
        static_cast<double*>(data)[i] = static_cast<double>(bits >> 11) * 0x1p-53;
      }
    } else if (type.dtype == DType::kI32) {
      static_cast<uint32_t*>(data)[i] = words[i % 4];
    } else {
      static_cast<float*>(data)[i] = static_cast<float>(words[i % 4] >> 8) * 0x1p-24f;
    }
  }
}

}  // namespace ltc
