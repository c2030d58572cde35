// Drives a target without libFuzzer:
//   ltc_replay_TARGET PATH...        replays files and folders, sound inputs, and damaged copies of both (always the same)
//   ltc_replay_TARGET --seed FOLDER  writes the sound inputs there, for libFuzzer to begin with
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "fuzz/target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

namespace fs = std::filesystem;

// On a heap block of its own size, so that a sanitizer sees a read behind the end.
void feed(const std::string& input) {
  const std::vector<uint8_t> exact(input.begin(), input.end());
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
}

std::vector<std::string> read_all(const fs::path& path) {
  std::vector<fs::path> files;
  if (fs::is_directory(path)) {
    for (const auto& entry : fs::directory_iterator(path)) files.push_back(entry.path());
  } else {
    files.push_back(path);
  }
  std::ranges::sort(files);
  std::vector<std::string> inputs;
  for (const fs::path& file : files) {
    std::ifstream in(file, std::ios::binary);
    if (!in) std::fprintf(stderr, "cannot read %s\n", file.c_str()), std::exit(1);
    inputs.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  return inputs;
}

// One to four small changes.
std::string damaged(std::string input, const std::string& other, std::mt19937_64& random) {
  static constexpr uint8_t kBytes[] = {0, 1, 0x7f, 0x80, 0xff};
  for (uint64_t changes = 1 + random() % 4; changes > 0 && !input.empty(); --changes) {
    const size_t at = random() % input.size();
    switch (random() % 6) {
      case 0: input[at] = static_cast<char>(input[at] ^ (1 << random() % 8)); break;
      case 1: input[at] = static_cast<char>(kBytes[random() % std::size(kBytes)]); break;
      case 2: input.erase(at, 1 + random() % 16); break;
      case 3: input.insert(at, input.substr(random() % input.size(), random() % 32)); break;
      case 4: input.replace(at, std::string::npos, other.substr(std::min(at, other.size()))); break;
      default: input[at] = static_cast<char>(input[at] + static_cast<int>(random() % 9) - 4);
    }
  }
  return input;
}

void write_sound_inputs(const fs::path& folder) {
  fs::create_directories(folder);
  size_t number = 0;
  for (const std::string& input : ltc::fuzz::sound_inputs()) {
    std::ofstream(folder / ("sound" + std::to_string(number++)), std::ios::binary) << input;
  }
}

}  // namespace

int main(int argc, char** argv) {
  setenv("LTC_LOG", "off", 1);
  if (argc == 3 && std::string_view(argv[1]) == "--seed") return write_sound_inputs(argv[2]), 0;
  std::vector<std::string> inputs = ltc::fuzz::sound_inputs();
  for (const std::string& input : inputs) ltc::fuzz::require(ltc::fuzz::accept(input), "a sound input is taken");
  for (int i = 1; i < argc; ++i) std::ranges::move(read_all(argv[i]), std::back_inserter(inputs));
  for (const std::string& input : inputs) feed(input);
  constexpr size_t kDamaged = 5000;
  std::mt19937_64 random(0);
  for (size_t i = 0; i < kDamaged; ++i) {
    const std::string& other = inputs[random() % inputs.size()];
    feed(damaged(inputs[random() % inputs.size()], other, random));
  }
  std::printf("%zu inputs, %zu damaged ones\n", inputs.size(), kDamaged);
}
