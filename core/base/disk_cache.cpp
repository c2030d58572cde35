#include "core/base/disk_cache.h"

#include <algorithm>
#include <boost/crc.hpp>
#include <functional>
#include <ranges>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/env.h"
#include "core/base/hash.h"
#include "core/base/log.h"

namespace ltc {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMagic = "ltcprog\n";
constexpr uint32_t kFormat = 1;
constexpr std::string_view kSuffix = ".ltc";
constexpr size_t kHeadBytes = 24;
constexpr size_t kKeyDigits = 32;

uint32_t checksum(std::string_view bytes) {
  boost::crc_32_type crc;
  crc.process_bytes(bytes.data(), bytes.size());
  return crc.checksum();
}

std::string name_of(std::string_view key) {
  char name[kKeyDigits + 1];
  std::snprintf(name, sizeof name, "%016llx%016llx", static_cast<unsigned long long>(hash_bytes(1, key.data(), key.size())),
                static_cast<unsigned long long>(hash_bytes(2, key.data(), key.size())));
  return name + std::string(kSuffix);
}

// Takes so many hexadecimal digits from the front.
bool take_digits(std::string_view& text, size_t count) {
  const std::string_view digits = text.substr(0, count);
  if (digits.size() < count || digits.find_first_not_of("0123456789abcdef") != digits.npos) return false;
  text.remove_prefix(count);
  return true;
}

enum class Kind : uint8_t { kForeign, kProgram, kTemporary };

Kind kind_of(std::string_view name) {
  if (!take_digits(name, kKeyDigits) || !name.starts_with(kSuffix)) return Kind::kForeign;
  name.remove_prefix(kSuffix.size());
  if (name.empty()) return Kind::kProgram;
  if (!name.starts_with('.')) return Kind::kForeign;
  name.remove_prefix(1);
  return take_digits(name, 16) && name == ".tmp" ? Kind::kTemporary : Kind::kForeign;
}

// The file of that name, if it is of this cache. One that was abandoned early has only a part of the first bytes, or none.
std::optional<PrivateFile> find_own(const PrivateFolder& folder, const std::string& name, Kind kind) {
  try {
    auto file = folder.find(name);
    if (!file) return std::nullopt;
    const std::string begin = file->read(kMagic.size());
    const bool is_own = kind == Kind::kTemporary ? kMagic.starts_with(begin) : begin == kMagic;
    return is_own ? std::move(file) : std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::string pack_body(std::string_view key, std::string_view about, std::string_view value) {
  ByteWriter body;
  body.text(about);
  body.text(key);
  body.text(value);
  return body.take();
}

std::string pack_head(std::string_view body) {
  ByteWriter head;
  head.number(kFormat);
  head.number(checksum(body));
  head.number<uint64_t>(body.size());
  return std::string(kMagic) + head.take();
}

struct Entry {
  std::string key, value;
};

// Throws Error(kDataCorrupt) with what is wrong.
Entry unpack(PrivateFile& file, uint64_t limit_bytes) {
  const std::string head = file.read(kHeadBytes);
  if (!head.starts_with(kMagic) || head.size() < kHeadBytes) fail(Code::kDataCorrupt, "it is no such file");
  ByteReader fields(std::string_view(head).substr(kMagic.size()));
  if (fields.number<uint32_t>() != kFormat) fail(Code::kDataCorrupt, "it has another format");
  const auto crc = fields.number<uint32_t>();
  const auto size = fields.number<uint64_t>();
  if (file.size_bytes() - kHeadBytes != size) fail(Code::kDataCorrupt, "it is damaged");
  if (file.size_bytes() > limit_bytes) fail(Code::kDataCorrupt, "it is larger than the cache may be");
  const std::string body = file.read(size);
  if (body.size() != size || checksum(body) != crc) fail(Code::kDataCorrupt, "it is damaged");
  ByteReader in(body);
  in.text();
  const std::string_view key = in.text();
  return {std::string(key), std::string(in.text())};
}

// Empty for another key, whose name happens to be the same.
std::optional<std::string> value_of(PrivateFile& file, std::string_view key, uint64_t limit_bytes) {
  Entry entry = unpack(file, limit_bytes);
  if (entry.key != key) return std::nullopt;
  return std::move(entry.value);
}

struct Used {
  std::chrono::system_clock::time_point time;
  uint64_t size_bytes;
  std::string name;
};

std::vector<Used> programs_of(const PrivateFolder& folder) {
  std::vector<Used> programs;
  for (const std::string& name : folder.names()) {
    if (kind_of(name) != Kind::kProgram) continue;
    if (const auto file = find_own(folder, name, Kind::kProgram)) programs.push_back({file->used(), file->size_bytes(), name});
  }
  return programs;
}

fs::path default_folder() {
  if (const std::string named = env::get(env::kCacheDir); !named.empty()) return named;
  if (const std::string caches = env::of_system("XDG_CACHE_HOME"); !caches.empty()) return fs::path(caches) / "ltc";
  const std::string home = env::of_system("HOME");
  return home.empty() ? fs::path() : fs::path(home) / ".cache" / "ltc";
}

std::vector<fs::path> shared_folders() {
  std::vector<fs::path> folders;
  for (const auto part : std::views::split(env::get(env::kCacheShared), ':')) {
    if (!part.empty()) folders.emplace_back(part.begin(), part.end());
  }
  return folders;
}

}  // namespace

DiskCache* DiskCache::instance() {
  static DiskCache* const instance = []() -> DiskCache* {
    if (!env::is_set(env::kCache)) return nullptr;
    if (env::is_elevated()) {
      log::info("no programs are kept on disk: this process has more rights than its user");
      return nullptr;
    }
    const fs::path folder = default_folder();
    return folder.empty() ? nullptr : new DiskCache(folder, kLimitBytes, shared_folders());
  }();
  return instance;
}

fs::path DiskCache::path_of(std::string_view key) const { return folder_ / name_of(key); }

std::optional<PrivateFolder> DiskCache::folder() {
  if (is_off_) return std::nullopt;
  try {
    return PrivateFolder::open(folder_);
  } catch (const Error& error) {
    if (!is_off_.exchange(true)) log::warn("no programs are kept on disk: ", error.what());
    return std::nullopt;
  }
}

std::optional<std::string> DiskCache::find(std::string_view key) {
  const auto folder = this->folder();
  if (!folder) return find_shared(key);
  try {
    auto file = folder->find(name_of(key));
    if (!file) return find_shared(key);
    auto value = value_of(*file, key, limit_bytes_);
    if (value) file->touch();
    return value;
  } catch (const Error& error) {
    reject(key, error.what());
    return std::nullopt;
  }
}

std::optional<std::string> DiskCache::find_shared(std::string_view key) {
  for (const fs::path& path : shared_) {
    std::string at;  // the file; errors of the folder name it
    try {
      const auto folder = PrivateFolder::open(path, Owner::kUserOrRoot);
      if (!folder) fail(Code::kInvalidArgument, path.string(), ": there is no such folder");
      at = cat((path / name_of(key)).string(), ": ");
      auto file = folder->find(name_of(key));
      if (!file) continue;
      if (auto value = value_of(*file, key, limit_bytes_)) return value;
    } catch (const Error& error) {
      if (!shared_failed_.exchange(true)) log::warn("ignored of LTC_CACHE_SHARED: ", at, error.what());
    }
  }
  return std::nullopt;
}

void DiskCache::visit_newest(const std::function<bool(std::string key, std::string value)>& visit) {
  const auto visit_folder = [&](const PrivateFolder& folder) {
    std::vector<Used> programs = programs_of(folder);
    std::ranges::sort(programs, std::greater(), &Used::time);
    for (const Used& program : programs) {
      try {
        auto file = folder.find(program.name);
        if (!file) continue;
        Entry entry = unpack(*file, limit_bytes_);
        if (!visit(std::move(entry.key), std::move(entry.value))) return false;
      } catch (const Error&) {  // find() tells of it, if anybody asks for it
      }
    }
    return true;
  };
  if (const auto folder = this->folder(); folder && !visit_folder(*folder)) return;
  for (const fs::path& path : shared_) {
    try {
      const auto folder = PrivateFolder::open(path, Owner::kUserOrRoot);
      if (folder && !visit_folder(*folder)) return;
    } catch (const Error&) {
    }
  }
}

void DiskCache::touch(std::string_view key) {
  const auto folder = this->folder();
  if (!folder) return;
  try {
    if (auto file = folder->find(name_of(key))) file->touch();
  } catch (const Error&) {
  }
}

void DiskCache::reject(std::string_view key, std::string_view why) {
  log::warn("a file of the program cache is ignored: ", path_of(key).string(), ": ", why);
}

void DiskCache::remove(std::string_view key) {
  if (const auto folder = this->folder()) folder->remove(name_of(key));
}

void DiskCache::insert(std::string_view key, std::string_view about, std::string_view value) {
  if (failed_ || is_off_ || key.size() + about.size() + value.size() > limit_bytes_) return;
  try {
    auto folder = this->folder();
    if (is_off_) return;
    if (!folder) folder.emplace(PrivateFolder::make(folder_));
    const std::string body = pack_body(key, about, value);
    if (body.size() + kHeadBytes > limit_bytes_) return;
    folder->write(name_of(key), {pack_head(body), body});
    const uint64_t written = written_bytes_ == UINT64_MAX ? UINT64_MAX : written_bytes_ += body.size();
    if (written > limit_bytes_ / 16) shrink(*folder);
  } catch (const std::exception& error) {
    if (!failed_.exchange(true)) log::warn("no more programs are kept on disk: ", error.what());
  }
}

DiskCache::Contents DiskCache::contents() {
  Contents result{folder_};
  const auto folder = this->folder();
  for (const Used& program : folder ? programs_of(*folder) : std::vector<Used>()) {
    ++result.programs;
    result.bytes += program.size_bytes;
  }
  return result;
}

// Other processes may do the same: a file that is gone is no error.
void DiskCache::shrink(const PrivateFolder& folder) {
  constexpr auto kAbandoned = std::chrono::hours(1);  // a temporary file of a process that ended before it was renamed
  for (const std::string& name : folder.names()) {
    if (kind_of(name) != Kind::kTemporary) continue;
    const auto file = find_own(folder, name, Kind::kTemporary);
    if (file && std::chrono::system_clock::now() - file->used() > kAbandoned) folder.remove(name);
  }
  std::vector<Used> programs = programs_of(folder);
  uint64_t total = 0;
  for (const Used& program : programs) total += program.size_bytes;
  written_bytes_ = 0;
  std::ranges::sort(programs, {}, &Used::time);
  for (const Used& program : programs) {
    if (total <= limit_bytes_) break;
    folder.remove(program.name);
    total -= program.size_bytes;
  }
}

}  // namespace ltc
