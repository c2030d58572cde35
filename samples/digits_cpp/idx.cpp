#include "idx.h"

#include <cstring>
#include <fstream>
#include <iterator>
#include <regex>
#include <vector>

namespace idx {
namespace {

constexpr uint32_t kImagesMagic = 2051;
constexpr uint32_t kLabelsMagic = 2049;

std::filesystem::path find(const std::filesystem::path& folder, Split split, const std::string& kind) {
  const std::regex pattern((split == Split::kTrain ? "(.*-)?train-" : "(.*-)?(t10k|test)-") + kind);
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (std::regex_match(entry.path().filename().string(), pattern)) found.push_back(entry.path());
  }
  const std::string name = split == Split::kTrain ? "train" : "test";
  if (found.empty()) throw DataError(folder.string() + ": no " + name + " file *-" + kind);
  if (found.size() > 1) throw DataError(folder.string() + ": several " + name + " files *-" + kind);
  return found.front();
}

std::vector<uint8_t> content(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) throw DataError(file.string() + ": cannot be opened");
  return {std::istreambuf_iterator<char>(stream), {}};
}

uint32_t big_endian(const uint8_t* bytes) {
  return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | uint32_t{bytes[3]};
}

torch::Tensor read(const std::filesystem::path& file, uint32_t magic, size_t dimensions) {
  const std::vector<uint8_t> bytes = content(file);
  const size_t header_bytes = 4 + 4 * dimensions;
  if (bytes.size() < header_bytes) {
    throw DataError(file.string() + ": truncated, " + std::to_string(bytes.size()) + " bytes cannot hold a header of " +
                    std::to_string(header_bytes));
  }
  if (const uint32_t found = big_endian(bytes.data()); found != magic) {
    throw DataError(file.string() + ": its magic number is " + std::to_string(found) + ", expected " + std::to_string(magic));
  }
  std::vector<int64_t> shape;
  for (size_t i = 0; i < dimensions; ++i) shape.push_back(big_endian(bytes.data() + 4 + 4 * i));
  const size_t expected = header_bytes + static_cast<size_t>(c10::multiply_integers(shape));
  if (bytes.size() != expected) {
    throw DataError(file.string() + ": its header promises " + std::to_string(expected) + " bytes, it has " +
                    std::to_string(bytes.size()));
  }
  torch::Tensor tensor = torch::empty(shape, torch::kUInt8);
  std::memcpy(tensor.data_ptr(), bytes.data() + header_bytes, bytes.size() - header_bytes);
  return tensor;
}

}  // namespace

Data load(const std::filesystem::path& folder, Split split) {
  if (!std::filesystem::is_directory(folder)) throw DataError(folder.string() + ": no such folder");
  const auto images_file = find(folder, split, "images-idx3-ubyte");
  const auto labels_file = find(folder, split, "labels-idx1-ubyte");
  Data data{read(images_file, kImagesMagic, 3), read(labels_file, kLabelsMagic, 1).to(torch::kInt64)};
  if (data.images.size(0) != data.labels.size(0)) {
    throw DataError(images_file.string() + " holds " + std::to_string(data.images.size(0)) + " images, but " +
                    labels_file.string() + " " + std::to_string(data.labels.size(0)) + " labels");
  }
  return data;
}

}  // namespace idx
