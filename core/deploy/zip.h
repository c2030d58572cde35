// Zip files whose entries are stored as they are, so that a mapped file is read in place.
//
// Format: APPNOTE.TXT 6.3.10 of PKWARE, with Zip64 for what needs it. The data of each entry begins at a multiple of kAlignment
//   bytes of the file. The same entries give the same bytes: no times, no names of users or systems.
// Errors: DATA_CORRUPT for a file that breaks the format, UNSUPPORTED for one that uses a part of it which is not read here
//   (compression, encryption, several volumes). Both name the file and the entry.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ltc::deploy {

inline constexpr size_t kAlignment = 64;

struct ZipEntry {
  std::string_view name;
  std::string_view data;
  uint32_t crc32;
};

uint32_t crc32_of(std::string_view data);

// A file in memory, mapped, as it was when it was opened. Immutable; any thread. It must not be written meanwhile: who replaces
// it writes another file and renames that.
class MappedFile {
 public:
  // Throws NOT_FOUND for a file that cannot be opened, or is not a regular one.
  static std::shared_ptr<const MappedFile> open(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::string_view bytes() const { return {static_cast<const char*>(data_), size_}; }

 private:
  MappedFile(void* data, size_t size) : data_(data), size_(size) {}

  void* data_;
  size_t size_;
};

// The entries of a zip file, in the order of its directory. They point into `bytes`. `path` is for errors. Checks the whole
// structure, so that no entry lies outside of the file or over another one; checks no CRC.
std::vector<ZipEntry> read_zip(std::string_view bytes, const std::string& path);

// Writes a file beside `path` and renames it, so that `path` is whole at each moment. Throws RESOURCE_EXHAUSTED where the disk is
// full, NOT_FOUND where nothing can be written there.
void write_file(const std::string& path, std::span<const std::string_view> parts);

// The same for a zip file. Names are distinct, not empty, and have at most 65,535 bytes.
struct NewEntry {
  std::string name;
  std::vector<std::string_view> parts;  // its data, one behind the other; alive meanwhile
};
void write_zip(const std::string& path, std::span<const NewEntry> entries);
std::string zip_bytes(std::span<const NewEntry> entries);  // the same in memory

}  // namespace ltc::deploy
