// Names the digits of test images with the network of an archive.
//
//     predict ARCHIVE DATA [STATE]
//
// STATE is a file that train.c has written; without it, the network is as the archive has it. LTC_BACKEND chooses the plugin.
#include <cstdint>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "ltc/runtime.hpp"

namespace {

// The bytes of an IDX file behind its header.
std::vector<char> read_idx(const std::string& path, size_t dimensions) {
  std::ifstream file(path, std::ios::binary);
  if (!file.ignore(static_cast<std::streamsize>(4 + 4 * dimensions))) throw std::runtime_error(path + " cannot be read");
  return {std::istreambuf_iterator<char>(file), {}};
}

void draw(const char* image, int64_t digit, int label) {
  for (int row = 0; row < 8; ++row) {
    for (int column = 0; column < 8; ++column) std::cout << " .:*#"[static_cast<unsigned char>(image[row * 8 + column]) / 52];
    std::cout << (row == 3 ? "   this is a " + std::to_string(digit) + (digit == label ? "" : ", says the network") : "") << "\n";
  }
}

void run(const std::string& archive, const std::string& folder, const std::string& state) {
  using ltc::runtime::tensor;
  const ltc::runtime::Model model(archive);
  ltc::runtime::Session session(model);
  if (!state.empty()) session.load(state);

  const size_t predict = model.function("predict");
  const ltcr_tensor_info &images_info = model.input(predict, 0), &digits_info = model.result(predict, 0);
  std::vector<char> images = read_idx(folder + "/digits-test-images-idx3-ubyte", 3);
  const std::vector<char> labels = read_idx(folder + "/digits-test-labels-idx1-ubyte", 1);
  if (images.size() < images_info.size_bytes) throw std::runtime_error(folder + " has too few images");
  std::vector<int64_t> digits(static_cast<size_t>(digits_info.sizes[0]));
  session.run(predict, {tensor(images_info, images.data())}, {tensor(digits_info, digits.data())});
  for (size_t i = 0; i < 3; ++i) draw(&images[i * 64], digits[i], labels[i]);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3 || argc > 4) {
    std::cerr << "usage: " << argv[0] << " ARCHIVE DATA [STATE]\n";
    return 2;
  }
  try {
    run(argv[1], argv[2], argc == 4 ? argv[3] : "");
  } catch (const std::exception& error) {
    std::cerr << "predict: " << error.what() << "\n";
    return 1;
  }
  return 0;
}
