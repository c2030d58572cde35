// Reads pairs of IDX files, the format of MNIST: images and their labels, uncompressed.
#pragma once

#include <torch/types.h>

#include <filesystem>
#include <stdexcept>
#include <string>

namespace idx {

// The data on disk is missing or not what its header says.
struct DataError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Data {
  torch::Tensor images;  // uint8, N x rows x columns
  torch::Tensor labels;  // int64, N
};

enum class Split { kTrain, kTest };

// Reads <prefix>-images-idx3-ubyte and <prefix>-labels-idx1-ubyte of `folder`, where the prefix is or ends in "train" for the
// training split, "t10k" or "test" for the test split. Throws DataError.
Data load(const std::filesystem::path& folder, Split split);

}  // namespace idx
