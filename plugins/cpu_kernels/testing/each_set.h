// Tests that run once for each instruction set of this machine.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>

#include "cpu_kernels/instruction_set.h"

namespace ltc::cpu {

// Memory of exactly the size: a sanitizer's build sees what reads or writes beyond.
struct Noise {
  explicit Noise(int64_t size) : size(size), data(new float[static_cast<size_t>(size)]) {}
  Noise(int64_t size, std::mt19937& generator) : Noise(size) {
    std::normal_distribution<float> normal;
    for (int64_t i = 0; i < size; ++i) data[i] = normal(generator);
  }
  Noise(const Noise&) = delete;
  Noise(Noise&&) = default;
  Noise copy() const {
    Noise same(size);
    std::copy_n(data.get(), size, same.data.get());
    return same;
  }
  float* get() const { return data.get(); }
  float operator[](int64_t i) const { return data[static_cast<size_t>(i)]; }

  int64_t size;
  std::unique_ptr<float[]> data;
};

class EachSet : public ::testing::TestWithParam<InstructionSet> {
 protected:
  void SetUp() override {
    if (GetParam() > largest_instruction_set()) GTEST_SKIP() << "this machine has it not";
    use_instruction_set(GetParam());
  }
  void TearDown() override { use_instruction_set(largest_instruction_set()); }
  Noise noise(int64_t size) { return Noise(size, generator_); }

 private:
  std::mt19937 generator_;
};

}  // namespace ltc::cpu

#define LTC_FOR_EACH_SET(suite) \
  INSTANTIATE_TEST_SUITE_P(     \
      Sets, suite,              \
      ::testing::Values(InstructionSet::kBaseline, InstructionSet::kSse4, InstructionSet::kAvx2, InstructionSet::kAvx512))
