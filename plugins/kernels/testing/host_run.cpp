#include "kernels/testing/host_run.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>

#include "core/compile/lowering/abi_graph.h"
#include "core/decompose/decompose.h"
#include "core/ir/text.h"
#include "kernels/testing/emulated_tensor_cores.h"
#include "kernels/testing/emulation.h"

namespace ltc::kernels {

using conformance::Array;
using conformance::Fill;
using conformance::Tolerance;

namespace {

// ---- inputs and comparison

double real_value(Fill fill, int64_t i, std::mt19937& random) {
  const double unit = std::uniform_real_distribution<double>(-1, 1)(random);
  constexpr double kSpecial[] = {0.0,       -0.0, 1,    -1,  NAN, INFINITY, -INFINITY, 0x1p-126,
                                 -0x1p-149, 0.5,  -0.5, 1.5, 2.5, -2.5,     1e4,       1e-3};
  switch (fill) {
    case Fill::kAny: return i < std::ssize(kSpecial) ? kSpecial[i] : unit * 100;
    case Fill::kFinite: return unit * 10;
    case Fill::kPositive: return (unit + 1.001) * 5;
    case Fill::kUnit: return unit;
    case Fill::kSmall: return static_cast<double>((i * 5 + 3) % 9 - 4);
    case Fill::kCount: return static_cast<double>(i % 8);
    default: return static_cast<double>(i % 2 ? -(i % 3 + 1) : i % 3 + 1);
  }
}

Array filled(DType dtype, const Sizes& sizes, Fill fill, unsigned seed) {
  Array array(dtype, sizes);
  std::mt19937 random(seed);
  for (int64_t i = 0; i < array.count(); ++i) {
    const double value = real_value(fill, i + static_cast<int64_t>(seed), random);
    if (is_floating(dtype)) {
      array.set_real(i, value);
    } else if (dtype == DType::kBool) {
      array.set_integer(i, static_cast<int64_t>(random() & 1));
    } else {
      array.set_integer(i, fill == Fill::kAny ? static_cast<int64_t>(random()) << 32 | random() : static_cast<int64_t>(value));
    }
  }
  return array;
}

bool close(double got, double expected, DType dtype, Tolerance tolerance) {
  if (std::isnan(expected) || std::isnan(got)) return std::isnan(expected) && std::isnan(got);
  if (got == expected) return tolerance.ulps > 0 || std::signbit(got) == std::signbit(expected);
  if (tolerance.ulps == 0 || std::isinf(got) || std::isinf(expected)) return false;
  const bool wide = dtype == DType::kF64;
  const double epsilon = wide ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
  const double tiny = wide ? std::numeric_limits<double>::min() : std::numeric_limits<float>::min();
  return std::fabs(got - expected) <= tolerance.ulps * epsilon * std::max(std::fabs(expected), tolerance.floor) + tiny;
}

std::string difference(const Array& got, const Array& expected, Tolerance tolerance) {
  for (int64_t i = 0; i < expected.count(); ++i) {
    const bool good = is_floating(expected.dtype) ? close(got.real(i), expected.real(i), expected.dtype, tolerance)
                                                  : got.integer(i) == expected.integer(i);
    if (!good) return "element " + std::to_string(i) + ": got " + got.element_text(i) + ", expected " + expected.element_text(i);
  }
  return {};
}

}  // namespace

// ---- compiling and running

size_t Library::add(const std::string& kernel) {
  const auto [found, is_new] = index_.emplace(kernel, kernels_.size());
  if (is_new) kernels_.push_back(kernel);
  return found->second;
}

void Library::build(const std::string& flags) {
  static int count = 0;  // dlopen takes a path that it has seen for the library that it knows
  std::string name = std::filesystem::temp_directory_path() / ("ltc_kernels_" + std::to_string(count++) + "_XXXXXX");
  ASSERT_NE(mkdtemp(name.data()), nullptr) << name;  // code is run from it: nobody else may have made it
  const std::filesystem::path folder = name;
  const std::string source = folder / "kernels.cpp", library = folder / "kernels.so";
  std::ofstream(source) << text();
  const std::string command = "c++ -std=c++17 -Werror -Wno-unused-function -ffp-contract=off " + flags +
                              (is_emulated() ? " -w" : " -Wall") + " -shared -fPIC -o " + library + " " + source + " -lm";
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
  handle_ = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(handle_, nullptr) << dlerror();
  std::filesystem::remove_all(folder);
}

KernelFunction* Library::function(size_t i) const {
  return reinterpret_cast<KernelFunction*>(dlsym(handle_, ("ltc_kernel_" + std::to_string(i)).c_str()));
}

EmulatedFunction* Library::emulated(size_t i) const {
  return reinterpret_cast<EmulatedFunction*>(dlsym(handle_, ("emulated_" + std::to_string(i)).c_str()));
}

std::string Library::text() const {
  if (!is_emulated()) return program_text(kernels_, dialect_);
  std::string text = std::string(kEmulation) + kEmulatedTensorCores + program_text(kernels_, dialect_);
  for (size_t i = 0; i < kernels_.size(); ++i) text += emulated_launch(i, kernels_[i]);
  return text;
}

Prepared::Prepared(const ltc::Graph& from, Tolerance how_close, std::string_view letters, Library& library,
                   const Options& options)
    : graph(from), tolerance(how_close), fills(letters), plan(make_plan(*AbiGraph(graph).get(), options)) {
  for (const Step& step : plan.steps) {
    sources.push_back(render(step, library.dialect()));
    functions.push_back(library.add(sources.back().text));
  }
}

void run_step(const Step& step, const Source& source, const Library& library, size_t function,
              std::vector<std::vector<std::byte>>& memory, const std::map<uint32_t, Scalar>& scalars) {
  std::vector<void*> args;
  for (const KernelBuffer& buffer : step.buffers) args.push_back(memory[buffer.value].data());
  std::vector<std::vector<std::byte>> numbers;
  numbers.reserve(step.scalars.size() + source.integers.size());
  for (const KernelScalar& scalar : step.scalars) {
    std::vector<std::byte> bytes(8);
    std::memcpy(bytes.data(), &scalars.at(scalar.value), 8);
    const auto narrow = static_cast<float>(scalars.at(scalar.value).f);
    if (scalar.dtype == LTC_F32) std::memcpy(bytes.data(), &narrow, sizeof narrow);
    args.push_back(numbers.emplace_back(bytes).data());
  }
  for (const int64_t integer : source.integers) {
    std::vector<std::byte> bytes(8);
    std::memcpy(bytes.data(), &integer, source.long_index ? 8 : 4);  // little-endian
    args.push_back(numbers.emplace_back(bytes).data());
  }
  const int64_t items = source.integers[0];
  if (library.is_emulated()) {
    const int64_t local = source.local_size ? source.local_size : 64;
    EXPECT_TRUE(library.emulated(function)(args.data(), items, local)) << "threads part:\n" << source.text;
    return;
  }
  // Two ranges, since items run in any order.
  library.function(function)(args.data(), items / 2, items);
  library.function(function)(args.data(), 0, items / 2);
}

namespace {

struct Ran {
  std::vector<Array> inputs;
  std::vector<Scalar> scalars;
  std::vector<std::vector<std::byte>> memory;  // by value
  std::optional<uint64_t> failed_check;
};

Ran run(const Prepared& prepared, const Library& library) {
  constexpr int64_t kCode = 7000;
  Ran ran;
  std::map<uint32_t, Scalar> scalar_of;
  const Faults& faults = prepared.plan.faults;
  if (faults.code != kNone) scalar_of[faults.code].i = kCode;
  // Elements that nobody has written are NaN.
  for (const Value& value : prepared.plan.graph.values) {
    ran.memory.emplace_back(static_cast<size_t>(value.count) * 8 + 64, std::byte{0xff});
  }
  unsigned seed = 0;
  for (const ltc::Param& param : prepared.graph.params) {
    const Type& type = prepared.graph.type(param.value);
    if (param.scalar) {
      Scalar value{};
      value.i = 3 + static_cast<int64_t>(ran.scalars.size()) * 1000;
      if (type.dtype == DType::kF64) value.f = 0.0625;
      scalar_of[param.value] = value;
      ran.scalars.push_back(value);
      continue;
    }
    const auto fill = static_cast<Fill>(prepared.fills[std::min<size_t>(seed, prepared.fills.size() - 1)]);
    const Array& array = ran.inputs.emplace_back(filled(type.dtype, type.sizes, fill, seed++));
    if (!array.bytes.empty()) std::memcpy(ran.memory[param.value].data(), array.bytes.data(), array.bytes.size());
  }
  for (size_t i = 0; i < prepared.plan.steps.size(); ++i) {
    run_step(prepared.plan.steps[i], prepared.sources[i], library, prepared.functions[i], ran.memory, scalar_of);
  }
  int64_t word = -1;
  if (faults.word != kNone) std::memcpy(&word, ran.memory[faults.word].data(), sizeof word);
  if (word >= 0) ran.failed_check = static_cast<uint64_t>(word - kCode);
  return ran;
}

}  // namespace

std::optional<uint64_t> failed_check(const Prepared& prepared, const Library& library) {
  return run(prepared, library).failed_check;
}

void check(const Prepared& prepared, const ltc::Graph& reference, const Library& library) {
  const Ran ran = run(prepared, library);
  EXPECT_EQ(ran.failed_check, std::nullopt) << print(prepared.graph);
  const std::vector<Array> expected = conformance::evaluate(reference, ran.inputs, ran.scalars);
  for (size_t i = 0; i < expected.size(); ++i) {
    const ValueId output = prepared.graph.outputs[i];
    Array got(expected[i].dtype, expected[i].sizes);
    if (!got.bytes.empty()) std::memcpy(got.bytes.data(), ran.memory[output].data(), got.bytes.size());
    EXPECT_EQ(difference(got, expected[i], prepared.tolerance), "")
        << "output " << i << " of\n"
        << print(prepared.graph) << prepared.plan.fusion.text(prepared.plan.graph);
  }
}

void check_graphs(std::span<const conformance::ProgramCase> cases, const Options& options) {
  Library library(cuda_dialect());
  std::vector<Prepared> all;
  std::vector<ltc::Graph> references;
  for (const conformance::ProgramCase& row : cases) {
    const ltc::Graph graph = parse(row.graph);
    references.push_back(decompose::minimal_form(graph));
    all.emplace_back(options.extras.attention ? graph : references.back(), row.tolerance, row.fills, library, options);
  }
  ASSERT_NO_FATAL_FAILURE(library.build("-O1"));
  for (size_t i = 0; i < all.size(); ++i) check(all[i], references[i], library);
}

}  // namespace ltc::kernels
