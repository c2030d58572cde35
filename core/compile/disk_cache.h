// A folder of files by key, shared by processes and kept between them.
//
// File: "ltcprog\n", format, CRC-32 and size of the rest; the rest: a line about it for people, the key, the value. The name
// follows
//   from the key; the key is compared in full.
// Writing: to a temporary file that is renamed, so nobody sees half of one, and two that write one key leave one of the two.
// Reading: what is not such a file, is damaged, or of another format is ignored with one line in the log; it goes when its key is
//   written again, or with age.
// Size: beyond `limit_bytes` those go that were read or written longest ago.
// Errors never reach the caller: no folder, no room and no permission mean no cache. Any thread, any process.
#pragma once

#include <atomic>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace ltc {

class DiskCache {
 public:
  explicit DiskCache(std::filesystem::path folder, uint64_t limit_bytes = uint64_t{1} << 30)
      : folder_(std::move(folder)), limit_bytes_(limit_bytes) {}

  // Where LTC_CACHE_DIR says, or in the user's folder for caches; null with LTC_CACHE=0, or where there is no such folder.
  static DiskCache* instance();

  std::optional<std::string> find(std::string_view key);
  void insert(std::string_view key, std::string_view about, std::string_view value);

  // The file was read, but what it holds is of no use.
  void reject(std::string_view key, std::string_view why);

  std::filesystem::path path_of(std::string_view key) const;

 private:
  void write(const std::filesystem::path& path, std::string_view bytes);
  void shrink();

  const std::filesystem::path folder_;
  const uint64_t limit_bytes_;
  std::atomic<uint64_t> written_bytes_{UINT64_MAX};  // since the folder was last looked through; that of a fresh one is not known
  std::atomic<bool> failed_{false};                  // no more attempts to write, and no more lines about it
};

}  // namespace ltc
