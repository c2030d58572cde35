// Convolutions of few images, divided among the plugin's own threads.
#pragma once
#include <torch/csrc/jit/ir/ir.h>

#include "products.h"

namespace ltc::torchscript {

// What computes this node with some of the images in each thread; null for any other operator, and where the results are so large
// that joining them costs more than what is gained: OpenMP's threads have to be woken for each call, and everybody waits for the
// last.
Product find_divided_convolution(const torch::jit::Node& node);

}  // namespace ltc::torchscript
