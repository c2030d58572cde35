// Values that the host computes for whoever reads one, without a barrier: those that depend on numbers and on short uploads of
// whole numbers alone. Programs branch on them in every step, such as on whether a mask is all ones.
//
// Only integers and booleans: the device's values would be the same, bit by bit.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "core/base/spin_lock.h"
#include "core/ir/trace.h"
#include "core/run/queue/buffer.h"

namespace ltc {

// The part of a trace that computes one value.
struct HostSlice {
  Trace trace;  // the value is its last record
  std::vector<HostValue> inputs;
  std::vector<Scalar> scalars;
};

// Empty where the device has to compute the value. `inputs` and `scalars`: of the trace's params, in order. Copies a few records.
std::optional<HostSlice> host_slice(const Trace& trace, std::span<const BufferRef> inputs, std::span<const Scalar> scalars,
                                    ValueId value);

// Keeps the values of slices without inputs, since they come again in every step. Threads: any.
class HostValues {
 public:
  // Null data if PyTorch's CPU kernels refuse: the device's run then throws the error.
  HostValue compute(const HostSlice& slice);

 private:
  struct Known {
    Trace trace;
    std::vector<Scalar> scalars;
    HostValue value;
  };

  SpinLock mutex_;
  std::unordered_multimap<uint64_t, Known> known_;
};

}  // namespace ltc
