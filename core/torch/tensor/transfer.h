// Moving values between host and device.
#pragma once

#include "core/torch/tensor/tensor.h"

namespace ltc {

// The tensor's contents on the CPU, with its geometry. Waits. `reason` is the counter of the barrier that it may need.
at::Tensor to_cpu(const at::Tensor& tensor, std::string_view reason);

// The same for a reader of the user's: an event of the timeline. `reason`: "item", "copy", "other device" or "assertion".
at::Tensor read_value(const at::Tensor& tensor, std::string_view reason);

// A new lazy tensor with the contents and the geometry of a CPU tensor.
at::Tensor to_lazy(LazyDevice& device, const at::Tensor& cpu);

// The same for `cpu.to(device)`, of a tensor of some KB whose sending waits for nothing. Undefined where somebody else is to see
// the call or has to decide something: a mode, a transform, a profiler, autograd, a layout; and where the device is not in use
// yet, as opening it may take long.
LTC_API at::Tensor try_fast_upload(const at::Tensor& cpu, c10::Device device);

// Puts the contents of a CPU tensor, of the same sizes and dtype, where the lazy tensor's elements are.
void write_cpu(const at::Tensor& lazy, const at::Tensor& cpu);

// The kernels behind copy_ and .to().
at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool non_blocking);
at::Tensor copy_from_and_resize(const at::Tensor& from, const at::Tensor& to);
at::Scalar local_scalar_dense(const at::Tensor& tensor);

// A new tensor with so many rows: those of this one, as far as there are, and zeros. By transfers, so that another number of rows
// compiles nothing. No autograd.
LTC_API at::Tensor with_rows(const at::Tensor& tensor, int64_t rows);

bool equal(const at::Tensor& self, const at::Tensor& other);  // waits

}  // namespace ltc
