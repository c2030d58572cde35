// Random numbers: a counter-based generator whose numbers the plugin computes.
//
// The state is a seed and an offset. Both enter the graph as numbers, so drawing compiles nothing, and every plugin draws the
// same numbers: element i of a draw is a function of seed, offset and i alone (Philox4x32-10, see ltc::philox in ltc/plugin.h).
#pragma once

#include <ATen/core/Generator.h>
#include <c10/core/GeneratorImpl.h>

#include "core/torch/tensor/tensor.h"

namespace ltc {

class LazyGenerator final : public c10::GeneratorImpl {
 public:
  explicit LazyGenerator(c10::DeviceIndex device, uint64_t seed = c10::default_rng_seed_val);

  void set_current_seed(uint64_t seed) override;
  uint64_t current_seed() const override { return seed_; }
  void set_offset(uint64_t offset) override { offset_ = offset; }
  uint64_t get_offset() const override { return offset_; }
  uint64_t seed() override;                               // a fresh one from the system
  void set_state(const c10::TensorImpl& state) override;  // 16 bytes: seed, offset
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override;

  // Reserves numbers for a draw of so many elements: the offset at which it begins. Caller holds the generator's mutex.
  uint64_t reserve(const Type& type);
  // By how much a draw of so many elements moves the offset.
  static uint64_t advance(const Type& type);

 private:
  LazyGenerator* clone_impl() const override;

  uint64_t seed_, offset_ = 0;
};

LTC_API const at::Generator& default_generator(c10::DeviceIndex device);  // -1: of the current device
LTC_API void seed_all(uint64_t seed);                                     // of every device, now and later; loads nothing

// The generator that an op was given, or the device's own; throws for a CPU generator.
at::Generator generator_for(const std::optional<at::Generator>& given, const LazyDevice& device);

// A CPU generator whose numbers follow from the lazy one's, for ops that only the CPU can draw.
at::Generator cpu_generator_for(at::Generator generator);

// ltc::philox on the host: fills `type.element_count` elements of F32, F64, I32 or I64.
void philox_fill(const Type& type, uint64_t seed, uint64_t offset, void* data);

}  // namespace ltc
