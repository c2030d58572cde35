// Storages that change their size.
#pragma once

#include "core/torch/tensor/tensor.h"

namespace ltc {

// What the storage held stays where it was; what is new reads as zeros.
void resize_storage(const c10::Storage& storage, size_t size_bytes);

}  // namespace ltc
