#include "core/deploy/zip.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/crc.hpp>
#include <cerrno>
#include <cstring>
#include <set>

#include "core/base/bytes.h"
#include "core/base/error.h"

namespace ltc::deploy {
namespace {

constexpr uint32_t kLocalHeader = 0x04034b50, kDirectoryEntry = 0x02014b50, kDirectoryEnd = 0x06054b50;
constexpr uint32_t kDirectoryEnd64 = 0x06064b50, kDirectoryEndLocator64 = 0x07064b50;
constexpr uint16_t kExtraZip64 = 1, kExtraPadding = 0xd935;  // the latter is of Android's zipalign
constexpr uint16_t kVersion = 45;                            // that reads Zip64
constexpr uint16_t kNamesAreUtf8 = 1 << 11;
constexpr uint32_t kIn64 = UINT32_MAX;  // the real number is in the Zip64 part
constexpr uint16_t kFirstDay = 1 << 5 | 1;

// Reads numbers in the file's order of bytes, which is that of the host.
static_assert(std::endian::native == std::endian::little, "zip files are little-endian");

class Parser {
 public:
  Parser(std::string_view bytes, const std::string& path) : bytes_(bytes), path_(path) {}

  std::vector<ZipEntry> run() {
    find_directory();
    std::vector<ZipEntry> entries;
    std::vector<std::pair<uint64_t, uint64_t>> ranges;
    std::set<std::string_view> names;
    ByteReader in(cut(directory_begin_, directory_size_, "its directory"));
    for (uint64_t i = 0; i < entry_count_; ++i) {
      entries.push_back(read_entry(in, ranges));
      if (!names.insert(entries.back().name).second) corrupt("two entries are called ", entries.back().name);
    }
    if (!in.at_end()) corrupt("its directory has more than ", entry_count_, " entries");
    std::ranges::sort(ranges);
    for (size_t i = 0; i < ranges.size(); ++i) {
      const uint64_t end = i + 1 < ranges.size() ? ranges[i + 1].first : directory_begin_;
      if (ranges[i].second > end) corrupt("two of its entries overlap");
    }
    return entries;
  }

 private:
  template <typename... Parts>
  [[noreturn]] void corrupt(const Parts&... parts) const {
    fail(Code::kDataCorrupt, path_, " is damaged, or is no archive: ", parts...);
  }

  std::string_view cut(uint64_t begin, uint64_t size, std::string_view what) const {
    if (begin > bytes_.size() || size > bytes_.size() - begin)
      corrupt(what, " would be at bytes ", begin, " to ", begin + size, " of ", bytes_.size());
    return bytes_.substr(begin, size);
  }

  // The end of the directory is the end of the file: no comment, which nobody here writes.
  void find_directory() {
    constexpr size_t kSize = 22;
    if (bytes_.size() < kSize) corrupt("it has ", bytes_.size(), " bytes");
    const uint64_t at = bytes_.size() - kSize;
    ByteReader in(cut(at, kSize, "its end"));
    if (in.number<uint32_t>() != kDirectoryEnd) corrupt("it does not end as a zip file without a comment does");
    const auto volume = in.number<uint16_t>(), directory_volume = in.number<uint16_t>();
    const auto here = in.number<uint16_t>();
    entry_count_ = in.number<uint16_t>();
    directory_size_ = in.number<uint32_t>();
    directory_begin_ = in.number<uint32_t>();
    if (volume != 0 || directory_volume != 0 || here != entry_count_)
      fail(Code::kUnsupported, path_, " is one of several volumes of a zip file");
    uint64_t end = at;
    if (entry_count_ == UINT16_MAX || directory_size_ == kIn64 || directory_begin_ == kIn64) end = find_directory64(at);
    if (directory_begin_ > end || directory_size_ != end - directory_begin_)
      corrupt("its directory does not end where it should");
    if (entry_count_ > directory_size_ / 46) corrupt("its directory is too short for ", entry_count_, " entries");
  }

  // Returns where the directory ends.
  uint64_t find_directory64(uint64_t at) {
    constexpr size_t kLocatorSize = 20, kEndSize = 56;
    if (at < kLocatorSize) corrupt("it has no Zip64 part");
    ByteReader locator(cut(at - kLocatorSize, kLocatorSize, "the place of its Zip64 part"));
    if (locator.number<uint32_t>() != kDirectoryEndLocator64) corrupt("it has no Zip64 part");
    locator.number<uint32_t>();
    const auto end = locator.number<uint64_t>();
    ByteReader in(cut(end, kEndSize, "its Zip64 part"));
    if (in.number<uint32_t>() != kDirectoryEnd64 || in.number<uint64_t>() != kEndSize - 12) corrupt("its Zip64 part");
    in.number<uint32_t>(), in.number<uint64_t>();  // versions, volumes
    const auto here = in.number<uint64_t>();
    entry_count_ = in.number<uint64_t>();
    directory_size_ = in.number<uint64_t>();
    directory_begin_ = in.number<uint64_t>();
    if (here != entry_count_) fail(Code::kUnsupported, path_, " is one of several volumes of a zip file");
    return end;
  }

  ZipEntry read_entry(ByteReader& in, std::vector<std::pair<uint64_t, uint64_t>>& ranges) {
    if (in.left() < 46 || in.number<uint32_t>() != kDirectoryEntry) corrupt("its directory");
    in.number<uint32_t>();  // versions
    const auto flags = in.number<uint16_t>(), method = in.number<uint16_t>();
    in.number<uint32_t>();  // time
    ZipEntry entry{.crc32 = in.number<uint32_t>()};
    uint64_t packed = in.number<uint32_t>(), size = in.number<uint32_t>();
    const auto name_size = in.number<uint16_t>(), extra_size = in.number<uint16_t>(), comment_size = in.number<uint16_t>();
    in.number<uint16_t>(), in.number<uint16_t>(), in.number<uint32_t>();  // volume, attributes
    uint64_t header = in.number<uint32_t>();
    if (in.left() < size_t{name_size} + extra_size + comment_size) corrupt("its directory");
    entry.name = in.take(name_size);
    ByteReader extra(in.take(extra_size));
    in.take(comment_size);
    if (entry.name.empty()) corrupt("an entry has no name");
    read_zip64(extra, entry.name, {&size, &packed, &header});
    if (flags & 1) fail(Code::kUnsupported, path_, ": entry ", entry.name, " is encrypted");
    if (method != 0 || packed != size)
      fail(Code::kUnsupported, path_, ": entry ", entry.name, " is compressed (method ", method, "): entries are to be stored");
    const uint64_t begin = data_begin(entry.name, header);
    entry.data = cut(begin, size, entry.name);
    ranges.emplace_back(header, begin + size);
    return entry;
  }

  void read_zip64(ByteReader& extra, std::string_view name, std::initializer_list<uint64_t*> numbers) const {
    while (extra.left() >= 4) {
      const auto id = extra.number<uint16_t>(), size = extra.number<uint16_t>();
      if (size > extra.left()) corrupt("the extra fields of entry ", name);
      ByteReader field(extra.take(size));
      if (id != kExtraZip64) continue;
      for (uint64_t* number : numbers) {
        if (*number == kIn64 && field.left() >= 8) *number = field.number<uint64_t>();
      }
    }
  }

  uint64_t data_begin(std::string_view name, uint64_t header) const {
    constexpr size_t kSize = 30;
    ByteReader in(cut(header, kSize, name));
    if (in.number<uint32_t>() != kLocalHeader) corrupt("entry ", name, " does not begin at byte ", header);
    in.take(22);  // as in the directory
    const auto name_size = in.number<uint16_t>(), extra_size = in.number<uint16_t>();
    if (cut(header + kSize, name_size, name) != name) corrupt("entry ", name, " has another name where it begins");
    return header + kSize + name_size + extra_size;
  }

  const std::string_view bytes_;
  const std::string& path_;
  uint64_t directory_begin_ = 0, directory_size_ = 0, entry_count_ = 0;
};

// A file that takes its final name at the end, or goes.
class NewFile {
 public:
  explicit NewFile(const std::string& path) : path_(path), temporary_(cat(path, ".", getpid(), ".tmp")) {
    descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor_ < 0) stop("cannot be written");
  }
  ~NewFile() {
    if (descriptor_ < 0) return;
    ::close(descriptor_);
    ::unlink(temporary_.c_str());
  }

  uint64_t size() const { return size_; }

  void write(std::string_view bytes) {
    size_ += bytes.size();
    while (!bytes.empty()) {
      const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) stop("cannot be written");
      bytes.remove_prefix(static_cast<size_t>(written));
    }
  }

  void finish() {
    if (::fsync(descriptor_) != 0) stop("cannot be written");
    if (::rename(temporary_.c_str(), path_.c_str()) != 0) stop("cannot get its name");
    ::close(std::exchange(descriptor_, -1));
  }

 private:
  [[noreturn]] void stop(const char* what) const {
    const int error = errno;
    const bool is_full = error == ENOSPC || error == EDQUOT || error == EFBIG;
    fail(is_full ? Code::kResourceExhausted : Code::kNotFound, path_, " ", what, ": ", std::strerror(error));
  }

  const std::string path_, temporary_;
  int descriptor_;
  uint64_t size_ = 0;
};

struct Written {
  uint32_t crc32;
  uint64_t size, header;
};

uint32_t in32(uint64_t number) { return static_cast<uint32_t>(std::min<uint64_t>(number, kIn64)); }

std::string local_header(const NewEntry& entry, const Written& written) {
  const bool is_long = written.size >= kIn64;
  ByteWriter out;
  out.number(kLocalHeader), out.number(kVersion), out.number(kNamesAreUtf8), out.number<uint16_t>(0);
  out.number<uint16_t>(0), out.number(kFirstDay), out.number(written.crc32);
  out.number(is_long ? kIn64 : in32(written.size)), out.number(is_long ? kIn64 : in32(written.size));
  out.number(static_cast<uint16_t>(entry.name.size()));
  const size_t zip64 = is_long ? 20 : 0;
  const size_t begin = written.header + 30 + entry.name.size() + zip64 + 4;  // of the data, without padding
  const size_t padding = (kAlignment - begin % kAlignment) % kAlignment;
  out.number(static_cast<uint16_t>(zip64 + 4 + padding));
  out.bytes(entry.name);
  if (is_long) {
    out.number(kExtraZip64), out.number<uint16_t>(16), out.number(written.size), out.number(written.size);
  }
  out.number(kExtraPadding), out.number(static_cast<uint16_t>(padding)), out.bytes(std::string(padding, '\0'));
  return out.take();
}

std::string directory_entry(const NewEntry& entry, const Written& written) {
  ByteWriter extra;
  if (written.size >= kIn64) extra.number(written.size), extra.number(written.size);
  if (written.header >= kIn64) extra.number(written.header);
  const std::string numbers = extra.take();
  ByteWriter out;
  out.number(kDirectoryEntry), out.number(kVersion), out.number(kVersion), out.number(kNamesAreUtf8), out.number<uint16_t>(0);
  out.number<uint16_t>(0), out.number(kFirstDay), out.number(written.crc32);
  out.number(in32(written.size)), out.number(in32(written.size));
  out.number(static_cast<uint16_t>(entry.name.size()));
  out.number(static_cast<uint16_t>(numbers.empty() ? 0 : numbers.size() + 4));
  out.bytes(std::string(10, '\0'));  // no comment, volume, attributes
  out.number(in32(written.header));
  out.bytes(entry.name);
  if (!numbers.empty()) out.number(kExtraZip64), out.number(static_cast<uint16_t>(numbers.size())), out.bytes(numbers);
  return out.take();
}

std::string directory_end(uint64_t begin, uint64_t size, uint64_t count) {
  ByteWriter out;
  if (begin >= kIn64 || size >= kIn64 || count >= UINT16_MAX) {
    out.number(kDirectoryEnd64), out.number<uint64_t>(44), out.number(kVersion), out.number(kVersion), out.number<uint64_t>(0);
    out.number(count), out.number(count), out.number(size), out.number(begin);
    out.number(kDirectoryEndLocator64), out.number<uint32_t>(0), out.number(begin + size), out.number<uint32_t>(1);
  }
  const auto count16 = static_cast<uint16_t>(std::min<uint64_t>(count, UINT16_MAX));
  out.number(kDirectoryEnd), out.number<uint32_t>(0), out.number(count16), out.number(count16);
  out.number(in32(size)), out.number(in32(begin)), out.number<uint16_t>(0);
  return out.take();
}

// In the place of a file.
struct Memory {
  uint64_t size() const { return bytes.size(); }
  void write(std::string_view part) { bytes += part; }

  std::string bytes;
};

template <typename File>
void write_entries(File& file, std::span<const NewEntry> entries) {
  std::string directory;
  for (const NewEntry& entry : entries) {
    boost::crc_32_type crc;
    Written written{0, 0, file.size()};
    for (const std::string_view part : entry.parts) {
      crc.process_bytes(part.data(), part.size());
      written.size += part.size();
    }
    written.crc32 = static_cast<uint32_t>(crc.checksum());
    file.write(local_header(entry, written));
    for (const std::string_view part : entry.parts) file.write(part);
    directory += directory_entry(entry, written);
  }
  const uint64_t begin = file.size();
  file.write(directory);
  file.write(directory_end(begin, directory.size(), entries.size()));
}

}  // namespace

uint32_t crc32_of(std::string_view data) {
  boost::crc_32_type crc;
  crc.process_bytes(data.data(), data.size());
  return static_cast<uint32_t>(crc.checksum());
}

std::shared_ptr<const MappedFile> MappedFile::open(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) fail(Code::kNotFound, path, " cannot be opened: ", std::strerror(errno));
  struct stat about {};
  const bool is_file = ::fstat(descriptor, &about) == 0 && S_ISREG(about.st_mode);
  const auto size = static_cast<size_t>(about.st_size);
  void* data = is_file && size > 0 ? ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0) : nullptr;
  const int error = errno;
  ::close(descriptor);
  if (!is_file) fail(Code::kNotFound, path, " is not a file");
  if (data == MAP_FAILED) fail(Code::kNotFound, path, " cannot be mapped: ", std::strerror(error));
  return std::shared_ptr<const MappedFile>(new MappedFile(data, size));
}

MappedFile::~MappedFile() {
  if (data_) ::munmap(data_, size_);
}

std::vector<ZipEntry> read_zip(std::string_view bytes, const std::string& path) { return Parser(bytes, path).run(); }

void write_file(const std::string& path, std::span<const std::string_view> parts) {
  NewFile file(path);
  for (const std::string_view part : parts) file.write(part);
  file.finish();
}

void write_zip(const std::string& path, std::span<const NewEntry> entries) {
  NewFile file(path);
  write_entries(file, entries);
  file.finish();
}

std::string zip_bytes(std::span<const NewEntry> entries) {
  Memory memory;
  write_entries(memory, entries);
  return std::move(memory.bytes);
}

}  // namespace ltc::deploy
