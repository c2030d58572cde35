// Which devices of libtorch's compute: the CPU, or with the option cuda=1 those of CUDA, through the interfaces that c10 has
// for devices of any kind. Nothing of CUDA is linked; a libtorch without it compiles and runs the same code.
//
// Kernels of this plugin's own, and what is done to programs for their sake, are for the CPU alone.
#pragma once
#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>

#include <cstdint>
#include <optional>
#include <string>

namespace ltc::torchscript {

struct Devices {
  uint32_t count;
  std::string why_none;
};
Devices find_devices(c10::DeviceType type);

// The ordered work of an open device: on the CPU the calls themselves, else a stream of its own.
class Queue {
 public:
  Queue(c10::DeviceType type, uint32_t ordinal);

  const c10::Device& device() const { return device_; }
  const std::optional<c10::Stream>& stream() const { return stream_; }
  // All that was submitted until now; nothing where that is over.
  std::optional<c10::Event> mark() const;
  // Returns once all of it is over; throws what failed.
  void wait() const;

 private:
  c10::Device device_;
  std::optional<c10::Stream> stream_;
};

// Row-major memory of the host that the device copies from in the order of a queue, without a wait. It may be let go of once the
// copy is submitted.
at::Tensor pinned(at::IntArrayRef sizes, at::ScalarType dtype, c10::DeviceType device);

// While one lives, what the calling thread asks libtorch for goes to the queue, and memory that it allocates is the queue's.
class OnQueue {
 public:
  explicit OnQueue(const Queue& queue) : guard_(queue.stream()) {}

 private:
  c10::OptionalStreamGuard guard_;
};

}  // namespace ltc::torchscript
