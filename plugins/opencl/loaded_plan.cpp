#include "opencl/loaded_plan.h"

#include <algorithm>

#include "opencl/errors.h"

namespace ltc::opencl {
namespace {

using device::Launch;

void set_arg(cl_kernel kernel, cl_uint at, size_t size, const void* value) {
  check(clSetKernelArg(kernel, at, size, value), "clSetKernelArg");
}

// The integers never change, so they are set once.
ClKernel make_kernel(const ClProgram& program, const std::string& function, const Launch& launch) {
  cl_int error = CL_SUCCESS;
  ClKernel kernel(clCreateKernel(program.get(), function.c_str(), &error));
  check(error, "clCreateKernel");
  cl_uint at = static_cast<cl_uint>(launch.buffers.size() + launch.scalars.size());
  for (const int64_t integer : launch.integers) {
    const auto narrow = static_cast<int32_t>(integer);
    launch.long_index ? set_arg(kernel.get(), at++, sizeof integer, &integer)
                      : set_arg(kernel.get(), at++, sizeof narrow, &narrow);
  }
  return kernel;
}

// The value of a scalar param as the kernel takes it.
void set_scalar(cl_kernel kernel, cl_uint at, ltc_dtype dtype, const ltc_scalar& scalar) {
  const auto f32 = static_cast<float>(scalar.f);
  const auto u8 = static_cast<uint8_t>(scalar.i != 0);
  switch (dtype) {
    case LTC_F64: return set_arg(kernel, at, sizeof scalar.f, &scalar.f);
    case LTC_F32: return set_arg(kernel, at, sizeof f32, &f32);
    case LTC_BOOL: return set_arg(kernel, at, sizeof u8, &u8);
    default: return set_arg(kernel, at, sizeof scalar.i, &scalar.i);
  }
}

}  // namespace

LoadedPlan::LoadedPlan(Driver& driver, Programs& programs, std::shared_ptr<const device::CompiledPlan> compiled_plan,
                       std::span<const std::string> binaries)
    : driver_(driver), sources_(programs), compiled_plan_(std::move(compiled_plan)) {
  for (size_t i = 0; i < compiled_plan_->sources.size(); ++i) {
    programs_.push_back(programs.build(compiled_plan_->sources[i].text, binaries.empty() ? "" : binaries[i]));
  }
  for (const Launch& launch : compiled_plan_->launches) {
    kernels_.push_back(make_kernel(*programs_[launch.source], compiled_plan_->sources[launch.source].function, launch));
    bound_.emplace_back(launch.buffers.size(), nullptr);
  }
}

void LoadedPlan::enqueue(size_t i, const device::Run& run, cl_event* event) {
  const Launch& launch = compiled_plan_->launches[i];
  const cl_kernel kernel = kernels_[i].get();
  cl_uint at = 0;
  for (const device::Binding& binding : launch.buffers) {
    const device::Memory pointer = run.at(binding);
    device::Memory& bound = bound_[i][at];
    if (bound != pointer) set_arg(kernel, at, sizeof pointer, &pointer);
    bound = pointer;
    ++at;
  }
  for (const device::ScalarBinding& scalar : launch.scalars) set_scalar(kernel, at++, scalar.dtype, run.scalar(launch, scalar));
  const size_t local = launch.local_size;
  const size_t items = (static_cast<size_t>(launch.integers[0]) + local - 1) / local * local;
  check(clEnqueueNDRangeKernel(driver_.queue(), kernel, 1, nullptr, &items, &local, 0, nullptr, event), "clEnqueueNDRangeKernel");
}

device::EventRef LoadedPlan::submit(const device::Run& run) {
  const size_t end = std::min(run.end, kernels_.size());
  if (run.begin >= end) return driver_.mark();
  cl_event event = nullptr;
  for (size_t i = run.begin; i < end; ++i) enqueue(i, run, i + 1 == end && !run.fault_word ? &event : nullptr);
  return run.fault_word ? driver_.read(run.fault_word, run.faults, 0, sizeof *run.fault_word) : driver_.submitted(event);
}

std::vector<std::string> LoadedPlan::binaries() const {
  std::vector<std::string> binaries;
  for (const Programs::Ref& program : programs_) binaries.push_back(sources_.binary_of(program->get()));
  return binaries;
}

}  // namespace ltc::opencl
