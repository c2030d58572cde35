// A folder of files by key, shared by processes and kept between them.
//
// File: "ltcprog\n", format, CRC-32 and size of the rest; the rest: a line about it for people, the key, the value. Its name is
//   32 hexadecimal digits that follow from the key, and ".ltc"; the key is compared in full.
// Trust: a value is run as code, so folder and files must be the process' user's alone (base/private_folder.h). Otherwise there
//   is no cache, and one line in the log says why. In a process with more rights than its user there is none either.
// Writing: to a temporary file that is renamed, so nobody sees half of one, and two that write one key leave one of the two.
// Reading: the head tells the size before anything else is read. A file that is damaged, not trusted, or of another format is
//   ignored with one line in the log; it goes when its key is written again, or with age.
// Size: beyond `limit_bytes` those go that were read or written longest ago. Only files with such names that begin with the
//   head's first bytes are counted and deleted.
// Shared folders, such as one that comes with an image, are only read, after the own one. Root may own them too.
// Errors never reach the caller: no folder, no room and no permission mean no cache. Any thread, any process.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/private_folder.h"

namespace ltc {

class DiskCache {
 public:
  static constexpr uint64_t kLimitBytes = uint64_t{1} << 30;
  explicit DiskCache(std::filesystem::path folder, uint64_t limit_bytes = kLimitBytes,
                     std::vector<std::filesystem::path> shared = {})
      : folder_(std::move(folder)), limit_bytes_(limit_bytes), shared_(std::move(shared)) {}

  // Where LTC_CACHE_DIR says, or in the user's folder for caches, and LTC_CACHE_SHARED; null with LTC_CACHE=0, where there is no
  // such folder, or in a process with more rights than its user.
  static DiskCache* instance();

  std::optional<std::string> find(std::string_view key);
  // Those that were written or read last, newest first, the own ones before the shared, until `visit` returns false. Counts as no
  // reading. Ignores in silence what find() ignores with a line.
  void visit_newest(const std::function<bool(std::string key, std::string value)>& visit);
  void touch(std::string_view key);  // one that was visited is read now
  void insert(std::string_view key, std::string_view about, std::string_view value);

  // The file was read, but what it holds is of no use.
  void reject(std::string_view key, std::string_view why);
  void remove(std::string_view key);

  std::filesystem::path path_of(std::string_view key) const;

  struct Contents {
    std::filesystem::path folder;
    uint64_t programs = 0, bytes = 0;
  };
  Contents contents();  // no programs where the folder is not to be trusted

 private:
  std::optional<PrivateFolder> folder();
  std::optional<std::string> find_shared(std::string_view key);
  void shrink(const PrivateFolder& folder);

  const std::filesystem::path folder_;
  const uint64_t limit_bytes_;
  const std::vector<std::filesystem::path> shared_;
  std::atomic<uint64_t> written_bytes_{UINT64_MAX};  // since the folder was last looked through; that of a fresh one is not known
  std::atomic<bool> is_off_{false};                  // the folder is not to be trusted
  std::atomic<bool> shared_failed_{false};           // one line about shared folders is enough
  std::atomic<bool> failed_{false};                  // no more attempts to write, and no more lines about it
};

}  // namespace ltc
