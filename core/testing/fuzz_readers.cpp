// Feeds damaged bytes to all readers of bytes from outside: of a graph and a program in binary form, a file of the disk cache, a
// graph as text. Each must answer with an Error or with something that can be used, whatever the bytes; sanitizers watch.
//
// Built by clang with -fsanitize=fuzzer (LTC_LIBFUZZER) libFuzzer chooses the inputs. Otherwise main() damages sound ones:
//   ltc_fuzz_readers [RUNS [SEED]]
#include <unistd.h>

#include <array>
#include <boost/crc.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include "core/base/disk_cache.h"
#include "core/compile/cache/saved_program.h"
#include "core/compile/lowering/abi_graph.h"
#include "core/compile/lowering/compiler.h"
#include "core/ir/binary.h"
#include "core/ir/text.h"
#include "core/testing/test_plugins.h"

namespace ltc {
namespace {

// sin is not among the test plugin's ops: three steps.
constexpr const char* kTexts[] = {
    R"(graph(%0: f32[2] -> 0, %1: f64 scalar, %2: f32[2], %3: f64 scalar) {
    %4: f32[2] = aten::neg(%0)  # a.py:1
    %5: f32[2] = aten::sin(%4)  # a.py:2
    %6: f32[2] = aten::mul.Tensor(%5, %3)  # a.py:3
    %7: f32[2] = aten::add.Tensor(%4, %2)
    return %6, %7 })",
    R"(graph(%0: f32[2] -> 0, %1: f64 scalar, %2: bf16[2,0,3;1,2,2], %3: i64 scalar) {
    %4: f32[2] = aten::neg(%0)
    %5: f32[2], _ = aten::sin(%4, none) {a=none, b=1, c=nan, d=true, e="x\n\x01", f=f32, g=[1,2], h=[1.0,-0.0], i=["p","q"]}  # a.py:2
    %6: f32[2] = aten::mul.Tensor(%5, %3) {j=[], k=floats[], l=strings[]}
    return %6, %5 })",
    "graph() { %0: f8e4m3fn[1024,1024] = aten::zeros() return %0 }",
};

const Graph& recorded() {
  static const Graph graph = parse(kTexts[0]);
  return graph;
}

host::PluginDevice& device() {
  static auto* opened = testing::load_plugin("test")->open_device(0).release();
  return *opened;
}

struct Folder {
  std::filesystem::path path = std::filesystem::temp_directory_path() / cat("ltc_fuzz_readers_", getpid());
  DiskCache cache{path};
  Folder() { cache.insert("key", "about", "value"); }
  ~Folder() { std::filesystem::remove_all(path); }
};
Folder& folder() {
  static Folder made;
  return made;
}

// Whoever takes a graph prints it, writes it, and hands it to a plugin.
void use(const Graph& graph) {
  ByteWriter out;
  write_graph(out, graph);
  const std::string bytes = out.take();
  ByteReader in(bytes);
  if (!same(read_graph(in), graph) || print(graph).empty()) std::abort();
  AbiGraph abi(graph);
  if (abi.get()->value_count != graph.types.size()) std::abort();
}

void read_binary(std::string_view bytes) {
  ByteReader in(bytes);
  use(read_graph(in));
}

void read_program(std::string_view bytes) {
  const auto program = load_program(bytes, recorded(), device());
  use(program->graph);
  for (const Step& step : program->steps) use(step.graph);
}

void read_file(std::string_view bytes) {
  std::ofstream(folder().cache.path_of("key"), std::ios::binary) << bytes;
  folder().cache.find("key");
}

void read_text(std::string_view bytes) { print(parse(bytes)); }

constexpr std::array kReaders = {&read_binary, &read_program, &read_text, &read_file};

// The first byte chooses the reader.
bool feed(std::string_view input) {
  if (input.empty()) return false;
  try {
    kReaders[static_cast<unsigned char>(input[0]) % kReaders.size()](input.substr(1));
    return true;
  } catch (const Error&) {
    return false;
  }
}

std::vector<std::string> sound_inputs() {
  std::vector<std::string> inputs;
  for (const char* text : kTexts) {
    ByteWriter out;
    write_graph(out, parse(text));
    inputs.push_back('\0' + out.take());
    inputs.push_back('\2' + std::string(text));
  }
  inputs.push_back('\1' + save_program(*compile(recorded(), device()), recorded(), device()));
  std::ifstream file(folder().cache.path_of("key"), std::ios::binary);
  inputs.push_back('\3' + std::string(std::istreambuf_iterator<char>(file), {}));
  return inputs;
}

class Damage {
 public:
  explicit Damage(uint64_t seed) : random_(seed) {}

  std::string of(const std::vector<std::string>& sound) {
    std::string input = sound[below(sound.size())];
    if (input[0] == 3 && below(32)) input = sound[below(sound.size() - 1)];  // a file costs much more than the others
    for (uint64_t changes = 1 + below(below(4) ? 2 : 8); changes > 0; --changes) change(input, sound);
    if (input[0] == 3 && input.size() > 25 && below(2)) make_checksum_right(input);
    return input;
  }
  uint64_t below(uint64_t bound) { return random_() % bound; }

 private:
  void change(std::string& input, const std::vector<std::string>& sound) {
    static constexpr uint64_t kNumbers[] = {
        0, 1, 2, 21, 22, 0x7f, 0x7fffffff, 0x80000000, 0xffffffff, uint64_t{1} << 61, INT64_MAX, uint64_t{1} << 63, UINT64_MAX};
    if (input.size() < 2) return;
    const size_t at = 1 + below(input.size() - 1), left = input.size() - at;
    const size_t width = std::min<size_t>(size_t{1} << below(4), left);
    switch (below(8)) {
      case 0: input[at] = static_cast<char>(input[at] ^ (1 << below(8))); break;
      case 1: input[at] = static_cast<char>(random_()); break;
      case 2: input.replace(at, width, bytes_of(kNumbers[below(std::size(kNumbers))], width)); break;
      case 3: add_to_number(input, at, width); break;
      case 4: input.erase(at, 1 + below(std::min<size_t>(left, 16))); break;
      case 5: input.insert(at, input.substr(1 + below(input.size() - 1), below(32))); break;
      case 6: input.replace(at, width, sound[below(sound.size())], 1, width); break;
      default:
        if (below(8) == 0)
          input.resize(at);
        else
          std::swap(input[at], input[1 + below(input.size() - 1)]);
    }
  }
  void add_to_number(std::string& input, size_t at, size_t width) {
    uint64_t number = 0;
    std::memcpy(&number, input.data() + at, width);
    number += below(9) - 4;
    input.replace(at, width, bytes_of(number, width));
  }
  static std::string bytes_of(uint64_t number, size_t width) { return {reinterpret_cast<const char*>(&number), width}; }
  static void make_checksum_right(std::string& file) {
    boost::crc_32_type crc;
    crc.process_bytes(file.data() + 25, file.size() - 25);
    file.replace(13, 4, bytes_of(crc.checksum(), 4)).replace(17, 8, bytes_of(file.size() - 25, 8));
  }

  std::mt19937_64 random_;
};

}  // namespace
}  // namespace ltc

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ltc::feed({reinterpret_cast<const char*>(data), size});
  return 0;
}

#ifndef LTC_LIBFUZZER
int main(int argc, char** argv) {
  const uint64_t runs = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 20000;
  const uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 0;
  setenv("LTC_LOG", "off", 1);
  const std::vector<std::string> sound = ltc::sound_inputs();
  for (const std::string& input : sound) {
    if (!ltc::feed(input)) return std::fprintf(stderr, "a sound input is refused\n"), 1;
  }
  ltc::Damage damage(seed);
  uint64_t accepted = 0;
  for (uint64_t run = 0; run < runs; ++run) accepted += ltc::feed(damage.of(sound));
  std::printf("seed %llu: %llu inputs, %llu accepted\n", static_cast<unsigned long long>(seed),
              static_cast<unsigned long long>(runs), static_cast<unsigned long long>(accepted));
  return 0;
}
#endif
