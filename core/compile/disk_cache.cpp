#include "core/compile/disk_cache.h"

#include <unistd.h>

#include <algorithm>
#include <boost/crc.hpp>
#include <fstream>
#include <vector>

#include "core/base/env.h"
#include "core/base/hash.h"
#include "core/base/log.h"
#include "core/ir/binary.h"

namespace ltc {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMagic = "ltcprog\n";
constexpr uint32_t kFormat = 1;
constexpr const char* kSuffix = ".ltc";

uint32_t checksum(std::string_view bytes) {
  boost::crc_32_type crc;
  crc.process_bytes(bytes.data(), bytes.size());
  return crc.checksum();
}

std::optional<std::string> read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(in), {});
}

std::string pack(std::string_view key, std::string_view about, std::string_view value) {
  ByteWriter body;
  body.text(about);
  body.text(key);
  body.text(value);
  const std::string bytes = body.take();
  ByteWriter out;
  out.number(kFormat);
  out.number(checksum(bytes));
  out.number<uint64_t>(bytes.size());
  return std::string(kMagic) + out.take() + bytes;
}

// Empty for another key, whose name happens to be the same. Throws Error(kDataCorrupt) with what is wrong.
std::optional<std::string> unpack(std::string_view file, std::string_view key) {
  if (!file.starts_with(kMagic)) fail(Code::kDataCorrupt, "it is no such file");
  ByteReader head(file.substr(kMagic.size()));
  if (head.number<uint32_t>() != kFormat) fail(Code::kDataCorrupt, "it has another format");
  const auto crc = head.number<uint32_t>();
  const auto size = head.number<uint64_t>();
  const std::string_view body = file.substr(kMagic.size() + 16);
  if (body.size() != size || checksum(body) != crc) fail(Code::kDataCorrupt, "it is damaged");
  ByteReader in(body);
  in.text();
  if (in.text() != key) return std::nullopt;
  return std::string(in.text());
}

fs::path default_folder() {
  if (const std::string named = env::get(env::kCacheDir); !named.empty()) return named;
  if (const std::string caches = env::of_system("XDG_CACHE_HOME"); !caches.empty()) return fs::path(caches) / "ltc";
  const std::string home = env::of_system("HOME");
  return home.empty() ? fs::path() : fs::path(home) / ".cache" / "ltc";
}

}  // namespace

DiskCache* DiskCache::instance() {
  static DiskCache* const instance = [] {
    const fs::path folder = env::is_set(env::kCache) ? default_folder() : fs::path();
    return folder.empty() ? nullptr : new DiskCache(folder);
  }();
  return instance;
}

fs::path DiskCache::path_of(std::string_view key) const {
  char name[40];
  std::snprintf(name, sizeof name, "%016llx%016llx", static_cast<unsigned long long>(hash_bytes(1, key.data(), key.size())),
                static_cast<unsigned long long>(hash_bytes(2, key.data(), key.size())));
  return folder_ / (std::string(name) + kSuffix);
}

std::optional<std::string> DiskCache::find(std::string_view key) {
  const fs::path path = path_of(key);
  const auto file = read_file(path);
  if (!file) return std::nullopt;
  try {
    auto value = unpack(*file, key);
    std::error_code ignored;
    if (value) fs::last_write_time(path, fs::file_time_type::clock::now(), ignored);
    return value;
  } catch (const Error& error) {
    reject(key, error.what());
    return std::nullopt;
  }
}

void DiskCache::reject(std::string_view key, std::string_view why) {
  log::warn("a file of the program cache is ignored: ", path_of(key).string(), ": ", why);
}

void DiskCache::insert(std::string_view key, std::string_view about, std::string_view value) {
  if (failed_) return;
  try {
    const std::string bytes = pack(key, about, value);
    if (bytes.size() > limit_bytes_) return;
    write(path_of(key), bytes);
    const uint64_t written = written_bytes_ == UINT64_MAX ? UINT64_MAX : written_bytes_ += bytes.size();
    if (written > limit_bytes_ / 16) shrink();
  } catch (const std::exception& error) {
    if (!failed_.exchange(true)) log::warn("no more programs are kept on disk: ", error.what());
  }
}

void DiskCache::write(const fs::path& path, std::string_view bytes) {
  if (!fs::exists(folder_)) {
    fs::create_directories(folder_);
    fs::permissions(folder_, fs::perms::owner_all);
  }
  static std::atomic<uint64_t> count{0};
  const fs::path temporary = path.string() + cat(".", getpid(), ".", count++, ".tmp");
  std::ofstream out(temporary, std::ios::binary);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out.close();
  std::error_code ignored;
  if (!out) {
    fs::remove(temporary, ignored);
    fail(Code::kResourceExhausted, "cannot write ", temporary.string());
  }
  try {
    fs::rename(temporary, path);
  } catch (...) {
    fs::remove(temporary, ignored);
    throw;
  }
}

// Other processes may do the same: a file that is gone is no error.
void DiskCache::shrink() {
  struct File {
    fs::file_time_type used;
    uint64_t size_bytes;
    fs::path path;
  };
  constexpr auto kAbandoned = std::chrono::hours(1);  // a temporary file of a process that ended before it was renamed
  std::vector<File> files;
  uint64_t total = 0;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_)) {
    File file{entry.last_write_time(ignored), entry.file_size(ignored), entry.path()};
    if (ignored) continue;
    if (file.path.extension() == kSuffix) {
      total += file.size_bytes;
      files.push_back(std::move(file));
    } else if (file.path.extension() == ".tmp" && fs::file_time_type::clock::now() - file.used > kAbandoned) {
      fs::remove(file.path, ignored);
    }
  }
  written_bytes_ = 0;
  std::ranges::sort(files, {}, &File::used);
  for (const File& file : files) {
    if (total <= limit_bytes_) break;
    fs::remove(file.path, ignored);
    total -= file.size_bytes;
  }
}

}  // namespace ltc
