// Storages that change their size.
#pragma once

#include "core/torch/tensor/tensor.h"

namespace ltc {

// The old contents stay where they were; new elements read as zeros.
void resize_storage(const c10::Storage& storage, size_t size_bytes);

}  // namespace ltc
