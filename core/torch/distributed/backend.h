// The process group of the device, for c10d (torch.distributed).
#pragma once

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <chrono>
#include <string>

#include "core/base/api.h"

namespace ltc {

// A backend of c10d whose collectives are recorded. `on_cpu`: one of the same ranks for CPU tensors, such as Gloo's, which
// carries them out unless the device's plugin does. `store`: of the ranks, where they say what they wait for. `name`: of this
// rank, as groups.h says. `timeout`: how long the ranks wait for each other.
LTC_API c10::intrusive_ptr<c10d::Backend> make_process_group(c10::intrusive_ptr<c10d::Backend> on_cpu,
                                                             c10::intrusive_ptr<c10d::Store> store, std::string name,
                                                             std::chrono::milliseconds timeout);

}  // namespace ltc
