// A file of the disk cache. Input: a flag; then the whole file, or with the flag its body, for which the head is made.
#include <unistd.h>

#include <boost/crc.hpp>
#include <filesystem>
#include <fstream>

#include "core/base/bytes.h"
#include "core/base/disk_cache.h"
#include "fuzz/target.h"

namespace ltc::fuzz {
namespace {

struct Folder {
  std::filesystem::path path = std::filesystem::temp_directory_path() / ("ltc_fuzz_cache_" + std::to_string(getpid()));
  DiskCache cache{path};
  Folder() { cache.insert("key", "about", "value"); }
  ~Folder() { std::filesystem::remove_all(path); }
};
Folder& folder() {
  static Folder made;
  return made;
}

std::string with_head(std::string_view body) {
  boost::crc_32_type crc;
  crc.process_bytes(body.data(), body.size());
  ByteWriter head;
  head.number<uint32_t>(1);
  head.number<uint32_t>(crc.checksum());
  head.number<uint64_t>(body.size());
  return "ltcprog\n" + head.take() + std::string(body);
}

std::string body() {
  ByteWriter body;
  for (const char* text : {"about", "key", "value"}) body.text(text);
  return body.take();
}

}  // namespace

bool accept(std::string_view input) {
  DiskCache& cache = folder().cache;
  const std::string file = take_flag(input) ? with_head(input) : std::string(input);
  std::ofstream(cache.path_of("key"), std::ios::binary | std::ios::trunc) << file;
  const auto value = cache.find("key");
  if (!value) return false;
  require(file.find(*value) != file.npos, "a value is a part of its file");
  cache.insert("key", "about", *value);
  require(cache.find("key") == value, "a value that is written is found");
  return true;
}

std::vector<std::string> sound_inputs() { return {'\1' + body(), '\0' + with_head(body())}; }

}  // namespace ltc::fuzz
